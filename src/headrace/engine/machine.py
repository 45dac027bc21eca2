"""Describe the machine, as far as it decides how fast an engine runs."""

from __future__ import annotations

import os
import platform
from functools import cache

from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted

# fmt: off
_SPEED_FLAGS = frozenset((
    "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8",
    "amx_bf16", "avx512_fp16", "amx_fp16", "asimd", "asimddp", "asimdhp", "sve", "bf16", "i8mm",
))
# fmt: on
# Instructions that add products of bytes in 32 bits. Without them sums are kept in 16 bits.
_BYTE_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"})


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Machine(PlainRecord, frozen=True):
    """Model name of the processor and the cores this process may use."""

    cpu: str
    cores: int

    def __str__(self) -> str:
        return f"{self.cpu}, {counted(self.cores, 'core')}"


def this_machine() -> Machine:
    """The machine this process runs on."""
    return Machine(_cpu_name(), usable_cores())


def cpu_flags() -> frozenset[str]:
    """The instruction sets that decide speed, as Linux calls them; none where it does not say."""
    return _read_cpu()[1]


@cache
def exact_int8() -> bool:
    """True if this CPU multiplies bytes without cutting off sums beyond 16 bits."""
    return bool(_BYTE_PRODUCTS & cpu_flags())


def _cpu_name() -> str:
    """Model name with the instruction sets that decide speed: virtual machines share names."""
    name, flags = _read_cpu()
    name = name or platform.processor() or platform.machine() or "unknown processor"
    return f"{name} ({' '.join(sorted(flags))})" if flags else name


def _read_cpu() -> tuple[str, frozenset[str]]:
    name, flags = "", frozenset[str]()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name" and not name:
                    name = " ".join(value.split())
                elif key.strip() in ("flags", "Features"):
                    flags = _SPEED_FLAGS & set(value.split())
                    break
    except OSError:
        pass
    return name, flags

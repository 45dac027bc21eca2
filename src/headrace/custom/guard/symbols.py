"""Addresses of another process, as functions and lines."""

from __future__ import annotations

import platform
import re
import shutil
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from headrace._core import _native
from headrace.binary.elf import HOST_MACHINES
from headrace.binary.regular_files import open_regular
from headrace.custom.guard.keeper import keeper

SHOWN = 12
_ADDR2LINE_S = 10.0
_ADDR2LINE_OF = {183: "aarch64-linux-gnu-addr2line"}
_PT_LOAD = 1
_LIBC = ("libc.so", "libc-")
_RUNTIME = ("libstdc++", "libgcc_s")
_SYSTEM = (*_LIBC, *_RUNTIME, "libm.so", "ld-", "libpthread")
_OWN = ("_native.", "host-aarch64")
_INTERPRETER = re.compile(r"(lib)?python[\d.]*(\.so[\d.]*)?$")

# How abort and std::terminate get from the call to the signal; who called them is what matters.
_ENDING = re.compile(
    r"(__pthread_kill\w*|pthread_kill|(__GI_)?raise|(__GI_)?abort|__assert_fail_base|"
    r"__libc_message|malloc_printerr|(__GI_)?exit|__run_exit_handlers|on_exit_call)\b"
)


@dataclass(frozen=True, slots=True)
class MappedFile:
    """One line of `/proc/PID/maps` that is about a file."""

    start: int
    end: int
    offset: int
    path: str

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return Path(self.path).name

    @classmethod
    def parse(cls, line: str) -> MappedFile | None:
        """Read a line; None for memory without a file."""
        words = line.split(None, 5)
        if len(words) < 6 or not words[5].startswith("/"):
            return None
        low, _, high = words[0].partition("-")
        return cls(int(low, 16), int(high, 16), int(words[2], 16), words[5])


@dataclass(frozen=True, slots=True)
class _Frame:
    address: int
    mapping: MappedFile | None
    text: str


def trace(
    frames: Sequence[int],
    pc: int | None,
    maps: Sequence[MappedFile],
    symbols: Mapping[int, tuple[str, int]],
    *,
    thrown: bool = False,
    ended: bool = False,
) -> list[str]:
    """Name the calls that led to `pc`, innermost first, one a line, without Headrace's own.

    Args:
        frames: return addresses from inside a signal handler, or anywhere if `pc` is None.
        pc: address of the instruction that failed.
        maps: files in the process's memory.
        symbols: exported names, for where `addr2line` is not installed or knows none.
        thrown: an exception got here: calls of the C++ runtime are left out.
        ended: by abort or exit: of the C library's calls, whose inner names a stripped one lacks,
            only the outermost counts.
    """
    chosen = list(frames)
    if pc is not None and pc in chosen:
        chosen = chosen[chosen.index(pc) :]
    elif pc is not None:
        chosen = [pc, *chosen]  # the stack cannot be followed from there
    # A return address is behind the call; the first one is the instruction itself.
    exact = [a if i == 0 and pc is not None else a - 1 for i, a in enumerate(chosen)]
    mappings = [next((m for m in maps if m.start <= a < m.end), None) for a in exact]
    # The callers of Headrace are left out: the interpreter, and all beyond it.
    python = (i for i, m in enumerate(mappings) if m and _INTERPRETER.match(m.name))
    chosen = chosen[: next(python, len(chosen))]
    own = [m is not None and m.name.startswith(_OWN) for m in mappings]
    system = [m is None or m.name.startswith(_SYSTEM) for m in mappings]
    users = [i for i in range(len(chosen)) if not (own[i] or system[i])]
    # The calls before the user's code are Headrace's, or the loader's.
    inner = users[0] if users else next((i for i, o in enumerate(own) if not o), 0)
    ends = next((i for i in range(inner, len(chosen)) if own[i]), len(chosen))
    if users:
        ends = 1 + max(i for i in users if i < ends)
    kept = [i for i in range(ends) if not own[i]]
    lines = _lines([(exact[i], mappings[i]) for i in kept])
    shown: list[_Frame] = []
    for i in kept:
        text = lines.get(exact[i]) or _by_symbol(chosen[i], symbols) or "??"
        shown.append(_Frame(exact[i], mappings[i], text))
    libc = [ended and f.mapping is not None and f.mapping.name.startswith(_LIBC) for f in shown]
    inner = next((i for i, inside in enumerate(libc) if not inside), 1) - 1
    first = next((i for i, f in enumerate(shown) if i >= inner and not _is_ending(f, thrown)), 0)
    return _render(shown[first:])


def _is_ending(frame: _Frame, thrown: bool) -> bool:
    runtime = frame.mapping is not None and frame.mapping.name.startswith(_RUNTIME)
    return bool(_ENDING.match(frame.text)) or (thrown and runtime)


def _render(frames: list[_Frame]) -> list[str]:
    result = []
    for _, group in groupby(frames, key=lambda f: f.text.partition(" at ")[0]):
        same = list(group)
        mapped_file = same[0].mapping
        text = same[0].text
        if mapped_file is not None and " at " not in text:
            text += f" ({mapped_file.name})"
        result.append(text if len(same) == 1 else f"{text}, {len(same)} times")
    return [f"#{i} {text}" for i, text in enumerate(result[:SHOWN])]


def _by_symbol(address: int, symbols: Mapping[int, tuple[str, int]]) -> str | None:
    if address not in symbols:
        return None
    name, offset = symbols[address]
    return f"{_native.demangle(name)} + {offset}"


def _lines(frames: list[tuple[int, MappedFile | None]]) -> dict[int, str]:
    """Return function and line of each address that addr2line knows."""
    by_file: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for address, mapping in frames:
        if mapping is not None and (virtual := _in_file(address, mapping)) is not None:
            by_file[mapping.path].append((address, virtual))
    locations: dict[int, str] = {}
    for path, addresses in by_file.items():
        if (program := _addr2line(path)) is None:
            continue
        virtuals = list(dict.fromkeys(v for _, v in addresses))
        command = [program, "-C", "-f", "-p", "-e", path, *(hex(v) for v in virtuals)]
        said = keeper().run(command, _ADDR2LINE_S)  # the file is another's, who may be hostile
        if said is None:
            continue
        texts = dict(zip(virtuals, said.splitlines(), strict=False))
        for address, v in addresses:
            if (text := texts.get(v, "??")) and not text.startswith("??"):
                function, _, line = text.partition(" at ")
                line = line.partition(" (discriminator")[0]
                locations[address] = function if line.startswith("??") else f"{function} at {line}"
    return locations


def _addr2line(path: str) -> str | None:
    """Find the program that knows the lines of a file: that of its machine."""
    with suppress(OSError, ValueError), open_regular(path) as file:
        machine = struct.unpack_from("<H", file.read(20).ljust(20), 18)[0]
        if HOST_MACHINES.get(platform.machine()) != machine:
            return shutil.which(_ADDR2LINE_OF.get(machine, ""))
    return shutil.which("addr2line")


def _in_file(address: int, mapping: MappedFile) -> int | None:
    """Return the address in the file of a place in memory."""
    try:
        with open_regular(mapping.path) as file:  # the worker names it
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return None
            table: int = struct.unpack_from("<Q", head, 32)[0]
            count: int = struct.unpack_from("<H", head, 56)[0]
            file.seek(table)
            entries = file.read(56 * count)
    except (OSError, ValueError, struct.error):
        return None
    offset = address - mapping.start + mapping.offset
    for i in range(len(entries) // 56):
        kind, _, start, virtual, _, size = struct.unpack_from("<IIQQQQ", entries, 56 * i)
        if kind == _PT_LOAD and start <= offset < start + size:
            return int(offset - start + virtual)
    return None

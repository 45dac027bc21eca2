"""Where a run computes: the CPU, or an NVIDIA GPU where there is one and the runtime can use it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from noria._core.cuda import driver_is_open, why_no_gpu
from noria._core.errors import ConfigError, EngineError
from noria._core.notices import Notice
from noria.engine.backends import GPU_PACKAGE_FIX, get_backend, gpu_runtime

_CUDA = re.compile(r"cuda(?::(\d{1,3}))?")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_DRIVER = "there is no NVIDIA driver"
_chosen: int | None = None  # the GPU that this process sees alone, by the number it had before
LANES = 4
"""Runs at the same time on a GPU: one is scaled or copied while another one is computed."""


def lanes_of_one(processes: int) -> int:
    """Runs at the same time of each of so many processes that share a GPU.

    Measured on an H200, HEVC films through a detector, frames a second: 4 processes 7,267 with 4
    lanes and 7,121 with 2; 6 processes 6,976 with 4 and 7,235 with 2.
    """
    return max(2, min(LANES, 4 * LANES // processes))


@dataclass(frozen=True, slots=True)
class Device:
    """The choice of a run.

    Attributes:
        name: `cpu`, or `cuda:N` with the number that the user gave.
        required: True if the user named it; then engines of other devices do not serve.
        notices: reasons why a GPU that is there is not used.
    """

    name: str = "cpu"
    required: bool = False
    notices: tuple[Notice, ...] = ()

    @property
    def is_gpu(self) -> bool:
        """True for a GPU."""
        return self.name != "cpu"

    @property
    def kind(self) -> str | None:
        """`cuda` or `cpu` where the engine must run there; None where any engine serves."""
        if self.is_gpu:
            return "cuda"
        return "cpu" if self.required else None


CPU = Device()


def choose_device(asked: str = "auto", gpu_ids: Sequence[int] = ()) -> Device:
    """Choose where to compute.

    Args:
        asked: `auto`, `cpu`, `cuda`, or `cuda:N`. The GPU of a process is the only one that it
            sees from then on; it cannot be changed.
        gpu_ids: `gpu-id` of the run's configs. Without a number in `asked` the first one's GPU is
            taken, where there is one.

    Raises:
        ConfigError: there is no device of this name.
        EngineError: a GPU is asked for, and there is none or the runtime cannot use it; or this
            process uses another one.
    """
    if asked == "cpu":
        return Device(required=True)
    match = _CUDA.fullmatch(asked)
    if asked != "auto" and match is None:
        raise ConfigError(f"no device is called {asked!r}", expected="auto, cpu, cuda or cuda:N")
    other = None
    if match is not None and match[1] is not None:
        _see_only(int(match[1]))
    else:
        other = _see_configured(gpu_ids)
    reason = why_no_gpu()
    if reason is None:
        reason = get_backend(gpu_runtime()).why_not()
        fix = GPU_PACKAGE_FIX
    else:
        fix = "nvidia-smi shows the driver and its GPUs"
    if reason is None:
        notices = () if other is None else (Notice("info", other, rule="gpu-other"),)
        name = asked if match and match[1] else f"cuda:{_chosen or 0}"
        return Device(name, match is not None, notices)
    if match is not None:
        raise EngineError(f"--device {asked}: {reason}", fix=(fix, "--device cpu runs without one"))
    if reason.startswith(_NO_DRIVER):  # nobody expects a GPU here
        return CPU
    text = f"the CPU computes: {reason}; {fix}"
    return Device(notices=(Notice("info", text, rule="gpu-unused"),))


def _see_configured(gpu_ids: Sequence[int]) -> str | None:
    """Let this process see the GPU of its configs; why another one computes, or None."""
    wanted, *others = gpu_ids or (0,)
    reason = None
    if _chosen is not None and wanted != _chosen:
        reason = "this process uses another one already"
    elif wanted and _chosen is None:
        if wanted >= (count := _gpus_shown()):
            reason = f"{count or 'no'} GPU{'s' * (count != 1)} can be seen here"
        elif driver_is_open():
            reason = "this process uses another one already"
        else:
            _see_only(wanted)
    if reason is None and (differing := sorted(set(others) - {wanted})):
        wanted, reason = differing[0], "a process uses one GPU"
    if reason is None:
        return None
    return f"gpu-id={wanted}: {reason}; GPU {_chosen or 0} computes"


def _gpus_shown() -> int:
    """How many GPUs there are to choose from. Asking the driver would settle which."""
    return len(_visible()) or sum(1 for _ in Path("/dev").glob("nvidia[0-9]*"))


def _visible() -> list[str]:
    return [n for n in os.environ.get(_VISIBLE, "").split(",") if n.strip()]


def _see_only(number: int) -> None:
    """Let this process see one GPU only, before anything uses CUDA."""
    global _chosen
    if number == _chosen:
        return
    visible = _visible()
    if driver_is_open():
        if number == 0 and _chosen is None:
            return
        raise EngineError(
            f"--device cuda:{number}: this process uses another GPU already",
            fix=f"one process for each GPU, or {_VISIBLE}={number} before it starts",
        )
    if visible:
        if number >= len(visible):
            raise EngineError(
                f"--device cuda:{number}: {_VISIBLE}={','.join(visible)} shows {len(visible)}",
                expected=f"cuda:0 to cuda:{len(visible) - 1}",
            )
        os.environ[_VISIBLE] = visible[number]
    else:
        os.environ[_VISIBLE] = str(number)
    _chosen = number

"""Where a run computes: the CPU, or an NVIDIA GPU where there is one and the runtime can use it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from noria._core.cuda import NO_DRIVER, driver_is_open, why_no_gpu
from noria._core.errors import ConfigError, EngineError
from noria._core.notices import Notice
from noria._core.visible_gpus import chosen_gpu, gpu_name, gpus, gpus_shown, see_only
from noria.engine.backends import get_backend, gpu_runtime
from noria.engine.backends.onnxruntime_package import gpu_fix

_CUDA = re.compile(r"cuda(?::(0|[1-9][0-9]{0,2}))?")
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
    check_device_name(asked)
    if asked == "cpu":
        return Device(required=True)
    match = _CUDA.fullmatch(asked)
    other = None
    if match is not None and match[1] is not None:
        see_only(int(match[1]))
    else:
        other = _see_configured(gpu_ids)
    reason = why_no_gpu() or get_backend(gpu_runtime()).why_not()
    if reason is None:
        notices = () if other is None else (Notice("info", other, rule="gpu-other"),)
        return Device(gpu_name(), match is not None, notices)
    if match is not None:
        raise EngineError(
            f"--device {asked}: {reason}", fix=(gpu_fix(), "--device cpu runs without one")
        )
    if reason.startswith(NO_DRIVER):  # nobody expects a GPU here
        return CPU
    text = f"the CPU computes: {reason}; {gpu_fix()}"
    return Device(notices=(Notice("info", text, rule="gpu-unused"),))


def check_device_name(name: str) -> None:
    """Refuse a name that no device has.

    Raises:
        ConfigError: no device has it.
    """
    if name in ("auto", "cpu") or (isinstance(name, str) and _CUDA.fullmatch(name)):
        return
    raise ConfigError(f"no device is called {name!r}", expected="auto, cpu, cuda or cuda:N")


def _see_configured(gpu_ids: Sequence[int]) -> str | None:
    """Let this process see the GPU of its configs; why another one computes, or None."""
    wanted, *others = gpu_ids or (0,)
    chosen, reason = chosen_gpu(), None
    if chosen is not None and wanted != chosen:
        reason = "this process uses another one already"
    elif wanted and chosen is None:
        if wanted >= (count := gpus_shown()):
            reason = gpus(count)
        elif driver_is_open():
            reason = "this process uses another one already"
        else:
            see_only(wanted)
    if reason is None and (differing := sorted(set(others) - {wanted})):
        wanted, reason = differing[0], "a process uses one GPU"
    if reason is None:
        return None
    return f"gpu-id={wanted}: {reason}; GPU {chosen_gpu() or 0} computes"

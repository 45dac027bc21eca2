"""Where a run computes: the CPU, or an NVIDIA GPU where there is one and the runtime can use it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from noria._core.cuda import driver_is_open, why_no_gpu
from noria._core.errors import ConfigError, EngineError
from noria._core.notices import Notice
from noria.engine.backends import get_backend, gpu_runtime

_CUDA = re.compile(r"cuda(?::(\d{1,3}))?")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_DRIVER = "there is no NVIDIA driver"
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


def choose_device(asked: str = "auto") -> Device:
    """Choose where to compute.

    Args:
        asked: `auto`, `cpu`, `cuda`, or `cuda:N`. The GPU of a process is the only one that it
            sees from then on; it cannot be changed.

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
    if match is not None and match[1] is not None:
        _see_only(int(match[1]))
    reason = why_no_gpu()
    if reason is None:
        reason = get_backend(gpu_runtime()).why_not()
        fix = "pip uninstall onnxruntime && pip install 'onnxruntime-gpu[cuda,cudnn]'"
    else:
        fix = "nvidia-smi shows the driver and its GPUs"
    if reason is None:
        return Device(asked if match and match[1] else "cuda:0", match is not None)
    if match is not None:
        raise EngineError(f"--device {asked}: {reason}", fix=(fix, "--device cpu runs without one"))
    if reason.startswith(_NO_DRIVER):  # nobody expects a GPU here
        return CPU
    text = f"the CPU computes: {reason}; {fix}"
    return Device(notices=(Notice("info", text, rule="gpu-unused"),))


def _see_only(number: int) -> None:
    """Let this process see one GPU only, before anything uses CUDA."""
    visible = [n for n in os.environ.get(_VISIBLE, "").split(",") if n.strip()]
    if driver_is_open():
        if number == 0 or visible == [str(number)]:
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

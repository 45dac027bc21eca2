"""Where a run computes: the CPU, or an NVIDIA GPU where there is one and the runtime can use it."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

from headrace._core.errors import ConfigError, EngineError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import entered, gpu_count, meant, no_gpu_driver, why_no_gpu
from headrace._core.gpu.visible_gpus import hidden_by, how_many
from headrace._core.plain_record import PlainRecord
from headrace.engine.backends import why_no_gpu_runtime
from headrace.engine.backends.onnxruntime_package import gpu_fix

_CUDA = re.compile(r"cuda(?::(0|[1-9][0-9]{0,2}))?")
LANES = 4
"""Runs at the same time on a GPU: one is scaled or copied while another one is computed."""


def lanes_of_one(processes: int) -> int:
    """Runs at the same time of each of so many processes that share a GPU.

    Measured on an H200, HEVC videos through a detector, frames a second: 4 processes 7,267 with 4
    lanes and 7,121 with 2; 6 processes 6,976 with 4 and 7,235 with 2.
    """
    return max(2, min(LANES, 4 * LANES // processes))


class Device(PlainRecord, frozen=True):
    """The choice for a model.

    Attributes:
        gpu: number of the GPU; None for the CPU.
        required: True if the user named it; then engines of other devices do not serve.
        notices: reasons why the GPU that was asked for, or that is there, is not used.
    """

    gpu: int | None = None
    required: bool = False
    notices: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """`cpu`, or `cuda:N`."""
        return "cpu" if self.gpu is None else f"cuda:{self.gpu}"

    @property
    def is_gpu(self) -> bool:
        """True for a GPU."""
        return self.gpu is not None

    @property
    def kind(self) -> str | None:
        """`cuda` or `cpu` where the engine must run there; None where any engine serves."""
        if self.is_gpu:
            return "cuda"
        return "cpu" if self.required else None

    def entered(self) -> AbstractContextManager[object]:
        """Make its GPU, if it is one, the one of this thread for a block."""
        return nullcontext() if self.gpu is None else entered(self.gpu)


CPU = Device()


def choose_device(asked: str = "auto", gpu_id: int = 0) -> Device:
    """Choose where a model computes.

    Args:
        asked: `auto`, `cpu`, `cuda`, or `cuda:N`.
        gpu_id: of the model's config: the GPU where `asked` has no number. The first one computes
            where there is none of this number.

    Raises:
        ConfigError: there is no device of this name.
        EngineError: a GPU is asked for, and there is none or the runtime cannot use it.
    """
    check_device_name(asked)
    if asked == "cpu":
        return Device(required=True)
    match = _CUDA.fullmatch(asked)
    number = None if match is None or match[1] is None else int(match[1])
    reason = why_no_gpu()
    absent = reason is not None and no_gpu_driver()
    fix = None if reason is None or absent else hidden_by()
    if reason is None:
        device = _of_number(gpu_id if number is None else number, asked if match else None)
        with meant(device.gpu or 0):
            reason = why_no_gpu_runtime()
        if reason is None:
            return device
    fix = fix or gpu_fix()
    if match is not None:
        cpu = "--device cpu runs without one"
        raise EngineError(f"--device {asked}: {reason}", fix=(fix, cpu))
    if absent:  # nobody expects a GPU here
        return CPU
    text = f"the CPU computes: {reason}; {fix}"
    return Device(notices=(Finding("gpu-unused", "info", text),))


def _of_number(number: int, asked: str | None) -> Device:
    """The GPU of a number, or the first one and a notice.

    Raises:
        EngineError: there is none, and the command asked for it by this number.
    """
    count = gpu_count()
    if number < count:
        return Device(number, asked is not None)
    if asked is not None and ":" in asked:
        most = f"cuda:0 to cuda:{count - 1}" if count > 1 else "cuda:0"
        raise EngineError(f"--device {asked}: {how_many(count)}", expected=most)
    text = f"gpu-id={number} asks for a GPU that is not there ({how_many(count)}): GPU 0 computes; "
    text += "gpu-id=0 asks for that one"
    return Device(0, asked is not None, (Finding("gpu-other", "info", text),))


def check_device_name(name: object) -> None:
    """Refuse a name that no device has.

    Raises:
        ConfigError: no device has it.
    """
    if name in ("auto", "cpu") or (isinstance(name, str) and _CUDA.fullmatch(name)):
        return
    raise ConfigError(f"no device is called {name!r}", expected="auto, cpu, cuda or cuda:N")

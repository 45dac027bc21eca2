"""FFmpeg's decoding by the video unit of an NVIDIA GPU, and why it cannot be used."""

from __future__ import annotations

import ctypes
from typing import Any

import av
from av.codec.hwaccel import HWAccel, hwdevices_available

from headrace._core.errors import EngineError
from headrace._core.files import os_reason
from headrace._core.gpu.cuda import entered, gpu_count, why_no_gpu
from headrace._core.gpu.visible_gpus import how_many

ON_GPU = "cuda"
"""FFmpeg's name of the format of images in GPU memory."""

UNIT = "libnvcuvid.so.1"
"""The driver's library of the video unit."""

_usable: set[int] = set()


def gpu_decoding(gpu: int | None = 0) -> dict[str, Any]:
    """Arguments of `av.open` that decode on a GPU; none for None, or where it cannot be used.

    What the chip does not decode is decoded by the CPU.
    """
    if gpu is None or decoding_error(gpu) is not None:
        return {}
    return {"hwaccel": _accelerator(gpu)}


def decoding_error(gpu: int) -> EngineError | None:
    """Say why the video unit of a GPU cannot be used, and how to mend it; None: it can.

    The GPU's context is opened first: FFmpeg joins it, and would refuse one that something else
    opened with other flags.
    """
    if gpu in _usable:
        return None
    if (reason := why_no_gpu()) is not None:
        return EngineError(reason)
    if gpu >= gpu_count():
        return EngineError(f"there is no GPU {gpu}: {how_many(gpu_count())}")
    if ON_GPU not in hwdevices_available():
        text, fix = "this FFmpeg is built without CUDA", "pip install --force-reinstall av"
        return EngineError(text, fix=fix)
    try:
        ctypes.CDLL(UNIT)
    except OSError:
        fix = "in a container: NVIDIA_DRIVER_CAPABILITIES=compute,video,utility"
        return EngineError(f"the driver came without {UNIT}", fix=fix)
    try:
        with entered(gpu):
            av.CodecContext.create("h264", "r", hwaccel=_accelerator(gpu))
    except (av.error.FFmpegError, OSError, RuntimeError) as error:
        return EngineError(f"FFmpeg cannot use GPU {gpu}: {os_reason(error)}")
    except EngineError as error:
        return error
    _usable.add(gpu)
    return None


def on_cpu_instead(format: str, gpu: int) -> str:
    """Words for a source that was to be decoded on a GPU, and is not."""
    error = decoding_error(gpu)
    if error is None:
        return f"decoded on the CPU: the GPU does not decode its codec or format ({format})"
    return "; ".join([f"decoded on the CPU: {error:brief}", *error.finding.remedies])


def _accelerator(gpu: int) -> HWAccel:
    return HWAccel(ON_GPU, str(gpu), allow_software_fallback=True, is_hw_owned=True)

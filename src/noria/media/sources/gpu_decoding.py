"""Decoding by the video unit of an NVIDIA GPU (NVDEC), through FFmpeg."""

from __future__ import annotations

from typing import Any

from av.codec.hwaccel import HWAccel, hwdevices_available

from noria._core.cuda import why_no_gpu

ON_GPU = "cuda"
"""FFmpeg's name of the format of pictures in GPU memory."""


def gpu_decoding() -> dict[str, Any]:
    """Arguments of `av.open` that decode on the GPU; none where this FFmpeg cannot.

    What the chip does not decode is decoded by the CPU. The process's context is opened first:
    FFmpeg joins it, and would refuse one that something else opened with other flags.
    """
    if ON_GPU not in hwdevices_available() or why_no_gpu() is not None:
        return {}
    return {"hwaccel": HWAccel(ON_GPU, allow_software_fallback=True, is_hw_owned=True)}


def on_cpu_instead(format: str) -> str:
    """Words for a source that was to be decoded on the GPU, and is not."""
    if ON_GPU not in hwdevices_available():
        return "decoded on the CPU: this FFmpeg is built without CUDA"
    return f"decoded on the CPU: the GPU does not decode its codec or format ({format})"

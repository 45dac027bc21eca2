"""The NVIDIA GPU: driver, chips, Headrace's kernel, the video unit, and sharing by processes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import byref, c_char, c_int, c_size_t, c_ubyte, c_uint, c_ushort
from pathlib import Path

from headrace._core.errors import EngineError
from headrace._core.gpu.cuda import (
    compute_capability,
    device_attribute,
    driver,
    driver_cuda,
    no_gpu_driver,
    why_no_gpu,
)
from headrace._core.gpu.cuda_kernels import Kernel
from headrace._core.gpu.mps import control_program
from headrace._core.gpu.visible_gpus import hidden_by
from headrace.diagnose.doctor.checks import Check
from headrace.media.sources.gpu_decoding import UNIT, decoding_error

_CORES = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_VERSION = Path("/proc/driver/nvidia/version")
_CODECS = {"MPEG-2": 1, "MPEG-4": 2, "H.264": 4, "HEVC": 8, "VP8": 9, "VP9": 10, "AV1": 11}
_YUV_420 = 1


class _Caps(ctypes.Structure):
    """CUVIDDECODECAPS. Source: cuviddec.h of NVIDIA's Video Codec SDK."""

    _fields_ = (
        ("codec", c_int), ("chroma", c_int), ("depth_minus_8", c_uint), ("reserved1", c_uint * 3),
        ("supported", c_ubyte), ("units", c_ubyte), ("formats", c_ushort),
        ("max_width", c_uint), ("max_height", c_uint), ("max_blocks", c_uint),
        ("min_width", c_ushort), ("min_height", c_ushort),
        ("histogram", c_ubyte), ("counter_depth", c_ubyte), ("bins", c_ushort),
        ("reserved3", c_uint * 10),
    )  # fmt: skip


def gpu_checks() -> Iterator[Check]:
    """Check the driver and its GPUs."""
    reason = why_no_gpu()
    if reason is not None:
        absent = no_gpu_driver()
        fix = () if absent else (hidden_by() or "nvidia-smi shows the driver and its GPUs",)
        yield Check("gpu", "driver", "absent" if absent else "problem", reason, fix)
        return
    cuda = driver_cuda()
    yield Check("gpu", "driver", "ok", f"{_release()}, CUDA {cuda // 1000}.{cuda % 1000 // 10}")
    count = c_int()
    driver().call("cuDeviceGetCount", byref(count))
    for number in range(count.value):
        yield Check("gpu", f"cuda:{number}", "ok", _chip(number))
    yield _kernel()
    yield _decoding()
    if control_program() is None:
        text = "nvidia-cuda-mps-control is not there: processes take turns on a GPU"
        yield Check("gpu", "processes", "absent", text)
    else:
        yield Check("gpu", "processes", "ok", "share a GPU at the same time, through MPS")


def _release() -> str:
    try:
        text = _VERSION.read_text(errors="replace")
    except OSError:  # as under WSL
        return "release unknown"
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return match[1] if match else "release unknown"


def _chip(number: int) -> str:
    use = driver()
    name, memory = (c_char * 256)(), c_size_t()
    use.call("cuDeviceGetName", name, c_int(256), c_int(number))
    use.call("cuDeviceTotalMem_v2", byref(memory), c_int(number))
    major, minor = compute_capability(number)
    return (
        f"{name.value.decode(errors='replace')}, {memory.value / 2**30:.0f} GiB, compute "
        f"capability {major}.{minor}, {device_attribute(_CORES, number)} multiprocessors"
    )


def _kernel() -> Check:
    try:
        Kernel("preprocess")
    except EngineError as error:
        return Check.of("gpu", "scaling", "problem", error)
    return Check("gpu", "scaling", "ok", "the driver takes headrace's kernel")


def _decoding() -> Check:
    if (error := decoding_error(0)) is not None:
        return Check.of("gpu", "decoding", "problem", error, ": videos are decoded on the CPU")
    ask = ctypes.CDLL(UNIT).cuvidGetDecoderCaps
    driver()  # its context is asked
    codecs = []
    for codec, number in _CODECS.items():
        depths = []
        for depth in (8, 10):
            caps = _Caps(codec=number, chroma=_YUV_420, depth_minus_8=depth - 8)
            if ask(byref(caps)) == 0 and caps.supported:
                depths.append(depth)
        if depths:
            codecs.append(codec + (" and its 10 bits" if 10 in depths else ""))
    if not codecs:
        return Check("gpu", "decoding", "absent", "this GPU has no video unit: the CPU decodes")
    return Check("gpu", "decoding", "ok", ", ".join(codecs))

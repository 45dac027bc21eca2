"""Compile the GPU's kernels to PTX by NVRTC; needs no GPU: `make ptx`.

    python scripts/ptx.py LIBNVRTC

NVRTC 11.8 serves drivers from 520.61 on, and GPUs from compute capability 5.2 on.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("preprocess", "hits", "patches", "draw", "jpeg", "tiles")
# As the kernels include them.
HEADERS = {
    "kernel_types.h": ROOT / "native/gpu/kernel_types.h",
    "component.h": ROOT / "native/gpu/component.h",
    "track/sampled_color.h": ROOT / "native/src/track/sampled_color.h",
    "preprocess/pixel.h": ROOT / "native/src/preprocess/pixel.h",
    "preprocess/matrix.h": ROOT / "native/src/preprocess/matrix.h",
}
OPTIONS = ("--gpu-architecture=compute_52", "--fmad=false", "--std=c++17")


def source(name: str) -> Path:
    """The source of a kernel."""
    return ROOT / f"native/gpu/{name}_kernel.cu"


def ptx(name: str) -> Path:
    """Where the package has the PTX of a kernel."""
    return ROOT / f"src/headrace/_core/gpu/{name}.ptx"


def digest(name: str) -> str:
    """SHA-256 of a kernel's sources and options; the first line of its PTX has it."""
    state = hashlib.sha256(" ".join(OPTIONS).encode())
    for path in (source(name), *HEADERS.values()):
        state.update(path.read_bytes())
    return state.hexdigest()


def compiled(library: str, name: str) -> bytes:
    """The PTX of a kernel."""
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def texts(values: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
        return (ctypes.c_char_p * len(values))(*values)

    status = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        source(name).read_bytes(),
        source(name).name.encode(),
        len(HEADERS),
        texts([path.read_bytes() for path in HEADERS.values()]),
        texts([name.encode() for name in HEADERS]),
    )
    if status == 0:
        options = texts([option.encode() for option in OPTIONS])
        status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"NVRTC: error {status}\n{log.value.decode()}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    return text.value


if __name__ == "__main__":
    (library,) = sys.argv[1:]
    for name in NAMES:
        ptx(name).write_bytes(f"// {digest(name)}\n".encode() + compiled(library, name) + b"\n")

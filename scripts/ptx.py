"""Compile the GPU's kernel to PTX by NVRTC; needs no GPU: `make ptx`.

    python scripts/ptx.py LIBNVRTC OUT

NVRTC 11.8 serves drivers from 520.61 on, and GPUs from compute capability 5.2 on.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "native/gpu/preprocess_kernel.cu"
HEADERS = [ROOT / "native/src" / name for name in ("preprocess_pixel.h", "preprocess_matrix.h")]
OPTIONS = ("--gpu-architecture=compute_52", "--fmad=false", "--std=c++17")


def digest() -> str:
    """SHA-256 of the sources and options; the first line of the PTX has it."""
    state = hashlib.sha256(" ".join(OPTIONS).encode())
    for path in (SOURCE, *HEADERS):
        state.update(path.read_bytes())
    return state.hexdigest()


def compiled(library: str) -> bytes:
    """The PTX of the kernel."""
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def texts(values: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
        return (ctypes.c_char_p * len(values))(*values)

    status = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        SOURCE.read_bytes(),
        SOURCE.name.encode(),
        len(HEADERS),
        texts([path.read_bytes() for path in HEADERS]),
        texts([path.name.encode() for path in HEADERS]),
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
    library, out = sys.argv[1:]
    Path(out).write_bytes(f"// {digest()}\n".encode() + compiled(library) + b"\n")

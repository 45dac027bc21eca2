"""`cuda.nvrtc`: kernels cannot be compiled, there is no GPU to run them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

__path__: list[str] = []


class nvrtcResult(IntEnum):
    """Errors that can happen here."""

    NVRTC_SUCCESS = 0
    NVRTC_ERROR_INVALID_INPUT = 3
    NVRTC_ERROR_COMPILATION = 6


_NO = nvrtcResult.NVRTC_ERROR_COMPILATION


def nvrtcCreateProgram(*arguments: Any) -> tuple[Any, ...]:
    return _NO, 0


def nvrtcCompileProgram(*arguments: Any) -> tuple[Any, ...]:
    return (_NO,)


def nvrtcGetProgramLogSize(program: Any) -> tuple[Any, ...]:
    return nvrtcResult.NVRTC_SUCCESS, 0


def nvrtcGetProgramLog(program: Any, log: Any) -> tuple[Any, ...]:
    return (nvrtcResult.NVRTC_SUCCESS,)


def nvrtcGetErrorString(error: Any) -> tuple[Any, ...]:
    text = "noria runs on the CPU: there is no compiler for GPU kernels"
    return nvrtcResult.NVRTC_SUCCESS, text.encode()

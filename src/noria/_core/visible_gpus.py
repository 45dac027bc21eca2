"""The GPUs that this process sees, and the one that it uses.

NVIDIA's driver reads `CUDA_VISIBLE_DEVICES` once, when it is opened. A process that must use one of
several GPUs sees that one alone, so that decoder, runtime and kernels all mean the same.
"""

from __future__ import annotations

import os
from pathlib import Path

from noria._core.cuda import driver_is_open
from noria._core.errors import EngineError

VARIABLE = "CUDA_VISIBLE_DEVICES"
_chosen: int | None = None  # by the number that it had before the process saw it alone


def chosen_gpu() -> int | None:
    """The GPU that `see_only` chose, by the number that the user gave; None if it chose none."""
    return _chosen


def gpu_name() -> str:
    """`cuda:N` of the GPU that this process uses, with the number that the user gave."""
    return f"cuda:{_chosen or 0}"


def gpus_shown() -> int:
    """How many GPUs there are to choose from, without asking the driver: that settles which."""
    if VARIABLE in os.environ:  # empty, it hides them all
        return len(_visible())
    return sum(1 for _ in Path("/dev").glob("nvidia[0-9]*"))


def see_only(number: int) -> None:
    """Let this process see one GPU only, before anything uses CUDA.

    Raises:
        EngineError: there is no GPU of this number, or the process uses another one.
    """
    global _chosen
    if number == _chosen:
        return
    asked = f"--device cuda:{number}"
    if driver_is_open():
        if number == 0 and _chosen is None:
            return
        raise EngineError(
            f"{asked}: this process uses another GPU already",
            fix=f"one process for each GPU, or {VARIABLE}={number} before it starts",
        )
    visible, count, limited = _visible(), gpus_shown(), VARIABLE in os.environ
    if number >= count and (count or limited):  # WSL shows none, and has some
        shown = f"{VARIABLE}={','.join(visible)!r} shows {count}" if limited else gpus(count)
        most = f"cuda:0 to cuda:{count - 1}" if count > 1 else "cuda:0"
        expected = most if count else f"{VARIABLE} with the GPU's number, or not set"
        raise EngineError(f"{asked}: {shown}", expected=expected)
    os.environ[VARIABLE] = visible[number] if visible else str(number)
    _chosen = number


def gpus(count: int) -> str:
    """Words for how many GPUs there are."""
    return f"{count or 'no'} GPU{'s' * (count != 1)} can be seen here"


def _visible() -> list[str]:
    return [n for n in os.environ.get(VARIABLE, "").split(",") if n.strip()]

"""`CUDA_VISIBLE_DEVICES`: which of the host's GPUs a process sees, and in which order.

NVIDIA's driver reads it once, when it is opened, and counts the GPUs of the process from 0.
"""

from __future__ import annotations

import os

from headrace._core.text import counted

VARIABLE = "CUDA_VISIBLE_DEVICES"


def environment_for(gpu: int) -> dict[str, str]:
    """Make the environment of a child process that has a GPU of this process as its first.

    CUDA takes the first GPU where nobody names another: a library of the user's, most runtimes.

    Args:
        gpu: its number in this process.
    """
    environment = dict(os.environ)
    if gpu:
        visible = _visible()
        environment[VARIABLE] = visible[gpu] if gpu < len(visible) else str(gpu)
    return environment


def how_many(count: int) -> str:
    """Say how many GPUs this process sees, and that the variable limits them if it does.

    Args:
        count: of the driver.
    """
    value = os.environ.get(VARIABLE)
    if value is not None:
        return f"{VARIABLE}={value!r} shows {count or 'none'}"
    return f"{counted(count, 'GPU') if count else 'no GPUs'} can be seen here"


def hidden_by() -> str | None:
    """How to mend that the variable hides the GPUs of a driver that shows none; None if unset."""
    value = os.environ.get(VARIABLE)
    return None if value is None else f"{VARIABLE}={value!r} may hide it: unset it"


def _visible() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]

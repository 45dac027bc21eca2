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
    """Say which GPUs this process sees, and that the variable limits them if it does.

    Args:
        count: of the driver.
    """
    numbers = "number 0" if count == 1 else f"numbers 0 to {count - 1}"
    value = os.environ.get(VARIABLE)
    if value is not None:
        found = f"{counted(count, 'GPU')}, {numbers}" if count else "no GPU"
        return f"{VARIABLE}={value!r} leaves {found}"
    is_are = "is" if count == 1 else "are"
    return f"there {is_are} {counted(count, 'GPU')}, {numbers}" if count else "there is no GPU"


def hidden_by() -> str | None:
    """How to mend that the variable hides the GPUs of a driver that shows none; None if unset."""
    value = os.environ.get(VARIABLE)
    return None if value is None else f"{VARIABLE}={value!r} may hide it: unset it"


def _visible() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]

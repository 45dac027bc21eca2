"""Settings of the guard: modes, limits of a worker, folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GuardMode = Literal["auto", "always", "never"]
"""`auto` guards C++ libraries that are not trusted yet, `always` guards Python modules, too."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Limits of the process that runs a library.

    Attributes:
        timeout_s: seconds that one call may take; then the process is ended.
        load_timeout_s: the same for loading the library, and for filling inputs.
        build_timeout_s: the same for making a network, and for building plugins.
        memory_mib: address space that it may take beside what it has at the start, in MiB; on a
            machine with a GPU private writable memory, since CUDA reserves addresses for all
            memory that there is. 0 sets no limit.
        restarts: how often it is started again before it is given up; `FORGIVEN_AFTER` calls
            without a fault set the count back.
        crash_dir: where the inputs of fatal calls are kept; None is `crash_folder()`.
        once: the worker is for one call: a fatal one is not saved, errors mention no restarts.
        clean_calls: calls without a fault after which `auto` trusts a library from then on.
    """

    timeout_s: float = 10.0
    load_timeout_s: float = 60.0
    build_timeout_s: float = 600.0
    memory_mib: int = 4096
    restarts: int = 5
    crash_dir: Path | None = None
    clean_calls: int = 300
    once: bool = False


def state_folder() -> Path:
    """Return the state folder: `$XDG_STATE_HOME/headrace`, or `~/.local/state/headrace`."""
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return root / "headrace"


def crash_folder() -> Path:
    """Return the folder of saved calls: `HEADRACE_CRASH_DIR`, or `crashes` in the state folder."""
    named = os.environ.get("HEADRACE_CRASH_DIR")
    return Path(named) if named else state_folder() / "crashes"

"""Users' libraries in worker processes: a fault there does no harm to the application.

Start at `process.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.custom.guard.crash import Death, LibraryDiedError
    from headrace.custom.guard.options import GuardMode, GuardOptions, crash_folder
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".crash": "Death LibraryDiedError",
            ".options": "GuardMode GuardOptions crash_folder",
        },
    )

__all__ = ["Death", "GuardMode", "GuardOptions", "LibraryDiedError", "crash_folder"]

"""Users' libraries in worker processes: a fault there does no harm to the application."""

from noria.custom.guard.errors import Death, LibraryDiedError
from noria.custom.guard.options import GuardMode, GuardOptions, crash_folder, state_folder

__all__ = ["Death", "GuardMode", "GuardOptions", "LibraryDiedError", "crash_folder", "state_folder"]

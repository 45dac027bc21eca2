"""Users' libraries in processes of their own: what they do there harms no one else."""

from noria.custom.guard.errors import Death, LibraryDied
from noria.custom.guard.options import GuardMode, GuardOptions, crash_folder, state_folder

__all__ = ["Death", "GuardMode", "GuardOptions", "LibraryDied", "crash_folder", "state_folder"]

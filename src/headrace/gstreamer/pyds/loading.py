"""GStreamer's Python bindings: those of the environment, or Debian's beside it."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from headrace._core.errors import MissingExtraError
from headrace._core.unwinder import keep_unwinder
from headrace.gstreamer.hook import unwatched

_DISTRIBUTION = Path("/usr/lib/python3/dist-packages")
_PACKAGES = (
    "python3-gi python3-gst-1.0 gir1.2-gst-plugins-base-1.0 gir1.2-gst-rtsp-server-1.0 "
    "gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad "
    "gstreamer1.0-plugins-ugly gstreamer1.0-libav gstreamer1.0-tools"
)
INSTALL = f"apt install {_PACKAGES}"


class _DistributionFinder:
    """Finds `gi` among the distribution's packages and nothing else of them."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Look for `gi`; packages inside of it are found by its own path."""
        return distribution_spec() if name == "gi" else None


def distribution_spec() -> ModuleSpec | None:
    """Find the distribution's `gi`; None if its compiled module is for another Python.

    A virtual environment does not see the distribution's packages. They fit any Python of the same
    minor version.
    """
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    if not list((_DISTRIBUTION / "gi").glob(f"_gi.cpython-{version}-*.so")):
        return None
    return PathFinder.find_spec("gi", [str(_DISTRIBUTION)])


def provide_bindings() -> bool:
    """Make `import gi` work; False if there are no bindings for this Python."""
    if "gi" not in sys.modules and importlib.util.find_spec("gi") is None:
        sys.meta_path.append(_DistributionFinder)
    return "gi" in sys.modules or importlib.util.find_spec("gi") is not None


@cache
def gstreamer() -> Any:
    """Return the initialised module `Gst`.

    Raises:
        MissingExtraError: GStreamer or its bindings are not installed.
    """
    problem = "its bindings for Python (gi) are not installed"
    cause: BaseException | None = None
    if provide_bindings():
        try:
            keep_unwinder()
            import gi

            for name in ("Gst", "GstBase", "GstVideo"):
                gi.require_version(name, "1.0")
            from gi.repository import Gst

            unwatched(Gst.init)(None)
        except (Exception, SystemExit) as error:  # half an installation fails in any way
            problem, cause = str(error) or type(error).__name__, error
        else:
            return Gst
    raise MissingExtraError(f"GStreamer cannot be used: {problem}", fix=INSTALL) from cause

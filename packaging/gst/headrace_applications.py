"""Lets plain Python find what applications for DeepStream import, where no other package has it.

Python reads `headrace_applications.pth` at its start, which adds the finders: a few microseconds.
`HEADRACE_GST=0` switches them off.
"""

import sys

_NAMES = ("gi", "pyds", "pyservicemaker")


class Finder:
    """Stands behind all other finders: what is installed wins."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Answer the names that applications import; `cuda` once `gi` is there."""
        cuda = name.partition(".")[0] == "cuda" and "gi" in sys.modules
        if name not in _NAMES and not cuda:
            return None
        from headrace.gstreamer.applications import application_spec

        return application_spec(name)


class Forerunner:
    """Stands before all other finders and finds nothing of its own."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Take the compiler's unwinder before GStreamer is there, and watch `Gst`.

        The first `Gst.init` of an application registers the elements.
        """
        if name != "gi" and name != "gi.repository.Gst":
            return None
        from headrace.gstreamer import hook

        return hook.Forerunner.find_spec(name, path, target)


def install():
    """Add the finders to this Python."""
    sys.meta_path.insert(0, Forerunner())
    sys.meta_path.append(Finder())

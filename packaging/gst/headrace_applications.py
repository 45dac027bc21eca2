"""Lets plain Python find what applications for DeepStream import, where no other package has it.

Python reads `headrace_applications.pth` at its start, which adds the finders: a few microseconds.
`HEADRACE_GST=0` switches them off.
"""

import sys

_NAMES = ("gi", "pyds", "pyservicemaker", "cuda", "cuda.cuda", "cuda.cudart")


class Finder:
    """Stands behind all other finders: what is installed wins."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Answer the names that applications import."""
        if name not in _NAMES:
            return None
        from headrace.gstreamer.applications import application_spec

        return application_spec(name)


class Forerunner:
    """Stands before all other finders, finds nothing, and goes once `gi` is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Take the compiler's unwinder before GStreamer is there."""
        if name == "gi":
            from headrace._core.unwinder import keep_unwinder

            keep_unwinder()
            sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, Forerunner)]


def install():
    """Add the finders to this Python."""
    sys.meta_path.insert(0, Forerunner())
    sys.meta_path.append(Finder())

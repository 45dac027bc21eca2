"""Lets plain Python find what applications for DeepStream import, where no other package has it.

Python reads `headrace_applications.pth` at its start, which adds the finders: a few microseconds.
`HEADRACE_GST=0` switches them off.
"""

import os
import sys

_CUDA = ("cuda", "cuda.cuda", "cuda.cudart")


class Finder:
    """Stands behind all other finders: what is installed wins."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Answer `gi` with the distribution's; `pyds`, `pyservicemaker`, `cuda` with Headrace's."""
        if name == "gi":
            from headrace.gstreamer.pyds.loading import distribution_spec

            return distribution_spec()
        if name == "pyservicemaker":
            from headrace.gstreamer.servicemaker.importing import package_spec

            return package_spec()
        if name == "pyds" or (name in _CUDA and "gi.repository.Gst" in sys.modules):
            from headrace.gstreamer.elements.applications import application_spec

            return application_spec(name)
        return None


class Forerunner:
    """Stands before all other finders, finds nothing, and goes once `gi` is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Take the compiler's unwinder before GStreamer is there."""
        if name == "gi":
            keep_unwinder()
            sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, Forerunner)]


def keep_unwinder():
    """Let C++ exceptions of all libraries be handled by the compiler's own unwinder.

    GStreamer brings libunwind, which has functions of the same names. Whatever is loaded behind it
    would take these, and a C++ exception within onnxruntime, a library of Headrace's or a user's
    ends the process. It helps before GStreamer is loaded only.
    """
    import _ctypes  # without the package over it, which takes ten times as long
    from contextlib import suppress

    with suppress(OSError):  # another compiler's system
        _ctypes.dlopen("libgcc_s.so.1", os.RTLD_GLOBAL | os.RTLD_NOW)


def install():
    """Add the finders to this Python."""
    sys.meta_path.insert(0, Forerunner())
    sys.meta_path.append(Finder())

"""Lets plain Python find what applications for DeepStream import, where no other package has it.

Python reads `noria_applications.pth` at its start, which adds the finder: a few microseconds.
`NORIA_GST=0` switches it off.
"""

import sys

_CUDA = ("cuda", "cuda.cuda", "cuda.cudart")


class Finder:
    """Stands behind all other finders: what is installed wins."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Answer `gi` with the distribution's; `pyds`, `pyservicemaker` and `cuda` with Noria's."""
        if name == "gi":
            from noria.pyds.loading import distribution_spec

            return distribution_spec()
        if name == "pyservicemaker":
            from noria.servicemaker.importing import package_spec

            return package_spec()
        if name == "pyds" or (name in _CUDA and "gi.repository.Gst" in sys.modules):
            from noria.gst.applications import application_spec

            return application_spec(name)
        return None

"""Modules that applications import: `gi`, `pyds`, `pyservicemaker`, `cuda`."""

from __future__ import annotations

import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from headrace._core.unwinder import keep_unwinder
from headrace.gstreamer.hook import Forerunner
from headrace.gstreamer.pyds.loading import distribution_spec
from headrace.trt.scripts.script import ALIASES, stand_in

_MODULES = ("flow", "logging", "osd", "postprocessing", "signal", "utils")


class _PackageLoader(Loader):
    """Gives `headrace.gstreamer.servicemaker`.

    Its modules are in place before the import system looks for their files: else a second copy of
    each would be loaded, with other classes.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Put the modules in place and give the package."""
        from headrace.gstreamer import servicemaker

        for name in _MODULES:
            sys.modules[f"{spec.name}.{name}"] = getattr(servicemaker, name)
        native = ModuleType(f"{spec.name}._pydeepstream")
        vars(native).update(signal=servicemaker.signal, __path__=[])
        sys.modules[native.__name__] = native
        sys.modules[f"{native.__name__}.signal"] = servicemaker.signal
        return servicemaker

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported."""


class _PydsLoader(Loader):
    """Gives `pyds`, with the elements registered."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Register the elements and give Headrace's module."""
        from headrace.gstreamer import pyds
        from headrace.gstreamer.elements.register import register

        register()
        return pyds

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported."""


def application_spec(name: str) -> ModuleSpec | None:
    """Return the module of a name that an application imports; None if there is none.

    `gi` is the distribution's, `pyds` and `pyservicemaker` are Headrace's, and so are `cuda` and
    its modules once `gi` is there.
    """
    if name == "gi":
        return distribution_spec()
    if name == "pyds":
        return ModuleSpec(name, _PydsLoader())
    if name == "pyservicemaker":
        return ModuleSpec(name, _PackageLoader(), is_package=True)
    cuda = name.partition(".")[0] == "cuda" and name in ALIASES
    return stand_in(name) if cuda and "gi" in sys.modules else None


class _Finder:
    """Stands behind all other finders: installed packages win."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Look for a module of applications."""
        return application_spec(name)


def provide() -> None:
    """Let applications of this process find their modules from now on.

    Every Python does so where the distribution headrace-gst is installed.
    """
    keep_unwinder()
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, Forerunner)
        sys.meta_path.append(_Finder)

"""The package `pyservicemaker` that applications import."""

from __future__ import annotations

import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

from headrace.gstreamer import servicemaker

_MODULES = ("flow", "osd", "postprocessing", "signal", "utils")


class _PackageLoader(Loader):
    """Gives `headrace.gstreamer.servicemaker`.

    Its modules are in place before the import system looks for their files: else a second copy of
    each would be loaded, with other classes.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Put the modules in place and give the package."""
        for name in _MODULES:
            sys.modules[f"{spec.name}.{name}"] = getattr(servicemaker, name)
        native = ModuleType(f"{spec.name}._pydeepstream")
        vars(native).update(signal=servicemaker.signal, __path__=[])
        sys.modules[native.__name__] = native
        sys.modules[f"{native.__name__}.signal"] = servicemaker.signal
        return servicemaker

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported."""


def package_spec() -> ModuleSpec:
    """Return the package for the import system."""
    return ModuleSpec("pyservicemaker", _PackageLoader(), is_package=True)

"""Modules that applications import: `pyds`, with the elements registered, and `gi`."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from noria.pyds.loading import provide_bindings


class _Finder(MetaPathFinder, Loader):
    """Answers `pyds` where no other package does: on a machine with DeepStream, its own wins."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Look for `pyds`."""
        return ModuleSpec(name, self) if name == "pyds" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Register the elements and give Noria's module."""
        from noria import pyds
        from noria.gst.register import register

        register()
        return pyds

    def exec_module(self, module: ModuleType) -> None:
        """It ran when it was imported."""


def provide() -> None:
    """From now on applications of this process find `pyds` and `gi`."""
    provide_bindings()
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())

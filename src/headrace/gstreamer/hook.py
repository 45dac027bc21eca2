"""A watch on `gi.repository.Gst`: its first `init` of an application brings the elements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

import headrace
from headrace._core.errors import HeadraceError
from headrace._core.text import printable
from headrace._core.unwinder import keep_unwinder

GST = "gi.repository.Gst"
_MARK = "_headrace_watched"


class _WatchedLoader(Loader):
    """Loads the module as its own loader does, then watches it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module; PyGObject's loader of the older protocol also fills it."""
        if hasattr(self._loader, "exec_module"):
            made: ModuleType | None = self._loader.create_module(spec)
            return made
        loaded: ModuleType = self._loader.load_module(spec.name)
        return loaded

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module and watch it."""
        if hasattr(self._loader, "exec_module"):
            self._loader.exec_module(module)
        watch(module)


class Forerunner:
    """Stands before all other finders: takes the compiler's unwinder early, and watches Gst."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find nothing but `Gst`, and that through the other finders."""
        if name == "gi":
            keep_unwinder()
        return watched_spec(name, path, target) if name == GST else None


def watched_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
    """Find a module by all finders but forerunners; its loader watches it afterwards."""
    for finder in sys.meta_path:
        if getattr(finder, "__name__", type(finder).__name__) == Forerunner.__name__:
            continue
        spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
        if spec is not None:
            if spec.loader is not None:
                spec.loader = _WatchedLoader(spec.loader)
            return spec
    return None


def watch(gst: Any) -> None:
    """Let `init` and `init_check` register the elements, and answer as on the first call.

    Headrace may have initialised GStreamer before: the bindings would then answer with a bare
    True, where an application that is first takes a pair apart.

    Args:
        gst: the module; a second watch does nothing.
    """
    if getattr(gst, _MARK, False):
        return
    setattr(gst, _MARK, True)
    gst.init = _registering(gst.init, lambda rest: rest)
    gst.init_check = _registering(gst.init_check, lambda rest: (True, rest))
    add = vars(gst.Bin).get("add")
    if isinstance(add, FunctionType):  # GstPython's own raises, and answers nothing
        gst.Bin.add = _true_of(add)


def _true_of(function: Callable[..., object]) -> Callable[..., bool]:
    """Let a function that raises where it fails answer True, as C's does: applications look."""

    @wraps(function)
    def call(*arguments: Any) -> bool:
        function(*arguments)
        return True

    return call


def unwatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the bindings behind a watched one."""
    return getattr(function, "__wrapped__", function)


def _registering(
    function: Callable[..., Any], first_answer: Callable[[list[str]], object]
) -> Callable[..., Any]:
    calls: list[None] = []

    @wraps(function)
    def initialise(argv: Sequence[str] | None = None) -> object:
        answer = function(argv)
        if answer is True and not calls:
            answer = first_answer(list(argv or ()))
        calls.append(None)
        _register()
        return answer

    return initialise


def _register() -> None:
    """Register the elements; where that fails, say so: the application runs on."""
    try:
        headrace._wiring.register_elements()
    except (HeadraceError, ImportError) as error:
        text = f"warning: DeepStream's elements are not there: {error}"
        print(printable(text), file=sys.stderr)

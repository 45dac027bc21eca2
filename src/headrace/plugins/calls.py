"""Call the user's plugin: traced, and every failure reported with plugin, layer and method.

Exceptions are carried as the cause of the error that is raised. Those that reach no caller, and all
of them after `announce`, are printed as the original prints them:
`[ERROR] Exception caught in clone(): …`. Source: tensorrt-plugins spec 14.1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from headrace._core import _native
from headrace._core.errors import HeadraceError, PluginError
from headrace._core.text import error_text, printable
from headrace._core.user_module import describe
from headrace.plugins import trace
from headrace.plugins.spoken import called, origin_of, spoken
from headrace.plugins.trace import Phase
from headrace.plugins.types import PluginCapabilityType

_asked: ContextVar[bool] = ContextVar("asked", default=False)
"""Whether a creator is called from here, not by a script."""


class _Announced:
    at_once = False


def announce() -> None:
    """Print every exception from now on when it happens.

    For scripts, which see None or False alone where the original returns those.
    """
    _Announced.at_once = True


class _Dying:
    tell: Callable[[str], None] | None = None
    outer = ""


def name_calls(tell: Callable[[str], None]) -> None:
    """Let `tell` hear of each call before it is made, and of an empty text behind it.

    For a process that may die of one, and whose report names it.
    """
    _Dying.tell = tell


@contextmanager
def within(call: str) -> Iterator[None]:
    """Name a call of other user's code that makes calls of plugins; it begins with `FUNCTION`."""
    tell, before = _Dying.tell, _Dying.outer
    if tell is None:
        yield
        return
    _Dying.outer = call
    tell(call)
    try:
        yield
    finally:
        _Dying.outer = before
        tell(before)


def _ask(target: object, method: str, arguments: tuple[object, ...] | None) -> Any:
    """Call a method, or read an attribute with arguments of None."""
    tell = _Dying.tell
    if tell is None:
        found = getattr(target, method)
        return found if arguments is None else found(*arguments)
    tell(called(target, method))
    try:
        found = getattr(target, method)
        return found if arguments is None else found(*arguments)
    finally:
        tell(_Dying.outer)


class Instance:
    """One plugin object with its names for errors.

    It keeps the user's object alive.
    """

    __slots__ = ("_done", "_faces", "layer", "name", "plugin")

    def __init__(self, plugin: object, layer: str, name: str = "") -> None:
        self.plugin = plugin
        self.layer = layer
        self.name = name or trace.label(plugin)
        self._done = False
        self._faces: dict[PluginCapabilityType, object] = {}

    @property
    def where(self) -> str:
        """For errors: plugin and layer."""
        return origin_of(self.plugin) + _where(self.name, self.layer)

    @property
    def library(self) -> str:
        """The file of a compiled plugin; empty for others."""
        return str(getattr(self.plugin, "library", ""))

    def call(self, phase: Phase, method: str, *arguments: object, face: object = None) -> object:
        """Call `method`, on the capability `face` if given.

        Raises:
            PluginError: the method is missing, or raised.
        """
        target = self.plugin if face is None else face
        if not trace.active():
            try:
                return _ask(target, method, arguments)
            except Exception as error:
                raise _failed(error, target, method, self.where) from error
        return _traced(phase, self.layer, self.where, target, method, arguments)

    def get(self, phase: Phase, attribute: str, face: object = None) -> object:
        """Read an attribute (`num_outputs` …).

        Raises:
            PluginError: it is missing, or its property raised.
        """
        target = self.plugin if face is None else face
        started = time.perf_counter()
        value, text = None, ""
        try:
            value = _ask(target, attribute, None)
        except AttributeError as error:
            text = f"the plugin has no attribute {attribute}"
            raise PluginError(
                text,
                where=self.where,
                expected=f"{attribute} set in __init__ of {type(target).__name__}",
                data={"method": attribute},
            ) from error
        except Exception as error:
            text = error_text(error)
            raise _failed(error, target, attribute, self.where) from error
        finally:
            if trace.active():
                trace.record((phase, self.layer, target, attribute, ()), value, started, text)
        return value

    def peek(self, attribute: str, face: object) -> object:
        """Read an attribute of a face that may be missing: None then. It is not traced.

        Raises:
            PluginError: its property raised.
        """
        try:
            return _ask(face, attribute, None)
        except AttributeError:
            return None
        except Exception as error:
            raise _failed(error, face, attribute, self.where) from error

    def face(self, phase: Phase, kind: PluginCapabilityType) -> object:
        """The object with the methods of `kind`, of a plugin of version 3.

        Raises:
            PluginError: there is none, or it is another one than before.
        """
        method = "get_capability_interface"
        capability = self.call(phase, method, kind)
        if capability is None:
            raise wrong(self, method, f"None for {kind.name}", "an object with its methods")
        if self._faces.setdefault(kind, capability) is not capability:
            text = f"another object for {kind.name} than before"
            raise wrong(self, method, text, "the same object every time")
        return capability

    def known(self, kind: PluginCapabilityType) -> object:
        """A capability that was asked for already."""
        return self._faces[kind]

    def ask(
        self, phase: Phase, kind: PluginCapabilityType, method: str, *arguments: object
    ) -> object:
        """Call a method of a capability."""
        return self.call(phase, method, *arguments, face=self.face(phase, kind))

    def read(self, phase: Phase, kind: PluginCapabilityType, attribute: str) -> object:
        """Read an attribute of a capability."""
        return self.get(phase, attribute, face=self.face(phase, kind))

    def clone(self, phase: Phase) -> Instance:
        """A clone of the plugin, of the same class.

        Raises:
            PluginError: `clone` failed, or gave something else, or the plugin itself.
        """
        return self.checked_copy(self.call(phase, "clone"), "clone")

    def checked_copy(self, copy: object, method: str) -> Instance:
        """Wrap a plugin that `method` returned as a copy of this one, for the same layer.

        Raises:
            PluginError: it is no plugin of the same class, or the very same object.
        """
        if copy is self.plugin:
            raise wrong(self, method, "the plugin itself", "a new plugin")
        if not isinstance(copy, type(self.plugin)) and not isinstance(self.plugin, type(copy)):
            raise wrong(self, method, _what(copy), f"a new {type(self.plugin).__name__}")
        return Instance(copy, self.layer, self.name)

    def destroy(self, phase: Phase = "destroy") -> None:
        """Call `destroy`, once however often this is called; its exception is printed only."""
        if self._done:
            return
        self._done = True
        self.quietly(phase, "destroy")

    def quietly(self, phase: Phase, method: str, *arguments: object) -> None:
        """Call a method on the way out: a failure is printed, and the rest goes on."""
        try:
            self.call(phase, method, *arguments)
        except PluginError as error:
            if not _Announced.at_once:
                print_failure(error.__cause__, method)

    def __repr__(self) -> str:
        return f"Instance({self.where})"


class Rollback:
    """Destroy added plugin objects, attached ones detached, if the block ends without `keep`."""

    def __init__(self) -> None:
        self._instances: list[Instance] = []
        self._attached: list[Instance] = []

    def add(self, instance: Instance) -> Instance:
        """Add an object."""
        self._instances.append(instance)
        return instance

    def detach(self, instance: Instance) -> None:
        """Mark an added object as attached to a context: it is detached before it is destroyed."""
        self._attached.append(instance)

    def keep(self) -> None:
        """Release all objects: they have an owner from now on."""
        self._instances.clear()
        self._attached.clear()

    def __enter__(self) -> Rollback:
        return self

    def __exit__(self, *_: object) -> None:
        for instance in self._instances:
            if instance in self._attached:
                instance.quietly("destroy", "detach_from_context")
            instance.destroy()


def call_creator(
    creator: object, phase: Phase, layer: str, method: str, *arguments: object
) -> object:
    """Call a creator; the result is a plugin.

    Raises:
        PluginError: the method is missing or raised, or gave None.
    """
    name = f"creator of {getattr(creator, 'name', type(creator).__name__)}"
    where = origin_of(creator) + _where(name, layer)
    before = _asked.set(True)
    try:
        plugin = _traced(phase, layer, where, creator, method, arguments)
    finally:
        _asked.reset(before)
    if plugin is None:
        raise PluginError(
            f"{spoken(creator, method)} returned {'null' if hasattr(creator, 'native') else None}",
            where=where,
            expected="a plugin",
            data={"method": method, "phase": phase},
        )
    return plugin


def none_in_scripts(method: Callable[..., object]) -> Callable[..., Any]:
    """Decorate a creator's method that scripts may call themselves.

    After `announce` it prints errors and returns None, as the original does.
    """

    @wraps(method)
    def answering(*arguments: object, **named: object) -> object:
        try:
            return method(*arguments, **named)
        except HeadraceError as error:
            if _asked.get() or not _Announced.at_once:
                raise
            print_failure(error, method.__name__)
            return None

    return answering


def wrong(instance: Instance, method: str, answer: str, expected: str) -> PluginError:
    """The error for a result that cannot be."""
    return PluginError(
        f"{spoken(instance.plugin, method)} returned {answer}",
        where=instance.where,
        expected=expected,
        data={"method": method},
    )


def _traced(
    phase: Phase, layer: str, where: str, target: object, method: str, arguments: tuple[object, ...]
) -> object:
    call = phase, layer, target, method, arguments
    trace.begin(call)
    started = time.perf_counter()
    try:
        result = _ask(target, method, arguments)
    except Exception as error:
        trace.record(call, None, started, error_text(error))
        raise _failed(error, target, method, where) from error
    creates = method in ("clone", "attach_to_context", "create_plugin", "deserialize_plugin")
    trace.record(call, result, started, creates=creates)
    return result


def _failed(error: Exception, target: object, method: str, where: str) -> PluginError:
    if _Announced.at_once:
        print_failure(error, method)
    text, line, trail = describe(error, Path("/"))
    hints = trail[-2:] if line else []
    if isinstance(error, HeadraceError):  # it says how to put it right: all of it stays
        said = "status" in error.data  # it names the method
        finding = error.finding.changed(prefix="" if said else f"{spoken(target, method)} failed: ")
        finding = replace(finding, data={"method": method, **finding.data})
        return PluginError(finding, where=where, fix=hints, code=PluginError.code)
    words = f"raised {text}"
    if hasattr(target, "native"):  # of C++
        if isinstance(error, _native.CustomCodeError):
            words = f"threw {printable(str(error))}"
        elif isinstance(error, (ValueError, TypeError)):  # it returned what cannot be
            words, hints = f"failed: {printable(str(error))}", []
    return PluginError(
        f"{spoken(target, method)} {words}",
        where=where,
        fix=hints,
        data={"method": method, "raised": type(error).__name__, **_clause(error)},
    )


def _clause(error: Exception) -> dict[str, str]:
    """The clause of the contract that an error names, if it does."""
    clause = getattr(error, "clause", None)
    return {"clause": clause} if isinstance(clause, str) else {}


def print_failure(error: BaseException | None, method: str) -> None:
    """Print an exception that reaches no caller, as the original does."""
    text = "" if error is None else error_text(error, kind=False)
    print(printable(f"[ERROR] Exception caught in {method}(): {text}"), file=sys.stderr)


def _where(name: str, layer: str) -> str:
    return f"plugin {name}, layer {layer!r}" if layer else f"plugin {name}"


def _what(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"

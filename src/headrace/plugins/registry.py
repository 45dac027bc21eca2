"""The registry: creators by (name, version, namespace).

Source: tensorrt-plugins spec 9.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import headrace
from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.near import near_names
from headrace._core.text import printable, quoted
from headrace._core.user_module import describe, import_file
from headrace.plugins.base import IPluginCreator, IPluginCreatorInterface
from headrace.plugins.creator_key import Key, key_of, namespace_of
from headrace.plugins.loading import (
    FUNCTIONS,
    PYTHON_SUFFIXES,
    code_of,
    file_being_loaded,
    file_being_served,
    is_loaded,
    loading,
    note_loaded,
    note_opened,
)

if TYPE_CHECKING:
    from headrace.plugins.base import AnyCreator


TWINS: dict[str, Path] = {}
"""Name of a compiled library, without its folder -> file of plugins that stands for it."""


def register_module(module: ModuleType, path: Path, registry: PluginRegistry) -> None:
    """Register the creators of a module that was run already, as `load_library` would.

    Raises:
        CustomLibraryError: see `creators_of`.
    """
    for creator in creators_of(module, registry, path):
        registry.register_creator(creator, creator.plugin_namespace)


def load_given(path: Path, registry: PluginRegistry) -> None:
    """Load a file that must be one of plugins, unless it is loaded as it stands.

    Raises:
        CustomLibraryError: it is of an unknown kind, or fails.
    """
    path = path.absolute()
    if not is_loaded(path):
        registry.load_library(path)
        note_loaded(path)


def open_plugin_file(
    path: Path, registry: PluginRegistry
) -> tuple[ModuleType | None, list[AnyCreator]]:
    """Load a file; the module, and the creators in it that are not registered yet.

    Raises:
        CustomLibraryError: missing, of an unknown kind, or it failed.
    """
    path = TWINS.get(path.name, path)
    if not path.is_file():
        raise CustomLibraryError("there is no such plugin library", where=str(path))
    if path.suffix.lower() in PYTHON_SUFFIXES:
        module = import_file(path)
        return module, creators_of(module, registry, path)
    creators = headrace._wiring.open_plugins(path, registry)
    if creators is not None:
        return None, creators
    raise CustomLibraryError(
        "compiled plugins cannot be loaded from this file",
        where=str(path),
        expected="a Python file of plugins (.py), or a library of plugins that headrace compile "
        "made",
        fix="write the plugin in Python and register it under the same name, version and "
        "namespace: headrace init --plugin NAME writes a template",
    )


def creators_of(module: ModuleType, registry: PluginRegistry, path: Path) -> list[AnyCreator]:
    """The creators of a module that were not registered when it ran.

    Raises:
        CustomLibraryError: `get_plugin_creators` failed, or a creator cannot be made.
    """
    for name in FUNCTIONS:
        function = getattr(module, name, None)
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            return list(_guarded(function, name, path))
    registered = {type(creator) for creator in registry.all_creators}
    creators = []
    for name, value in vars(module).items():
        is_own = inspect.isclass(value) and value.__module__ == module.__name__
        if not is_own or not issubclass(value, IPluginCreatorInterface) or name.startswith("_"):
            continue
        if value not in registered and _takes_nothing(value):
            creators.append(_guarded(value, name, path))
    return creators


def _guarded(function: Any, name: str, path: Path) -> Any:
    try:
        return function()
    except Exception as error:
        text, line, trail = describe(error, path.parent)
        raise CustomLibraryError(
            f"{name}() raised {text}", where=line or str(path), fix=trail
        ) from error


def _takes_nothing(cls: type) -> bool:
    try:
        inspect.signature(cls).bind()
    except (TypeError, ValueError):
        return False
    return True


log = logging.getLogger("headrace.plugins")


@dataclass(frozen=True, slots=True, eq=False)
class LoadedLibrary:
    """A library and the creators that came with it; the handle for `deregister_library`."""

    path: Path
    creators: tuple[AnyCreator, ...]
    module: ModuleType | None = None


class PluginRegistry:
    """Creators by (name, version, namespace); versions are compared as text.

    Args:
        parent: searched for what is not found here, while `parent_search_enabled`.

    Attributes:
        parent_search_enabled: whether look-ups go on in the parent.
        error_recorder: an `IErrorRecorder` that is given failed look-ups, or None.
        notices: collisions, and libraries that could not be loaded.
        replaceable: ids of creators that give way to others of the same triple (standard plugins).
    """

    error_recorder: object
    parent_search_enabled: bool

    def __init__(self, parent: PluginRegistry | None = None) -> None:
        self.parent = parent
        self.parent_search_enabled = True
        self.error_recorder = None
        self.notices: list[Finding] = []
        self.replaceable: set[int] = set()
        self._creators: dict[Key, AnyCreator] = {}
        self._origins: dict[Key, Path | None] = {}
        self._aliases: dict[Key, Key] = {}
        self._behind: dict[Key, dict[Path, AnyCreator]] = {}
        self._resources: dict[str, list[Any]] = {}
        self._lock = threading.RLock()

    def register_creator(self, creator: AnyCreator, plugin_namespace: str = "") -> bool:
        """Add a creator, and set its namespace.

        The same file loaded again replaces its own creators; a standard plugin gives way. A
        creator of version 3 with a namespace of its own keeps that if `plugin_namespace` is empty;
        it is found under both. One whose triple another file has taken serves its own file alone:
        `of_file` has it, and `find` for engines that its code made.

        Returns:
            False if (name, version, namespace) is taken: `notices` says by what other creator.

        Raises:
            CustomLibraryError: not a creator; a name or version is missing or too long.
        """
        asked = key_of(creator, plugin_namespace)
        key = key_of(creator, namespace_of(creator, plugin_namespace))
        origin = file_being_loaded()
        with self._lock:
            before = self._creators.get(key)
            if before is creator:
                return False
            same_file = origin is not None and self._origins.get(key) == origin
            if before is not None and not same_file and id(before) not in self.replaceable:
                self._note_collision(key, creator, origin)
                if origin is not None:
                    self._behind.setdefault(key, {})[origin] = creator
                return False
            if before is not None:
                self.replaceable.discard(id(before))
            self._creators[key] = creator
            self._origins[key] = origin
            if origin is not None and key in self._behind:
                self._behind[key].pop(origin, None)
            if asked != key:
                self._aliases.setdefault(asked, key)
        log.debug("Registered plugin creator - %s::%s version %s", key[2], key[0], key[1])
        return True

    def deregister_creator(self, creator: AnyCreator | None) -> bool:
        """Remove a creator; False if it is not here."""
        with self._lock:
            for others in self._behind.values():
                for file, known in others.items():
                    if known is creator:
                        del others[file]
                        return True
            for key, known in self._creators.items():
                if known is creator:
                    del self._creators[key], self._origins[key]
                    self._aliases = {a: k for a, k in self._aliases.items() if k != key}
                    return True
        return False

    def candidates(self, name: str, version: str, namespace: str) -> list[AnyCreator]:
        """The creator that `find` gives of here, then those that serve their own files alone."""
        key = (name, version, namespace)
        with self._lock:
            key = key if key in self._creators else self._aliases.get(key, key)
            first = [self._creators[key]] if key in self._creators else []
            return [*first, *self._behind.get(key, {}).values()]

    def of_file(self, path: Path) -> PluginRegistry:
        """This registry as models of a file see it: the file's own creators go first."""
        path = path.absolute()
        with self._lock:
            own = {key: others[path] for key, others in self._behind.items() if path in others}
            if not own:
                return self
            front = PluginRegistry(self)
            front._creators = own
            front._origins = dict.fromkeys(own, path)
            return front

    def creators_of(self, path: Path) -> list[AnyCreator]:
        """The creators that a file registered, whether others had their names or not."""
        path = path.absolute()
        with self._lock:
            first = [
                c
                for key, c in self._creators.items()
                if self._origins[key] == path or getattr(c, "library", "") == str(path)
            ]
            return [*first, *(o[path] for o in self._behind.values() if path in o)]

    def find(
        self, name: str, version: str = "1", namespace: str = "", code: str = ""
    ) -> AnyCreator | None:
        """The creator of that name, version and namespace, here or in a parent; None if absent.

        `code` is the hash of the file that made an engine (`code_of`): of several creators the
        file's own is found.
        """
        key = (name, version, namespace)
        with self._lock:
            creator = self._creators.get(key) or self._creators.get(self._aliases.get(key, key))
        if code and self._behind:
            among = self.candidates(*key)
            creator = next((c for c in among if code_of(c) == code), creator)
        if creator is not None:
            log.debug("%s found %s creator.", self._called, name)
            return creator
        log.debug(
            "%s did not find %s creator. Will try parent registry if enabled.", self._called, name
        )
        if self.parent is not None and self.parent_search_enabled:
            return self.parent.find(name, version, namespace, code)
        return None

    def get_creator(self, type: str, version: str, plugin_namespace: str = "") -> AnyCreator | None:
        """As `find`; logs an error if there is none."""
        creator = self.find(type, version, plugin_namespace)
        if creator is None:
            text = (
                "IPluginRegistry::getCreator: Error Code 4: API Usage Error (Cannot find plugin: "
                f"{type}, version: {version}, namespace:{plugin_namespace}.)"
            )
            self._report(text)
        return creator

    def get_plugin_creator(
        self, type: str, version: str, plugin_namespace: str = ""
    ) -> AnyCreator | None:
        """As `get_creator`, for creators of the version-2 line only."""
        creator = self.get_creator(type, version, plugin_namespace)
        return creator if isinstance(creator, IPluginCreator) else None

    @property
    def all_creators(self) -> list[AnyCreator]:
        """The creators of this registry."""
        with self._lock:
            return list(self._creators.values())

    @property
    def all_creators_recursive(self) -> list[AnyCreator]:
        """The creators of this registry and its parents."""
        above = self.parent.all_creators_recursive if self.parent is not None else []
        return [*self.all_creators, *above]

    @property
    def plugin_creator_list(self) -> list[IPluginCreator]:
        """The creators of the version-2 line."""
        return [c for c in self.all_creators if isinstance(c, IPluginCreator)]

    def versions(self, name: str) -> list[tuple[str, str]]:
        """(version, namespace) of each creator called `name`, here and in parents; for errors."""
        return [
            (c.plugin_version, c.plugin_namespace)
            for c in self.all_creators_recursive
            if c.name == name
        ]

    def near(self, name: str, version: str, namespace: str) -> list[str]:
        """List creators near one that is not registered, for errors.

        Those of the same name; if there are none, similar names.
        """
        if others := self.versions(name):
            there = "; ".join(f"version {v}, namespace {n!r}" for v, n in others)
            return [
                f"plugin {name} is registered as {there}, not as version {version}, "
                f"namespace {namespace!r}"
            ]
        close = near_names(name, {c.name for c in self.all_creators_recursive}, 2)
        similar = ", ".join(map(quoted, close))
        return [f"registered plugins with a similar name: {similar}"] if close else []

    def load_library(self, plugin_path: str | Path) -> LoadedLibrary | None:
        """Load a file of plugins and register its creators.

        A Python file is run. Its creators are those it registers itself, those that a function
        `get_plugin_creators()` of it gives, and the creator classes in it that take no arguments.

        Returns:
            A handle for `deregister_library`; None if a creator of it is taken (see `notices`), or
            if the file is loaded, as it stands.

        Raises:
            CustomLibraryError: there is no such file, it fails to load, or it cannot be loaded
                here.
        """
        path = Path(plugin_path).absolute()
        if not note_opened(path) and self.come_from(path):
            self._report(f"{path}: its creators are registered already")
            return None
        before = {id(c) for c in self.all_creators}
        with loading(path):
            module, creators = open_plugin_file(path, self)
            held = {id(c) for c in self.all_creators}
            new = [c for c in creators if id(c) not in held]
            taken = [c for c in new if not self.register_creator(c, c.plugin_namespace)]
        if taken:
            return None
        here = tuple(c for c in self.all_creators if id(c) not in before)
        return LoadedLibrary(path, here, module)

    def come_from(self, path: Path) -> bool:
        """Whether a creator here was registered by that file."""
        return bool(self.creators_of(path))

    def deregister_library(self, handle: LoadedLibrary | None) -> None:
        """Remove the creators of a library; nothing for the None of a library that failed."""
        for creator in handle.creators if handle is not None else ():
            self.deregister_creator(creator)

    def acquire_plugin_resource(self, key: str, resource: Any) -> Any:
        """The resource kept under `key`: a clone of `resource` if there was none."""
        with self._lock:
            entry = self._resources.get(key)
            if entry is None:
                entry = self._resources[key] = [resource.clone(), 0]
            entry[1] += 1
            return entry[0]

    def release_plugin_resource(self, key: str) -> bool:
        """Undo one `acquire_plugin_resource`; the last one releases. False if there is none."""
        with self._lock:
            entry = self._resources.get(key)
            if entry is None:
                return False
            entry[1] -= 1
            if entry[1] == 0:
                del self._resources[key]
                entry[0].release()
            return True

    def _report(self, text: str) -> None:
        log.error("%s", printable(text))
        if self.error_recorder is not None:
            headrace._wiring.record_error(self.error_recorder, printable(text))

    @property
    def _called(self) -> str:
        return "Local registry" if self.parent is not None else "Global registry"

    def _note_collision(self, key: Key, creator: AnyCreator, origin: Path | None) -> None:
        other = self._origins.get(key)
        name, version, namespace = key
        text = (
            f"plugin {name}, version {version}, namespace {namespace!r} is registered already "
            f"({other or type(self._creators[key]).__name__}): {type(creator).__name__} "
            + ("serves its own file alone" if origin else "is not used")
        )
        notice = Finding("plugin-twice", "warning", text, str(origin) if origin else None)
        if notice not in self.notices:
            self.notices.append(notice)
        self._report(text)

    def __repr__(self) -> str:
        return f"PluginRegistry({len(self._creators)} creators)"


_global = PluginRegistry()


def get_plugin_registry() -> PluginRegistry:
    """The registry of this process."""
    return _global


ENTRY_POINTS = "headrace.plugins"
"""Group of entry points. Each names a module of plugins, a creator class, or a function that is
called with the registry."""

NAMED_LIBRARIES = "HEADRACE_PLUGINS"
"""Variable with files of plugins, separated by colons, that are loaded before all others."""

_lock = threading.Lock()
_done = False


def known_plugins() -> PluginRegistry:
    """Get the registry of this process with standard plugins and those of installed packages.

    The first call adds them. A creator that is there already stays. While a file is served
    (`headrace.plugins.loading.serving`), its own creators go first.
    """
    global _done
    registry = get_plugin_registry()
    with _lock:
        if not _done:
            _done = True
            _load_named(registry)
            _load_entry_points(registry)
            _load_standard(registry)
    file = file_being_served()
    return registry if file is None else registry.of_file(file)


def _load_standard(registry: PluginRegistry) -> None:
    before = {id(c) for c in registry.all_creators}
    headrace._wiring.register_standard(registry)
    registry.replaceable.update(id(c) for c in registry.all_creators if id(c) not in before)


def _load_named(registry: PluginRegistry) -> None:
    """Load the libraries that the environment names (`headrace.custom.preloaded`)."""
    for name in filter(None, os.environ.get(NAMED_LIBRARIES, "").split(":")):
        try:
            load_given(Path(name), registry)
        except HeadraceError as error:
            text = f"plugins of {name} are not loaded: {error:brief}"
            registry.notices.append(Finding("plugin-failed", "warning", text, NAMED_LIBRARIES))


def _load_entry_points(registry: PluginRegistry) -> None:
    from importlib.metadata import entry_points  # slow to import, and rarely asked

    for point in entry_points(group=ENTRY_POINTS):
        try:
            _register(point.load(), registry)
        except Exception as error:
            said = f"{error:brief}" if isinstance(error, HeadraceError) else f"{error}"
            text = f"plugins of {point.value} are not loaded: {type(error).__name__}: {said}"
            where = f"entry point {point.name}"
            registry.notices.append(Finding("plugin-failed", "warning", text, where))


def _register(thing: Any, registry: PluginRegistry) -> None:
    if inspect.ismodule(thing):
        creators = creators_of(thing, registry, Path(thing.__file__ or thing.__name__))
    elif inspect.isclass(thing):
        creators = [cast("AnyCreator", thing())]
    else:
        creators = thing(registry) or []
    for creator in creators:
        registry.register_creator(creator, creator.plugin_namespace)

"""Plugin factories that a C++ library exports: `NvDsInferPluginFactory{Caffe,Uff,Runtime}Get`.

Each is asked for when the original asks: those of parsers before a model is read, the runtime's
before an engine is read from a file, once for each. What they give goes back to the library's
Destroy function when the network is built, or the engine is gone. Source: custom-library spec 2.2,
2.3 (9 to 11); tensorrt-plugins spec 4.3, 10.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import REVISION, uses_host
from headrace.custom.library import open_library
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.fields import field_of_value
from headrace.plugins.registry import get_plugin_registry
from headrace.trt.host.callback_errors import collected_errors
from headrace.trt.host.creators import (
    LegacyCreator,
    register_given,
    register_legacy,
    with_namespace,
)
from headrace.trt.host.forwarding import fields_to

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

KINDS = ("Caffe", "Uff", "Runtime")
FLOAT = 0


def _get(kind: str) -> str:
    return f"NvDsInferPluginFactory{kind}Get"


def plugin_factories(cfg: ModelConfig, notices: list[Finding]) -> CppFactories | None:
    """Find the plugin factories of the custom library; None if it has none that can be called.

    Notices are appended.

    Raises:
        CustomLibraryError: the library cannot be loaded, or was compiled with older headers.
    """
    path = cfg.custom_lib_path
    if path is None or not path.is_file() or path.suffix.lower() in (".py", ".pyw"):
        return None
    try:
        elf = ElfFile.read(path)
    except (ElfError, OSError):
        return None  # opening it for its parser raises the error
    kinds = [kind for kind in KINDS if _get(kind) in elf.exported()]
    if not kinds:
        return None
    if not uses_host(elf):
        text = f"{_get(kinds[0])} is compiled against TensorRT's own headers: it is not called"
        notices.append(Finding("library-for-tensorrt", "info", text, str(path)))
        return None
    cpp_factories = CppFactories(open_library(path, abi=cfg.custom_lib_abi), path, kinds)
    notices += cpp_factories.notices
    return cpp_factories


class CppFactories:
    """The plugin factories of a C++ library.

    Attributes:
        notices: warnings about the library.
    """

    def __init__(self, library: Any, path: Path, kinds: Sequence[str]) -> None:
        self._native = library.native
        self._path = path
        self._kinds = kinds
        self.notices: list[Finding] = []
        if not _native.library_number(self._native, REVISION):
            raise CustomLibraryError(
                f"{_get(kinds[0])} was compiled with headers of an older headrace",
                where=str(path),
                fix=f"compile the library again: headrace compile … -o {path.name}",
            )
        exported = set(library.symbols()) | set(ElfFile.read(path).exported())
        for kind in kinds:
            destroy = f"NvDsInferPluginFactory{kind}Destroy"
            if destroy not in exported:
                text = f"{_get(kind)} without {destroy}: what it gives is never freed"
                self.notices.append(Finding("factory-leaks", "warning", text, str(path)))
        self._creator: LegacyCreator | None = None
        if "Runtime" in kinds:
            self._creator = LegacyCreator(path.name, self._runtime, str(path))
            register_legacy(self._creator)
            register_given()

    def layers(self, kind: str) -> _Layers | None:
        """Ask for the factory of a parser, `Caffe` or `Uff`; None if the library has none.

        Raises:
            CustomLibraryError: it returned false, threw, or gave an unknown type of factory.
        """
        if kind not in self._kinds:
            return None
        native = self._given(kind)
        return None if native is None else _Layers(native, self._path.name)

    def engine(self) -> tuple[object, str | None]:
        """Ask for the runtime's factory: an engine is about to be read from a file.

        Returns:
            (object that the plan has to hold, why the engine cannot be loaded or None).
        """
        if "Runtime" not in self._kinds:
            return None, None
        try:
            native = self._given("Runtime")
        except CustomLibraryError as error:
            # what is built instead runs with the objects that it was built with
            get_plugin_registry().deregister_creator(self._creator)
            return None, f"{_get('Runtime')}: {error:brief}"
        if native is None:
            return None, None
        waiting = _Waiting(native)
        _waiting[self._path.name] = waiting
        return waiting, None

    def _runtime(self) -> Any:
        """Give the factory for the engine that is being loaded: its file's, or another."""
        waiting = _waiting.pop(self._path.name, None)
        native = waiting.native if waiting is not None else self._given("Runtime")
        if native is None:
            raise ValueError(f"{_get('Runtime')} gave no factory")
        return native

    def _given(self, kind: str) -> Any:
        where = f"{self._path}: {_get(kind)}"
        with collected_errors() as errors, _call_of_code(where):
            succeeded, number, factory = _native.get_plugin_factory(self._native, kind)
        if not succeeded:
            reason = f": {errors.reason}" if errors.reason else ""
            raise CustomLibraryError(f"it returned false{reason}", where=where)
        kinds = {"Caffe": 3, "Uff": 2, "Runtime": 1}[kind]
        if not 0 <= number < kinds:
            raise CustomLibraryError(
                f"it gave a factory of type {number}",
                where=where,
                expected="PLUGIN_FACTORY (0), PLUGIN_FACTORY_EXT (1)"
                + (" or PLUGIN_FACTORY_V2 (2)" if kind == "Caffe" else ""),
            )
        return factory


class _Waiting:
    """The factory for an engine's file, until its layers are loaded."""

    def __init__(self, native: Any) -> None:
        self.native = native


_waiting: weakref.WeakValueDictionary[str, _Waiting] = weakref.WeakValueDictionary()
"""Name of the library -> the factory for the engine read last; the plan holds it."""


class _Layers:
    """A factory of a parser; see `headrace.plugins.imported.LayerFactory`."""

    def __init__(self, native: Any, library: str) -> None:
        self.native = native
        self._library = library

    def takes(self, layer: str) -> bool:
        with _call_of_code(f"{self._library}: isPlugin({layer!r})"):
            return bool(self.native.is_plugin(layer))

    def create(self, layer: str, weights: Sequence[Array], fields: Mapping[str, Any]) -> Any:
        rows = [(FLOAT, np.asarray(w, np.float32).tobytes(), w.size) for w in weights]
        values = [field_of_value(name, value) for name, value in fields.items()]
        collection = PluginFieldCollection(v for v in values if v is not None)
        with _call_of_code(f"{self._library}: createPlugin({layer!r})"):
            plugin = self.native.create(layer, rows, fields_to(collection), "")
        return with_namespace(plugin, self._library)


@contextmanager
def _call_of_code(where: str) -> Iterator[None]:
    """Turn an exception of the library into an error that names the call."""
    try:
        yield
    except _native.CustomCodeError as error:
        raise CustomLibraryError(f"it threw {error}", where=where) from error

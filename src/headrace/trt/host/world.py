"""Answers to calls of C++ libraries, by objects of `headrace.trt` and `headrace.plugins`.

The native module calls every method with the interpreter lock held. An exception is reported
(`callback_errors.py`), and the library's call fails as the original's would, by null or false.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from headrace import trt
from headrace.plugins import types
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.registry import PluginRegistry, known_plugins
from headrace.trt.exports import ENUM_MEMBERS
from headrace.trt.host import creators, details, functions, running
from headrace.trt.host.callback_errors import report_failure, report_log
from headrace.trt.host.callbacks import FromCpp, callback
from headrace.trt.host.forwarding import SharedFields, fields_from, fields_to
from headrace.trt.host.plugins import plugin_v2, plugin_v3

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum


_NAMES = ENUM_MEMBERS["LayerType"][10, 11].split()
_LATER = [name.partition(">=")[0] for name in _NAMES[_NAMES.index("PLUGIN_V3") + 1 :]]
LAYER_TYPES = [*_NAMES[: _NAMES.index("PLUGIN_V3") + 1], "FULLY_CONNECTED", *_LATER]
"""In the order of the headers' LayerType."""


_MAKERS = {
    "create_infer_builder": "Builder",
    "create_infer_refitter": "Refitter",
    "create_infer_runtime": "Runtime",
    "create_onnx_parser": "OnnxParser",
    "create_parser_refitter": "OnnxParserRefitter",
    "create_caffe_parser": "CaffeParser",
    "create_uff_parser": "UffParser",
}
"""Function of the headers -> class of `headrace.trt` that it makes an object of."""

_ALGORITHMS = {
    0: "IInt8LegacyCalibrator",
    1: "IInt8EntropyCalibrator",
    2: "IInt8EntropyCalibrator2",
    3: "IInt8MinMaxCalibrator",
}


def logger(native: Any) -> Any:
    """Wrap the library's own logger as a `headrace.trt.ILogger`."""

    # mypy sees the lazy face `trt` as Any
    class CppLogger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.native = native

        def log(self, severity: NumberedEnum, msg: str) -> None:
            native.log(int(severity), str(msg))

    return CppLogger()


def calibrator(native: Any) -> Any:
    """Wrap the library's own calibrator as one of `headrace.trt`."""
    base = getattr(trt, _ALGORITHMS.get(native.algorithm, "IInt8EntropyCalibrator2"))

    # the library chooses the base at run time: no class to mypy
    class CppCalibrator(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)
            self.native = native

        def get_batch_size(self) -> int:
            return int(native.batch_size())

        def get_batch(self, names: Sequence[str]) -> list[int] | None:
            addresses = native.get_batch(list(names))
            return None if addresses is None else list(addresses)

        def read_calibration_cache(self) -> bytes | None:
            cache = native.read_cache()
            return None if cache is None else bytes(cache)

        def write_calibration_cache(self, cache: Any) -> None:
            native.write_cache(bytes(cache))

    return CppCalibrator()


_weights: WeakValueDictionary[tuple[int, int], npt.NDArray[Any]] = WeakValueDictionary()
"""(type, address) -> the copy of the weights there, while a layer has it."""


class PluginFactory:
    """A plugin factory that a library gives a parser or a runtime."""

    def __init__(self, native: Any) -> None:
        self.native = native

    def is_plugin_v2(self, layer_name: str) -> bool:
        """Return True if the factory makes that layer."""
        return bool(self.native.is_plugin(layer_name))

    is_plugin = is_plugin_v2

    def create_plugin(
        self, layer_name: str, weights: Sequence[Any], namespace: str = "", fields: Any = ()
    ) -> object:
        """Make the plugin of a layer; it stays the factory's."""
        rows = [(int(w.dtype), w.numpy().tobytes(), w.size) for w in weights]
        return self.native.create(layer_name, rows, fields_to(fields), namespace)


class World:
    """The native module's view of the host, one a process: `_native.host_set_world`."""

    plugin_v2 = staticmethod(plugin_v2)
    plugin_v3 = staticmethod(plugin_v3)
    creator = staticmethod(creators.creator)
    logger = staticmethod(logger)
    calibrator = staticmethod(calibrator)
    callback = staticmethod(callback)
    factory = staticmethod(PluginFactory)
    fields = staticmethod(fields_from)

    def call(self, target: Any, method: str, arguments: list[Any]) -> Any:
        """Call a method of an object; of None a function, or refuse a null pointer."""
        if target is None:
            if method in _MAKERS:
                return getattr(trt, _MAKERS[method])(*arguments)
            for module in (functions, running, details):
                if hasattr(module, method):
                    return getattr(module, method)(*arguments)
            raise ValueError("called through a null pointer")
        if isinstance(target, PluginRegistry):
            return _registry(target, method, arguments)
        if method == "__bytes__":
            return bytes(target)
        answer = _result(getattr(target, method)(*arguments))
        # C++ casts it to the layer's own class by itself
        return answer._itself if method == "get_layer" and answer is not None else answer

    def get(self, target: Any, name: str) -> Any:
        """Get an attribute of an object."""
        if name == "layer_type":
            target, name = _not_null(target)._as_layer(), "type"
        value = _result(getattr(_not_null(target), name))
        if name in ("logger", "int8_calibrator"):
            return getattr(value, "native", value)
        if name == "type" and type(value).__name__ == "LayerType":
            return LAYER_TYPES.index(value.name) if value.name in LAYER_TYPES else -1
        return value

    def set(self, target: Any, name: str, value: Any) -> None:
        """Set an attribute of an object."""
        setattr(_not_null(target), name, value)

    def enum(self, name: str, number: int, member: str | None) -> Any:
        """Find a member of an enum, by its name where the headers know it."""
        kind = getattr(types, name, None) or getattr(trt, name)
        return kind(number) if member is None else getattr(kind, member)

    def weights(
        self, code: int, address: int, count: int,
        memory: Callable[[int, int], bytes] = ctypes.string_at,
    ) -> object:  # fmt: skip
        """Copy the weights at an address: libraries free them as they like.

        The same weights at the same address are one array, which `setWeightsName` looks for.
        """
        kind = types.DataType(code)
        if count <= 0 or not address:
            return trt.Weights(kind)
        data = memory(address, count * kind.numpy.itemsize)
        array = _weights.get((code, address))
        if array is None or array.tobytes() != data:
            array = _weights[code, address] = np.frombuffer(data, kind.numpy)
        return trt.Weights(array)

    def failed(self, method: str, error: BaseException | str) -> None:
        """Report a call that failed."""
        report_failure(method, error)

    def tell(self, severity: int, text: str) -> None:
        """Report a message of the headers."""
        report_log(severity, text)


def _not_null(target: Any) -> Any:
    if target is None:
        raise ValueError("called through a null pointer")
    return target


def _result(value: Any) -> Any:
    """Give C++ its own objects back as they are, and an order of axes as its numbers."""
    if isinstance(value, trt.Permutation):
        return tuple(value)
    if isinstance(value, FromCpp):
        return value.native
    return SharedFields(value) if isinstance(value, PluginFieldCollection) else value


def _registry(registry: PluginRegistry, method: str, arguments: list[Any]) -> Any:
    if method == "register_creator":
        return creators.register(registry, *arguments)
    if method == "deregister_creator":
        return creators.deregister(registry, *arguments)
    if method in ("get_plugin_creator", "get_creator"):
        name, version, namespace, caller = arguments
        known_plugins()
        own = creators.own(registry.candidates(name, version, namespace or ""), caller)
        if own is not None:
            return own
        creator = getattr(registry, method)(name, version, namespace or "")
        if creator is None:
            report_failure(method, f"no creator called {name}, version {version}, is registered")
        return creator
    return getattr(registry, method)(*arguments)

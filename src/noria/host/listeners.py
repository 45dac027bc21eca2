"""Loggers, calibrators and factories of C++ libraries as Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noria import trt
from noria.host.forwarding import fields_to

_ALGORITHMS = {
    0: "IInt8LegacyCalibrator",
    1: "IInt8EntropyCalibrator",
    2: "IInt8EntropyCalibrator2",
    3: "IInt8MinMaxCalibrator",
}


def logger(native: Any) -> Any:
    """Wrap the library's own logger as a `noria.trt.ILogger`."""

    class CppLogger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.native = native

        def log(self, severity: Any, msg: str) -> None:
            native.log(int(severity), str(msg))

    return CppLogger()


def calibrator(native: Any) -> Any:
    """Wrap the library's own calibrator as one of `noria.trt`."""
    base = getattr(trt, _ALGORITHMS.get(native.algorithm, "IInt8EntropyCalibrator2"))

    class CppCalibrator(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)
            self.native = native

        def get_batch_size(self) -> int:
            return int(native.batch_size())

        def get_batch(self, names: Sequence[str]) -> list[int] | None:
            found = native.get_batch(list(names))
            return None if found is None else list(found)

        def read_calibration_cache(self) -> bytes | None:
            found = native.read_cache()
            return None if found is None else bytes(found)

        def write_calibration_cache(self, cache: Any) -> None:
            native.write_cache(bytes(cache))

    return CppCalibrator()


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
    ) -> Any:
        """Make the plugin of a layer; it stays the factory's."""
        rows = [(int(w.dtype), w.numpy().tobytes(), w.size) for w in weights]
        return self.native.create(layer_name, rows, fields_to(fields), namespace)

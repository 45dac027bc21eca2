"""A module shaped like Python's `tensorrt`, on the CPU: `import headrace.trt as trt`.

Scripts that say `import tensorrt as trt` run unchanged under `headrace exec script.py`. Names are
the union of TensorRT 8.6, 10 and 11; `headrace.trt.release` hides the names that one release lacks.
Device pointers are addresses of host memory: `array_at(address, shape, dtype)` views one as an
array. Memory of a GPU that the process uses is read and written by copies. Names resolve on first
use. Source: tensorrt-api spec.
"""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import Any

from headrace.plugins.memory import address_of as address_of
from headrace.plugins.memory import array_at as array_at
from headrace.trt import release
from headrace.trt.exports import EXPORTS, refusal


def _shown() -> list[str]:
    number = release.current().number
    return sorted(name for name, export in EXPORTS.items() if export.span.has(number))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return release.current().version
    if name == "__all__":
        return _shown()
    export = EXPORTS.get(name)
    if export is None:
        raise refusal("module 'tensorrt'", name) or AttributeError(
            f"module 'tensorrt' has no attribute {name!r}"
        )
    if not export.span.has(release.current().number):
        raise release.missing("module 'tensorrt'", name)
    return attrgetter(export.path)(importlib.import_module(export.module))


def _itemsize(trt_type: Any) -> float:
    """`DataType.itemsize` by the name that scripts call."""
    size: float = trt_type.itemsize
    return size


def __dir__() -> list[str]:
    return [*_shown(), "__version__", "address_of", "array_at", "release"]

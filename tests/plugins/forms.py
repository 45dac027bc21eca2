"""Python plugins that take one form alone: y = 2 x + 1, of BOOL not x, as it lies in memory.

`factor` is 16 times the element type and the format. What they read must be what NumPy would pack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.plugins import DataType, TensorFormat, array_at
from headrace.plugins.forms import ORDERS
from tests.plugins.samples import ScaleDynamic, ScaleV2IOExt, ScaleV3

BLOCKS = {"CHW2": 2, "CHW4": 4, "CHW16": 16, "CHW32": 32, "CDHW32": 32}
LAST = {"HWC8": 8, "HWC16": 16, "DHWC8": 8, "HWC": 1, "DHWC": 1}


def packed(array: Any, format: str) -> Any:
    """`array` in a format, by NumPy's own moves."""
    if format == "LINEAR":
        return array
    at = array.ndim - ORDERS[TensorFormat[format]].axes
    step = BLOCKS.get(format) or LAST[format]
    room = -array.shape[at] % step
    array = np.pad(array, [(0, room if axis == at else 0) for axis in range(array.ndim)])
    if format in LAST:
        return np.ascontiguousarray(np.moveaxis(array, at, -1))
    shape = (*array.shape[:at], array.shape[at] // step, step, *array.shape[at + 1 :])
    return np.ascontiguousarray(np.moveaxis(array.reshape(shape), at + 1, -1))


def held(kind: DataType, values: Any, scale: float) -> Any:
    """Values as memory has them."""
    if kind == DataType.BF16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(values / scale if kind == DataType.INT8 else values, kind.numpy)


def computed(kind: DataType, values: Any) -> Any:
    """What the plugins compute."""
    return ~values if kind == DataType.BOOL else 2 * values + 1


class _Formed:
    factor: float
    sent: Any = None
    """The input of the test, all items of it."""

    @property
    def form(self) -> tuple[DataType, TensorFormat]:
        kind, format = divmod(int(self.factor), 16)
        return DataType(kind), TensorFormat(format)

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        one = in_out[pos]
        one = getattr(one, "desc", one)
        return self.form == (one.type, one.format)

    def move(self, count: int, source: int, target: int, scales: tuple[float, float]) -> None:
        kind, format = self.form
        values = _Formed.sent[:count]
        there = packed(held(kind, values, scales[0]), format.name)
        np.testing.assert_array_equal(array_at(source, there.shape, there.dtype), there)
        result = packed(held(kind, computed(kind, values), scales[1]), format.name)
        array_at(target, there.shape, there.dtype, writable=True)[...] = result


class PythonIoForm(_Formed, ScaleV2IOExt):
    KIND = "PythonIoForm"
    scales = (0.0, 0.0)
    """Of the last that was configured: an engine's data has none."""

    def configure_plugin(self, ins: Any, *rest: Any) -> None:
        super().configure_plugin(ins)
        PythonIoForm.scales = ins[0].scale, rest[0][0].scale

    def execute_async(self, batch: int, inputs: Any, outputs: Any, ws: int, stream: int) -> int:
        self.move(batch, inputs[0], outputs[0], self.scales)
        return 0


class PythonDynamicForm(_Formed, ScaleDynamic):
    KIND = "PythonDynamicForm"

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        self.move(ins[0].dims[0], inputs[0], outputs[0], (ins[0].scale, outs[0].scale))


class PythonThirdForm(_Formed, ScaleV3):
    KIND = "PythonThirdForm"

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        self.move(ins[0].dims[0], inputs[0], outputs[0], (ins[0].scale, outs[0].scale))


def send(values: Any) -> None:
    """The input that plugins are about to get."""
    _Formed.sent = values


FORMS: dict[str, Any] = {
    one.KIND: one for one in (PythonIoForm, PythonDynamicForm, PythonThirdForm)
}

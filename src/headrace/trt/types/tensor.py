"""Tensors of a network that is being defined, and those that decide shapes by their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.network.tensor_spec import TensorType
from headrace.plugins.types import DataType, Dims
from headrace.trt.release import versioned
from headrace.trt.types.enums import TensorLocation
from headrace.trt.types.strict import Strict, always, kept
from headrace.trt.types.values import datatype_of_elem, elem_of

if TYPE_CHECKING:
    from headrace.trt.layers.base import ILayer
    from headrace.trt.types.owner import Owner

_LAYERS = {
    "SHUFFLE": (1,), "SLICE": (1, 2, 3), "RESIZE": (1,), "FILL": (0,), "TOPK": (1,),
    "ONE_HOT": (2,), "SQUEEZE": (1,), "UNSQUEEZE": (1,), "TRIP_LIMIT": (0,), "NMS": (2,),
}  # fmt: skip
"""Layer -> inputs that decide the shape of its output by their values."""
_NODES = {
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "Slice": (1, 2, 3, 4), "Pad": (1,),
    "Resize": (2, 3), "Upsample": (1,), "ConstantOfShape": (0,), "Range": (0, 1, 2), "TopK": (1,),
    "OneHot": (1,), "Squeeze": (1,), "Unsqueeze": (1,), "Split": (1,), "NonMaxSuppression": (2,),
    "Loop": (0,),
}  # fmt: skip
"""The same for nodes of parsed models."""
_INTEGERS = (6, 7)  # ONNX's INT32 and INT64
ALL_FORMATS = (1 << 13) - 1


@versioned(
    {
        "<11": "dynamic_range, set_dynamic_range, reset_dynamic_range",
    }
)
class ITensor(Strict):
    """A tensor of an `INetworkDefinition`. Made by layers and `add_input`.

    Shapes leave out the batch where the network has an implicit one; -1 is an axis that is known
    only at run time. Source: tensorrt-api spec 3.4.
    """

    def __init__(
        self,
        network: Owner,
        name: str,
        *,
        producer: ILayer | None = None,
        index: int = 0,
        info: TensorType | None = None,
    ) -> None:
        self._network = network
        self._uid = network._fresh_uid("t")
        self._name = name
        self._producer = producer
        self._index = index
        self._info = info
        self._declared: DataType | None = None
        self._axis_names: dict[int, str] = {}
        self._range: tuple[float, float] | None = None
        self._formats = ALL_FORMATS
        self._location = TensorLocation["DEVICE"]

    @property
    def name(self) -> str:
        """The name; outputs are bound by it."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"a name is text, not a {type(value).__name__}")
        self._name = value

    @property
    def shape(self) -> Dims:
        """Extents; empty for an output of a layer that is wrong.

        The shape of a network input can be set; everything behind it follows.
        """
        info = self._known()
        if info is None and self._producer is not None:
            self._network._tell(self._producer)
        if info is None or info.shape is None:
            return Dims(())
        return Dims(info.shape[self._network._offset :])

    @shape.setter
    def shape(self, value: Sequence[int]) -> None:
        axes = tuple(Dims(value))
        if self._producer is not None or self._info is None:
            self._network._report(f"{self._name}: only the shape of a network input can be set")
            return
        lead = (-1,) * self._network._offset
        self._info = TensorType(self._info.elem, (*lead, *axes))
        self._axis_names = {i: n for i, n in self._axis_names.items() if i < len(axes)}
        self._network._changed()

    @property
    def dtype(self) -> DataType:
        """Element type; of network inputs and outputs it can be set, values are then converted."""
        if self._declared is not None:
            return self._declared
        info = self._known()
        kind = None if info is None else datatype_of_elem(info.elem)
        return DataType.FLOAT if kind is None else kind

    @dtype.setter
    def dtype(self, value: DataType) -> None:
        kind = DataType(value)
        if self.is_network_input and self._info is not None and self._network._typed_by_inputs:
            self._info = TensorType(elem_of(kind), self._info.shape)
            self._network._changed()
        self._declared = kind

    @property
    def is_network_input(self) -> bool:
        """Whether it is fed."""
        return self._producer is None

    @property
    def is_network_output(self) -> bool:
        """Whether it comes out."""
        return any(t is self for t in self._network._outputs)

    @property
    def is_shape_tensor(self) -> bool:
        """Whether its values decide shapes, as far as that is known while building."""
        info = self._known()
        if info is None or info.elem not in (6, 7, 9):
            return False
        return info.value is not None or self._uid in shape_tensors(self._network._layers)

    is_execution_tensor = always(True, "Whether it is computed.")

    location = kept(
        "_location",
        "Where it lives; here both are the host's memory.",
        convert=TensorLocation,
    )
    allowed_formats = kept(
        "_formats", "Mask of `TensorFormat`s; here every tensor is linear.", convert=int
    )

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """Least and greatest value for INT8, if set."""
        return self._range

    @dynamic_range.setter
    def dynamic_range(self, value: Sequence[float]) -> None:
        low, high = value
        self._range = (float(low), float(high))

    def set_dynamic_range(self, min: float, max: float) -> bool:
        """Set `dynamic_range`; it is used with the INT8 flag."""
        self._range = (float(min), float(max))
        return True

    def _dynamic_range_is_set(self) -> bool:
        return self.dynamic_range is not None

    def reset_dynamic_range(self) -> None:
        """Forget it."""
        self._range = None

    @property
    def broadcast_across_batch(self) -> bool:
        """Whether one value serves a whole implicit batch."""
        return False

    @broadcast_across_batch.setter
    def broadcast_across_batch(self, value: bool) -> None:
        if value:
            self._network._report(f"{self._name}: broadcasting across the batch is not done")

    def get_dimension_name(self, index: int) -> str:
        """Name of a free axis, empty if it has none."""
        return self._axis_names.get(index, "")

    def set_dimension_name(self, index: int, name: str) -> None:
        """Name a free axis of an input."""
        self._axis_names[index] = name

    def _known(self) -> TensorType | None:
        if self._producer is not None:
            self._network._refresh()
        return self._info

    def __repr__(self) -> str:
        return f"ITensor({self._name!r}, {self.dtype.name}, {self.shape!r})"


def shape_tensors(layers: Iterable[ILayer]) -> set[str]:
    """Find the uids of tensors that decide shapes by their values.

    They are integers with at most one axis, and the tensors that these are computed from, up to the
    network's inputs and to layers that take extents.
    """
    waiting: list[ITensor] = []
    for layer in layers:
        waiting += _deciding(layer)
    uids: set[str] = set()
    while waiting:
        tensor = waiting.pop()
        info = tensor._info
        small = info is not None and info.shape is not None and len(info.shape) <= 1
        if tensor._uid in uids or info is None or not small or info.elem not in _INTEGERS:
            continue
        uids.add(tensor._uid)
        maker = tensor._producer
        if maker is not None and not _takes_extents(maker):
            waiting += [t for t in maker._inputs if t is not None]
    return uids


def _deciding(layer: ILayer) -> list[ITensor]:
    if layer._node is not None:
        indices = _NODES.get(layer._node.op_type, ())
        slots = [layer._slots[i] for i in indices if i < len(layer._slots)]
        chosen = [layer._inputs[what] for kind, what in slots if kind == "tensor"]
    elif "_plain" in layer._params:  # a plugin: its shape inputs come last
        chosen = list(layer._inputs[int(layer._params["_plain"]) :])
    elif layer._kind == "TRIP_LIMIT" and layer._params["kind"].name == "WHILE":
        chosen = []
    else:
        indices = _LAYERS.get(layer._kind, ())
        chosen = [layer._inputs[i] for i in indices if i < len(layer._inputs)]
    return [tensor for tensor in chosen if tensor is not None]


def _takes_extents(layer: ILayer) -> bool:
    return layer._kind == "SHAPE" or (
        layer._node is not None and layer._node.op_type in ("Shape", "Size")
    )

"""`ILayer`, the base of all layers, and the properties that layers are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array, DType
from headrace.plugins.types import DataType, Dims
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError
from headrace.trt.release import versioned
from headrace.trt.types.enums import enum_class
from headrace.trt.types.strict import Strict, counted, kept
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import as_array

if TYPE_CHECKING:
    from onnx import NodeProto

    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.owner import Owner

Slot: TypeAlias = tuple[str, Any]
"""The kind of an input of a parsed node, and which it is: a number, a name, or both."""

Layer = TypeVar("Layer", bound="ILayer")
_NONE = object()


def check_tensors(inputs: Iterable[object]) -> None:
    """Refuse inputs of a layer that are no tensors.

    Raises:
        TypeError: one is none.
    """
    for tensor in inputs:
        if not isinstance(tensor, ITensor):
            raise TypeError(f"an input is an ITensor, not a {type(tensor).__name__}")


@versioned(
    {
        "<11": (
            "precision, precision_is_set, reset_precision, set_output_type, "
            "output_type_is_set, reset_output_type"
        ),
        ">=8.6": "metadata",
        ">=10.16": "num_ranks",
    }
)
class ILayer(Strict):
    """A layer of an `INetworkDefinition`; made by its `add_*` methods or a parser.

    Whatever is set later changes what is computed, and the shapes behind the layer with it.
    Source: tensorrt-api spec 3.4.
    """

    _kind = ""
    """The `LayerType`; of an object's own where a parsed operator has no class."""
    _words = ""
    """The kind in default names, where it is not the name of the class."""
    _settings: Mapping[str, Param] = {}

    def __init__(
        self,
        network: Owner,
        inputs: Sequence[ITensor | None],
        *,
        kind: str = "",
        params: Mapping[str, Any] | None = None,
        weights: Mapping[str, Array | None] | None = None,
        outputs: int = 1,
        name: str | None = None,
        node: NodeProto | None = None,
    ) -> None:
        self._network = network
        self._itself = self
        self._made_as = type(self)  # scripts may set `__class__`
        self._seen: ILayer | None = None
        self._uid = network._fresh_uid("l")
        self._kind = kind or self._kind
        self._params = dict(params or {})
        self._weights = dict(weights or {})
        self._inputs = list(inputs)
        self._node = node
        self._slots: list[Slot] = []  # of a parsed node: the kind of each input
        self._version = 0
        self._error: str | None = None
        self._precision: DataType | None = None
        self._output_types: dict[int, DataType] = {}
        self._metadata = ""
        plain = type(self).__name__.removeprefix("I").removesuffix("Layer") or "Layer"
        words = self._words or plain
        self._name = name or f"(Unnamed Layer* {len(network._layers)}) [{words}]"
        self._outputs = [
            ITensor(network, self._output_name(i), producer=self, index=i) for i in range(outputs)
        ]

    def _as_layer(self) -> ILayer:
        """The layer as networks give it: an `ILayer` that accepts the layer's own class.

        The same object is given again until its `__class__` is set.
        """
        if self._seen is None or type(self._seen) is not ILayer:
            seen = ILayer.__new__(ILayer)
            object.__setattr__(seen, "__dict__", self.__dict__)
            self._seen = seen
        return self._seen

    @classmethod
    def _started(cls, settings: Mapping[str, object]) -> dict[str, object]:
        """Give the settings of a new layer: the initial ones and those given, converted."""
        converted = {key: cls._settings[key].convert(value) for key, value in settings.items()}
        rest = {key: s.initial for key, s in cls._settings.items() if s.initial is not _NONE}
        return rest | converted

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        """Append the layer's nodes and give the names of its outputs.

        Shapes are known at each step, so it may look at them. `self` may have another class.
        """
        raise LoweringError(f"layers of type {self._kind} have no meaning on the CPU")

    def _output_name(self, index: int) -> str:
        return f"{self._name}_output" if index == 0 else f"{self._name}_output ({index})"

    @property
    def name(self) -> str:
        """The name, in messages and the inspector."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"a name is text, not a {type(value).__name__}")
        before = {self._output_name(i): t for i, t in enumerate(self._outputs)}
        old, self._name = f"layer {self._name!r}", value
        if self._error is not None:  # found when it had the other name
            new = f"layer {value!r}"
            before_, self._error = self._error, self._error.replace(old, new)
            if self._params.get("_reported") == before_:
                self._params["_reported"] = self._error
        for i, tensor in enumerate(self._outputs):
            if before.get(tensor._name) is tensor:  # it has no name of its own
                tensor._name = self._output_name(i)

    @property
    def type(self) -> NumberedEnum:
        """The `LayerType`."""
        enum = enum_class("LayerType")
        return enum.__members__.get(self._kind, enum.__members__["PLUGIN_V2"])

    num_inputs = counted("_inputs", "Number of inputs, missing ones in between counted.")
    num_outputs = counted("_outputs", "Number of outputs.")

    def get_input(self, index: int) -> ITensor | None:
        """An input; None if there is none."""
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def get_output(self, index: int) -> ITensor | None:
        """An output; None if there is none."""
        return self._outputs[index] if 0 <= index < len(self._outputs) else None

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Feed an input from elsewhere, or an optional one."""
        check_tensors([tensor])
        if index < 0:
            raise IndexError(f"input {index}")
        while len(self._inputs) <= index:
            self._inputs.append(None)
        self._inputs[index] = tensor
        self._network._reordered()
        self._changed()

    metadata = kept("_metadata", "Free text; parsers put the name of the node in it.")

    @property
    def num_ranks(self) -> int:
        """Devices that share the layer: one."""
        return 1

    @num_ranks.setter
    def num_ranks(self, value: int) -> None:
        if value != 1:
            text = f"num_ranks is {value}: Headrace computes a layer on one device"
            raise EngineError(text, where=self._name, expected="1")

    @property
    def precision(self) -> DataType:
        """Type to compute in; recorded, while FP32 is computed."""
        return self._precision or DataType.FLOAT

    @precision.setter
    def precision(self, value: DataType) -> None:
        self._precision = DataType(value)

    @property
    def precision_is_set(self) -> bool:
        """Whether `precision` was set."""
        return self._precision is not None

    def reset_precision(self) -> None:
        """Forget it."""
        self._precision = None

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """Type of an output; of an integer kind it converts, of a float kind it is a hint."""
        self._output_types[index] = DataType(dtype)
        self._changed()

    def get_output_type(self, index: int) -> DataType:
        """Type of an output."""
        return self._output_types.get(index) or self._outputs[index].dtype

    def output_type_is_set(self, index: int) -> bool:
        """Whether `set_output_type` was called."""
        return index in self._output_types

    def reset_output_type(self, index: int) -> None:
        """Forget it."""
        self._output_types.pop(index, None)
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self._network._changed(self._itself)

    def _set_param(self, key: str, value: object) -> None:
        if self._node is not None and key in self._params:
            # read from a node that is kept as it is, until an attribute changes
            self._node = None
        self._params[key] = value
        self._changed()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"


class Param(property):
    """A setting of a layer, kept in its `_params`; setting it changes the layer.

    Args:
        convert: makes the value that is kept from the one that is set.
        doc: of the property.
        initial: the value in a new layer; without it there is none, and None is read.
        key: in `_params`; by default the attribute's name.
        show: makes the value that is read from the layer and the one that is kept, or None.
    """

    def __init__(
        self,
        convert: Callable[[Any], object],
        doc: str = "",
        *,
        initial: object = _NONE,
        key: str = "",
        show: Callable[[Any, Any], object] | None = None,
    ) -> None:
        super().__init__(self._get, self._put, doc=doc)
        self.convert, self.initial, self._key, self._show = convert, initial, key, show

    def __set_name__(self, owner: type[ILayer], name: str) -> None:
        self._key = self._key or name
        owner._settings = {self._key: self, **owner._settings}

    def _get(self, layer: ILayer) -> object:
        value = layer._params.get(self._key, None if self.initial is _NONE else self.initial)
        return value if self._show is None else self._show(layer, value)

    def _put(self, layer: ILayer, value: object) -> None:
        layer._set_param(self._key, self.convert(value))


def dims_param(doc: str) -> property:
    """Make a setting that is one number for each axis."""
    return Param(lambda v: tuple(Dims(v)), doc, show=lambda _, value: Dims(value or ()))


def weights_param(role: str, doc: str) -> property:
    """Make a property over `_weights[role]`."""

    def get(self: ILayer) -> Array:
        array = self._weights.get(role)
        return np.empty(0, np.float32) if array is None else array

    def put(self: ILayer, value: object) -> None:
        self._weights[role] = as_array(value)
        self._node = None
        self._changed()

    return property(get, put, doc=doc)


def index_dtype(layer: ILayer) -> DType:
    """Give the type of a layer's indices: INT32 unless another is set."""
    asked = layer._params.get("indices_type")
    return np.dtype(np.int32) if asked is None else asked.numpy

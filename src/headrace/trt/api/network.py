"""`INetworkDefinition`: a list of layers that can be inspected and changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.network.tensor_spec import TensorType
from headrace.plugins.types import DataType, Dims
from headrace.trt.api.add_layers import AddsLayers
from headrace.trt.exports import refusal
from headrace.trt.layers.base import ILayer
from headrace.trt.release import generation, versioned
from headrace.trt.types.enums import from_mask, names_in
from headrace.trt.types.strict import counted, kept
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import as_array, elem_of

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.reporting import ILogger
    from headrace.trt.types.values import WeightsLike


@versioned(
    {
        "deprecated>=10": "has_implicit_batch_dimension",
        "<10": "has_explicit_precision",
        ">=9": "flags, get_flag",
        ">=10": "is_debug_tensor, mark_debug, unmark_debug",
        ">=10.2": (
            "are_weights_marked_refittable, mark_weights_refittable, unmark_weights_refittable"
        ),
        ">=10.12": (
            "mark_unfused_tensors_as_debug_tensors, unmark_unfused_tensors_as_debug_tensors"
        ),
    }
)
class INetworkDefinition(AddsLayers):
    """A network by code; made by `Builder.create_network`.

    Every `add_*` gives the new layer; an argument of a wrong type raises a TypeError, and numbers
    that do not fit together are reported when a shape is asked for or the engine is built.
    Source: tensorrt-api spec 3.4.
    """

    def __init__(
        self, builder: object, logger: ILogger | None, flags: int, *, implicit: bool
    ) -> None:
        super().__init__(logger, implicit=implicit)
        self._builder = builder
        self._flags = names_in("NetworkDefinitionCreationFlag", flags)
        self._strong = "STRONGLY_TYPED" in self._flags or generation() >= 11
        self._name = "Unnamed Network 0"
        self._weight_names: dict[tuple[str, str], str] = {}
        self._shape_outputs: list[ITensor] = []
        self._debugged: set[str] = set()
        self._debugs_all = False
        self._refittable: set[str] = set()
        self._keepalive: list[object] = []

    name = kept("_name", "Name of the network, which the engine gets.", convert=str)
    builder = kept("_builder", "The builder that made it.", read_only=True)
    logger = kept("_logger", "Where errors are reported.", read_only=True)
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")

    @property
    def flags(self) -> int:
        """Mask of `NetworkDefinitionCreationFlag`s."""
        return from_mask("NetworkDefinitionCreationFlag", self._flags)

    def get_flag(self, flag: NumberedEnum) -> bool:
        """Whether it was made with a flag."""
        return flag.name in self._flags

    has_implicit_batch_dimension = kept(
        "_implicit", "Whether shapes leave the batch out.", read_only=True
    )

    @property
    def has_explicit_precision(self) -> bool:
        """Whether every type is the network's own."""
        return "EXPLICIT_PRECISION" in self._flags

    num_layers = counted("_layers", "Number of layers.")
    num_inputs = counted("_inputs", "Number of network inputs.")
    num_outputs = counted("_outputs", "Number of marked outputs.")

    def get_input(self, index: int) -> ITensor | None:
        """A network input; None if there is none."""
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def get_output(self, index: int) -> ITensor | None:
        """A network output; None if there is none."""
        return self._outputs[index] if 0 <= index < len(self._outputs) else None

    def get_layer(self, index: int) -> ILayer | None:
        """A layer as an `ILayer` with the `LayerType` as its `type`; None if there is none.

        `layer.__class__ = trt.IConvolutionLayer` gives it the attributes of that class.
        """
        return self._layers[index]._as_layer() if 0 <= index < len(self._layers) else None

    def __len__(self) -> int:
        return len(self._layers)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: int) -> ILayer:
        return self._layers[index]._as_layer()

    def __iter__(self) -> Iterator[ILayer]:
        return iter([layer._as_layer() for layer in self._layers])

    def add_input(self, name: str, dtype: DataType, shape: Sequence[int]) -> ITensor | None:
        """A new input.

        Args:
            name: must be new among the inputs.
            dtype: element type.
            shape: -1 for axes that are known only at run time; without an implicit batch.
        """
        axes = tuple(Dims(shape))
        kind = DataType(dtype)
        if not isinstance(name, str):
            raise TypeError(f"a name is text, not a {type(name).__name__}")
        if any(t._name == name for t in self._inputs):
            self._report(f"an input is called {name!r} already")
            return None
        if any(d < -1 for d in axes):
            self._report(f"input {name!r}: {axes} has an axis below -1")
            return None
        lead = (-1,) * self._offset
        tensor = ITensor(self, name, info=TensorType(elem_of(kind), (*lead, *axes)))
        self._inputs.append(tensor)
        return tensor

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output; outputs come in the order of marking."""
        if not isinstance(tensor, ITensor):
            raise TypeError(f"an output is an ITensor, not a {type(tensor).__name__}")
        if tensor._network is not self:
            self._report(f"{tensor._name}: is a tensor of another network")
        elif not tensor.is_network_output:
            self._outputs.append(tensor)

    def unmark_output(self, tensor: ITensor) -> None:
        """The tensor is no output any more."""
        self._outputs = [t for t in self._outputs if t is not tensor]

    def mark_output_for_shapes(self, tensor: ITensor) -> bool:
        """The values of the tensor are wanted on the host: here, an output like others."""
        if any(t is tensor for t in self._shape_outputs):
            return False
        self._shape_outputs.append(tensor)
        self.mark_output(tensor)
        return True

    def unmark_output_for_shapes(self, tensor: ITensor) -> bool:
        """Undo `mark_output_for_shapes`."""
        there = any(t is tensor for t in self._shape_outputs)
        self._shape_outputs = [t for t in self._shape_outputs if t is not tensor]
        if there:
            self.unmark_output(tensor)
        return there

    def remove_tensor(self, tensor: ITensor) -> None:
        """Take an input or output away."""
        self._inputs = [t for t in self._inputs if t is not tensor]
        self.unmark_output(tensor)

    def set_weights_name(self, weights: WeightsLike, name: str) -> bool:
        """Name weights, for a refitter. The object must be the one that a layer was given."""
        array = as_array(weights)
        for layer in self._layers:
            for role, own in layer._weights.items():
                same = own is not None and array is not None and _same_memory(own, array)
                if same and (layer._uid, role) not in self._weight_names:
                    self._weight_names[layer._uid, role] = str(name)
                    return True
        self._report(f"no layer has the weights that shall be called {name!r}")
        return False

    def mark_debug(self, tensor: ITensor) -> bool:
        """Watch a tensor; debug listeners receive its values."""
        self._debugged.add(tensor._uid)
        return True

    def unmark_debug(self, tensor: ITensor) -> bool:
        """Undo `mark_debug`."""
        self._debugged.discard(tensor._uid)
        return True

    def is_debug_tensor(self, tensor: ITensor) -> bool:
        """Whether it is watched."""
        return tensor._uid in self._debugged

    def mark_unfused_tensors_as_debug_tensors(self) -> bool:
        """Watch every tensor between layers: here, no layers are fused before they are watched."""
        self._debugs_all = True
        return True

    def unmark_unfused_tensors_as_debug_tensors(self) -> bool:
        """Undo `mark_unfused_tensors_as_debug_tensors`."""
        self._debugs_all = False
        return True

    def _watched(self) -> list[ITensor]:
        """Tensors that listeners may ask for, of layers that outputs need."""
        tensors = [*self._inputs, *(t for layer in self._needed() for t in layer._outputs)]
        return [
            tensor
            for tensor in tensors
            if tensor._uid in self._debugged or (self._debugs_all and tensor._producer is not None)
        ]

    def mark_weights_refittable(self, name: str) -> bool:
        """Let named weights be refitted, with REFIT_INDIVIDUAL; False if nothing is called so."""
        if name not in self._weight_names.values() and name not in self._initializers:
            self._report(f"no weights are called {name!r}")
            return False
        self._refittable.add(name)
        return True

    def unmark_weights_refittable(self, name: str) -> bool:
        """Undo `mark_weights_refittable`."""
        there = name in self._refittable
        self._refittable.discard(name)
        return there

    def are_weights_marked_refittable(self, name: str) -> bool:
        """True if `mark_weights_refittable` was called for the name."""
        return name in self._refittable

    def __getattr__(self, name: str) -> Any:
        error = refusal("INetworkDefinition", name)
        if error is not None:
            raise error
        return object.__getattribute__(self, name)  # raises the error of the lookup before

    def __repr__(self) -> str:
        return (
            f"INetworkDefinition({self._name!r}: {self.num_layers} layers, {self.num_inputs} "
            f"inputs, {self.num_outputs} outputs)"
        )


def _same_memory(a: Array, b: Array) -> bool:
    return bool(a.ctypes.data == b.ctypes.data and a.size == b.size and a.dtype == b.dtype)

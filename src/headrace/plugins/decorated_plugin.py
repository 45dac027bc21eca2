"""A plugin by decorators as a plugin of version 3. Source: tensorrt-plugins spec 13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace.plugins.base import (
    InterfaceInfo,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuildV2,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
)
from headrace.plugins.decorator_tensors import SizeTensorDesc, Tensor, TensorDesc
from headrace.plugins.expressions import IExprBuilder, SizeTensor, SymbolicShapes
from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from headrace.plugins.types import DataType, TensorFormat

if TYPE_CHECKING:
    from headrace.plugins.decorators import PluginDefinition

_NAMES = {"FP32": "FLOAT", "FP16": "HALF"}
GUESSED_RANK = 4
Offer: TypeAlias = tuple[tuple[DataType, ...], tuple[int, ...]]
"""Types of all tensors, and the tactics that compute them."""


class DecoratedPlugin(IPluginV3, IPluginV3OneCore, IPluginV3OneBuildV2, IPluginV3OneRuntime):
    """Asks the functions of a `PluginDefinition`."""

    def __init__(self, definition: PluginDefinition, attributes: Mapping[str, object]) -> None:
        IPluginV3.__init__(self)
        self.definition = definition
        self.attributes = dict(attributes)
        self.plugin_name, self.plugin_version = definition.name, "1"
        self.plugin_namespace = definition.namespace
        self.num_outputs = definition.signature.outputs
        self.tactic = 0
        self._combinations: list[Offer] | None = None
        self._declared: list[DataType] = []
        self._aliases: list[int] = [-1] * self.num_outputs

    def clone(self) -> object:
        """See `IPluginV3`."""
        plugin = DecoratedPlugin(self.definition, self.attributes)
        plugin.__dict__.update(self.__dict__)
        return plugin

    def _describe(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        answer = self.definition.describe(*inputs, **self.attributes)
        outputs = list(answer) if isinstance(answer, tuple) else [answer]
        for output in outputs:
            if not isinstance(output, TensorDesc):
                raise TypeError(f"register's function returned a {type(output).__name__}")
        if len(outputs) != self.num_outputs:
            raise ValueError(f"{len(outputs)} outputs; {self.num_outputs} are annotated")
        aliases = [next((i for i, t in enumerate(inputs) if t is o.alias_of), -1) for o in outputs]
        self._aliases = aliases
        return outputs

    def get_output_data_types(self, input_types: Sequence[DataType]) -> Sequence[DataType]:
        """See `IPluginV3OneBuild`. Ranks are not known here: four axes are pretended."""
        descs = [TensorDesc([1] * GUESSED_RANK, t) for t in input_types]
        self._declared = [o.dtype for o in self._describe(descs)]
        return self._declared

    def get_output_shapes(
        self, inputs: SymbolicShapes, shape_inputs: SymbolicShapes, expr_builder: IExprBuilder
    ) -> SymbolicShapes:
        """See `IPluginV3OneBuild`."""
        outputs = self._describe([TensorDesc(list(i), DataType.FLOAT) for i in inputs])
        for index, output in enumerate(outputs):
            if isinstance(output, SizeTensorDesc):
                output.place(index)
        shapes = [output.shape_expr.exprs() for output in outputs]
        for part in (leaf for exprs in shapes for axis in exprs for leaf in axis.leaves()):
            if isinstance(part, SizeTensor) and part.output < 0:
                raise ValueError("a size tensor is used that is not among the outputs")
        return shapes

    def get_aliased_input(self, output_index: int) -> int:
        """See `IPluginV3OneBuildV2`."""
        return self._aliases[output_index]

    def supports_format_combination(self, pos: int, in_out: Sequence[Any], num_inputs: int) -> bool:
        """See `IPluginV3OneBuild`."""
        asked = [in_out[i].desc.type for i in range(pos + 1)]
        if in_out[pos].desc.format != TensorFormat.LINEAR:
            return False
        return any(list(types[: pos + 1]) == asked for types, _ in self._offers(in_out, num_inputs))

    def _offers(self, in_out: Sequence[Any], count: int) -> list[Offer]:
        if self.definition.tune is None:
            first = [in_out[i].desc.type for i in range(len(in_out))]
            inputs = tuple(t if t is not None else DataType.FLOAT for t in first[:count])
            declared = tuple(self.get_output_data_types(inputs))
            return [((*inputs, *declared), ())]
        if self._combinations is None:
            descs = [TensorDesc(list(d.desc.dims), DataType.FLOAT) for d in in_out]
            combinations = self.definition.tune(
                *descs[:count], **self.attributes, outputs=tuple(descs[count:])
            )
            self._combinations = [c for m in combinations for c in _expanded(m, len(in_out))]
        return self._combinations

    def configure_plugin(self, inp: Any, out: Any) -> None:
        """See `IPluginV3OneBuild`."""
        self._chosen = tuple(d.desc.type for d in (*inp, *out))

    def get_valid_tactics(self) -> Sequence[int]:
        """See `IPluginV3OneBuild`."""
        tactics = [t for types, ts in self._combinations or [] if types == self._chosen for t in ts]
        return list(dict.fromkeys(tactics))

    def set_tactic(self, tactic: int) -> None:
        """See `IPluginV3OneRuntime`."""
        self.tactic = tactic

    def attach_to_context(self, resource_context: object) -> object:
        """See `IPluginV3OneRuntime`."""
        return self.clone()

    def enqueue(
        self,
        input_desc: Any,
        output_desc: Any,
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,
        stream: int,
    ) -> None:
        """See `IPluginV3OneRuntime`."""
        compute = self.definition.ready()
        tensors = [Tensor(a, d, writable=False) for a, d in zip(inputs, input_desc, strict=True)]
        results = tuple(
            Tensor(a, d, writable=True) for a, d in zip(outputs, output_desc, strict=True)
        )
        for result in results:
            result.aliased = next((t for t in tensors if t.data_ptr == result.data_ptr), None)
        more = {n: self.attributes[n] for n in self.definition.compute_arguments}
        if self.definition.takes_tactic:
            more["tactic"] = self.tactic
        compute(*tensors, **more, outputs=results, stream=stream)

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        """See `IPluginV3OneRuntime`."""
        kinds = self.definition.signature.attributes
        return PluginFieldCollection(
            field_of(n, self.attributes[n], kinds[n]) for n in self.definition.compute_arguments
        )


class DecoratedCreator(IPluginCreatorV3One):
    """Makes `DecoratedPlugin` objects."""

    _info = InterfaceInfo("PLUGIN CREATOR_V3QUICK", 1, 0)

    def __init__(self, definition: PluginDefinition) -> None:
        IPluginCreatorV3One.__init__(self)
        self.definition = definition
        self.name, self.plugin_version = definition.name, "1"
        self.plugin_namespace = definition.namespace
        self.field_names = PluginFieldCollection(
            PluginField(n, None, PluginFieldType.UNKNOWN) for n in definition.signature.attributes
        )

    def create_plugin(self, name: str, field_collection: Any, phase: Any) -> Any:
        """See `IPluginCreatorV3One`.

        Raises:
            ValueError: an attribute that the plugin needs is missing.
        """
        self.definition.ready()
        kinds = self.definition.signature.attributes
        names = self.definition.compute_arguments if int(phase) else tuple(kinds)
        fields = {field.name: field for field in field_collection}
        missing = [n for n in names if n not in fields]
        if missing:
            raise ValueError(f"attributes are missing: {', '.join(missing)}")
        return DecoratedPlugin(self.definition, {n: value_of(fields[n], kinds[n]) for n in names})


def field_of(name: str, value: Any, kind: Any) -> PluginField:
    """An attribute as it is saved."""
    if kind is bool:
        return PluginField(name, np.array([value], np.int8), PluginFieldType.INT8)
    if kind is int:
        return PluginField(name, np.array([value], np.int64), PluginFieldType.INT64)
    if kind is float:
        return PluginField(name, np.array([value], np.float64), PluginFieldType.FLOAT64)
    if kind is str:
        return PluginField(name, value.encode(), PluginFieldType.CHAR)
    if kind is bytes:
        return PluginField(name, value, PluginFieldType.UNKNOWN)
    array = np.ascontiguousarray(value, kind)
    if array.dtype == np.float16:  # as raw bytes
        return PluginField(name, array.tobytes(), PluginFieldType.UNKNOWN)
    return PluginField(name, array, PluginFieldType.of(array.dtype))


def value_of(field: PluginField, kind: Any) -> Any:
    """An attribute from a field, whether it was saved or comes from a node.

    Raises:
        ValueError: the field holds something else.
    """
    if kind is str:
        return field.text()
    if kind is bytes:
        return field.raw
    if field.data is None or not field.size:
        raise ValueError(f"field {field.name} is empty")
    if kind in (int, float, bool):
        return kind(field.data.reshape(-1)[0])
    if kind == np.float16 and field.type == PluginFieldType.UNKNOWN:
        return np.frombuffer(field.raw, np.float16)
    return field.data.astype(kind)


def _expanded(combination: Any, tensors: int) -> list[Offer]:
    """All choices of types of one `AutoTuneCombination`."""
    text = combination.io_types or ", ".join(["FP32"] * tensors)
    parts = [p.strip() for p in text.split(",")]
    if len(parts) != tensors:
        raise ValueError(f"io_types {text!r} is for {len(parts)} tensors, not {tensors}")
    tied = [[_type(t) for t in p.split("|")] if "*" not in p else None for p in parts]
    lengths = {len(t) for t in tied if t is not None and len(t) > 1}
    if len(lengths) > 1:
        raise ValueError(f"io_types {text!r}: tied choices of different numbers")
    offers = []
    free = [i for i, t in enumerate(tied) if t is None]
    options = [[_type(t) for t in parts[i].split("*")] for i in free]
    for index in range(next(iter(lengths), 1)):
        for choice in product(*options):
            chosen = dict(zip(free, choice, strict=True))
            types = tuple(
                chosen[i] if t is None else t[index if len(t) > 1 else 0]
                for i, t in enumerate(tied)
            )
            offers.append((types, tuple(int(t) for t in combination.tactics)))
    return offers


def _type(text: str) -> DataType:
    name = text.strip().upper()
    return DataType[_NAMES.get(name, name)]

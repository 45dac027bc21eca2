"""Which element types a plugin works in.

One candidate per tensor is offered, the network's own type; then FLOAT, then HALF, with casts
around the plugin; all of them LINEAR. Source: tensorrt-plugins spec 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace._core.errors import PluginError
from headrace._core.types import DType
from headrace.plugins.calls import Instance
from headrace.plugins.checks import as_bool
from headrace.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginCapabilityType,
    PluginTensorDesc,
    TensorFormat,
)

_FALLBACK = (DataType.FLOAT, DataType.HALF)
_OTHERS: dict[str, tuple[DataType, ...]] = {
    "float64": (DataType.FLOAT,),
    "bfloat16": (DataType.FLOAT,),
    "int64": (DataType.INT64, DataType.INT32),
    "int32": (DataType.INT32, DataType.INT64),
    "int16": (DataType.INT32, DataType.INT64),
    "uint16": (DataType.INT32, DataType.INT64),
    "uint32": (DataType.INT64, DataType.INT32),
    "uint64": (DataType.INT64, DataType.INT32),
    "uint8": (DataType.UINT8, DataType.INT32),
    "int8": (DataType.INT8, DataType.INT32),
    "bool": (DataType.BOOL, DataType.INT32),
}
BUILD = PluginCapabilityType.BUILD
MAX_QUESTIONS = 10_000
TAKEN = (
    "float32, float16, bfloat16, float64, int8 to int64, uint8 to uint64 or bool: a Cast before "
    "the plugin makes one of them"
)
"""The element types of a network that plugins take."""


def candidates(dtype: DType) -> list[DataType]:
    """Types to offer for a tensor of that type in the network, best first."""
    own = _OTHERS.get(dtype.name)
    if own is None and not takes(dtype):
        raise PluginError(
            f"{'string' if dtype.kind in 'OUST' else dtype.name} has no TensorRT type",
            expected=TAKEN,
        )
    first = own if own is not None else (DataType.of(dtype),)
    return list(dict.fromkeys((*first, *_FALLBACK)))


def takes(dtype: DType) -> bool:
    """Whether a plugin can take tensors of that type."""
    try:
        return dtype.name in _OTHERS or bool(DataType.of(dtype) is not None)
    except TypeError:
        return False


def closest(dtype: DType) -> DataType:
    """The TensorRT type for a tensor of that type in the network."""
    return candidates(dtype)[0]


def canonical(dtype: DataType) -> DataType:
    """The input type that version-2 plugins get when asked for the types of their outputs."""
    if dtype.is_float or dtype == DataType.INT8:
        return DataType.FLOAT
    return DataType.BOOL if dtype == DataType.BOOL else DataType.INT32


def network_types(
    declared: Sequence[DataType], inputs: Sequence[DType], *, weak: bool
) -> list[DType]:
    """Element types of the outputs in the network.

    `weak`: True if FLOAT means "float of the width that the network has" (version 2).

    Raises:
        PluginError: an output of a type that NumPy has no twin of.
    """
    floats = [d for d in inputs if d.kind == "f" and d.itemsize <= 4]
    types = []
    for index, kind in enumerate(declared):
        if weak and kind == DataType.FLOAT and floats and all(d.itemsize == 2 for d in floats):
            types.append(floats[0])
            continue
        try:
            types.append(kind.numpy)
        except TypeError as error:
            raise PluginError(f"output {index}: {error}") from error
    return types


def negotiate(
    instance: Instance,
    inputs: Sequence[DynamicPluginTensorDesc],
    outputs: Sequence[DynamicPluginTensorDesc],
    choices: Sequence[Sequence[DataType]],
    *,
    dynamic: bool,
) -> list[DataType]:
    """Walk the tree of types until the plugin accepts one for every tensor.

    `choices` are the types to offer per tensor, inputs first. With `dynamic` (version 3) the
    plugin is shown a `DynamicPluginTensorDesc` for each tensor, else a `PluginTensorDesc`.

    Raises:
        PluginError: the plugin failed, answered something else than yes or no, or refuses all.
    """
    method = "supports_format_combination"
    count = len(inputs)
    tensors = [*inputs, *outputs]
    chosen: list[DataType] = []
    refused: list[str] = []
    asked = 0

    def search(pos: int) -> bool:
        nonlocal asked
        if pos == len(tensors):
            return True
        for kind in choices[pos]:
            asked += 1
            if asked > MAX_QUESTIONS:
                return False
            descs = _descs(tensors, [*chosen, kind], dynamic)
            if dynamic:
                answer = instance.ask("build", BUILD, method, pos, descs, count)
            else:
                answer = instance.call("build", method, pos, descs, count)
            if not as_bool(instance, method, answer):
                what = f"input {pos}" if pos < count else f"output {pos - count}"
                if (text := f"{what} as {kind.name}") not in refused:
                    refused.append(text)
                continue
            chosen.append(kind)
            if search(pos + 1):
                return True
            chosen.pop()
        return False

    if not search(0):
        raise PluginError(
            f"supports_format_combination refuses {', '.join(refused[:8])}",
            where=instance.where,
            expected="one accepted combination: FLOAT, LINEAR for every float tensor at least",
        )
    return chosen


def _descs(
    tensors: Sequence[DynamicPluginTensorDesc], chosen: Sequence[DataType], dynamic: bool
) -> list[object]:
    descs: list[object] = []
    for index, tensor in enumerate(tensors):
        if index < len(chosen):
            desc = PluginTensorDesc(tensor.desc.dims, chosen[index], TensorFormat.LINEAR)
        else:  # not to be read
            desc = PluginTensorDesc(tensor.desc.dims, None, None)
        if dynamic:
            descs.append(DynamicPluginTensorDesc(desc, tensor.min, tensor.max, tensor.opt))
        else:
            descs.append(desc)
    return descs

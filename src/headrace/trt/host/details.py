"""Functions of the headers with another form in Python: lists, weights, ranges.

What C++ reads in place is an array that is kept until the same question is asked of the same object
again, or the build has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.types import Array
from headrace.plugins.memory import read_at, write_at
from headrace.plugins.types import DataType
from headrace.trt.exports import reason_of
from headrace.trt.host.forwarding import CppAddress
from headrace.trt.types.enums import WeightsRole
from headrace.trt.types.values import as_array

if TYPE_CHECKING:
    from headrace.trt.api.algorithms import IAlgorithmContext
    from headrace.trt.api.config import IBuilderConfig
    from headrace.trt.api.context import IExecutionContext
    from headrace.trt.api.engine import ICudaEngine
    from headrace.trt.api.interfaces import IRuntimeConfig
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.api.onnx_parser import OnnxParser
    from headrace.trt.api.profile import IOptimizationProfile
    from headrace.trt.api.refitter import Refitter
    from headrace.trt.layers.base import ILayer
    from headrace.trt.layers.plugins import IPluginV2Layer
    from headrace.trt.layers.sampling import IResizeLayer
    from headrace.trt.layers.shaping import IFillLayer
    from headrace.trt.types.reporting import ParserError
    from headrace.trt.types.tensor import ITensor

_lent: dict[tuple[int, str], tuple[object, Array]] = {}
_PYTHON_NAMES = {
    "INetworkDefinition::addMoE": "add_moe",
    "INetworkDefinition::addDistCollective": "add_dist_collective",
    "INetworkDefinition::addRNN": "add_rnn_v2",
    "INetworkDefinition::addRNNv2": "add_rnn_v2",
    "IExecutionContext::setCommunicator": "set_communicator",
}
_CLASSES = {
    "IMoELayer": "add_moe", "IRNNLayer": "add_rnn_v2", "IRNNv2Layer": "add_rnn_v2",
    "IAttention": "query_form", "IKVCacheUpdateLayer": "update_form",
}  # fmt: skip


class LentNumbers(tuple[int, ...]):
    """How many numbers there are, and their address, which comes last.

    Attributes:
        array: what is there.
    """

    array: Array


def _lend(owner: object, key: str, array: Array, *head: int) -> LentNumbers:
    _lent[id(owner), key] = owner, array
    lent = LentNumbers((*head, array.size, array.ctypes.data))
    lent.array = array
    return lent


def forget_lent() -> None:
    """Release the arrays that libraries were lent, and profiles that are half set."""
    _lent.clear()
    _profiles.clear()


_profiles: dict[int, tuple[object, dict[str, list[Any]]]] = {}


def shapes_of(profile: object) -> dict[str, list[Any]]:
    """The shapes of a profile as far as they were given: name -> min, opt, max."""
    return _profiles.setdefault(id(profile), (profile, {}))[1]


def _numbers(owner: object, key: str, values: Iterable[int], size: int) -> LentNumbers | None:
    """(how many, address) of integers of `size` bytes; None without any."""
    array = np.array(list(values), np.int64 if size == 8 else np.int32)
    if not array.size:
        return None
    return _lend(owner, key, array)


def _weights(owner: object, key: str, value: Any, *, data: bool = True) -> tuple[int, ...]:
    """(type, how many, address) of weights."""
    array = as_array(value)
    if array is None or not array.size:
        return int(DataType.FLOAT), 0, 0
    array = np.ascontiguousarray(array)
    kind = int(DataType.of(array.dtype))
    return _lend(owner, key, array, kind) if data else (kind, array.size, 0)


def refuse_method(method: str, release: str) -> None:
    """Refuse a method of the headers by its name.

    Raises:
        EngineError: always.
    """
    owner = method.partition("::")[0]
    known = "num_ranks" if method.endswith("NbRanks") else ""
    row = reason_of(known or _PYTHON_NAMES.get(method) or _CLASSES.get(owner, ""))
    reason, instead = row or ("does not have it", "")
    since = "of the releases before 8" if release == "5" else f"of TensorRT {release}"
    raise EngineError(
        f"{method}, {since}, is refused: Headrace {reason}",
        fix=f"use {instead}" if instead else "",
    )


def layer_weights(layer: ILayer, name: str) -> tuple[int, ...]:
    """IConvolutionLayer::getKernelWeights and others: the weights of a property."""
    return _weights(layer, name, getattr(layer, name))


def named_weights(refitter: Refitter, name: str) -> tuple[int, ...]:
    """IRefitter::getNamedWeights."""
    return _weights(refitter, f"named {name}", refitter.get_named_weights(name))


def weights_prototype(refitter: Refitter, name: str) -> tuple[int, ...]:
    """IRefitter::getWeightsPrototype: type and size, without values."""
    return _weights(refitter, f"prototype {name}", refitter.get_weights_prototype(name), data=False)


def refitter_range_end(refitter: Refitter, name: str, which: int) -> float:
    """IRefitter::getDynamicRangeMin and getDynamicRangeMax."""
    return float(refitter.get_dynamic_range(name)[which])


def range_end(tensor: ITensor, which: int) -> float:
    """ITensor::getDynamicRangeMin and getDynamicRangeMax: no number without a range."""
    limits = tensor.dynamic_range
    return float("nan") if limits is None else limits[which]


def count_scales(layer: IResizeLayer) -> int:
    """IResizeLayer::getScales: how many; -1 if the scales are not set."""
    return len(layer.scales) or -1


def scale_at(layer: IResizeLayer, index: int) -> float:
    """One of the scales."""
    return float(layer.scales[index])


def fills_with_integers(layer: IFillLayer) -> bool:
    """IFillLayer::isAlphaBetaInt64."""
    return layer.is_alpha_beta_int64()


def network_flags(network: INetworkDefinition) -> int:
    """INetworkDefinition::getFlags, as the headers number them."""
    return sum(1 << i for i, name in enumerate(NETWORK_FLAGS) if name in network._flags)


NETWORK_FLAGS = ("EXPLICIT_BATCH", "STRONGLY_TYPED", "EXPLICIT_PRECISION")
"""In the order of the headers' NetworkDefinitionCreationFlag."""


def algorithm_shape(context: IAlgorithmContext, index: int, which: int) -> object:
    """IAlgorithmContext::getDimensions."""
    shapes = context.get_shape(index)
    return shapes[which] if shapes else None


def set_formula(network: INetworkDefinition, kind: str, formula: Any) -> None:
    """INetworkDefinition::setPoolingOutputDimensionsFormula and others."""
    if formula is None:
        network._formulas.pop(kind, None)
    else:
        network._formulas[kind] = formula


def get_formula(network: INetworkDefinition, kind: str) -> Any:
    """INetworkDefinition::getPoolingOutputDimensionsFormula and others."""
    return getattr(network._formulas.get(kind), "native", None)


def plugin_of(layer: IPluginV2Layer, caller: int) -> object:
    """IPluginV2Layer::getPlugin: the address of an object of the caller's own library."""
    plugin = layer.plugin
    native = getattr(plugin, "native", None)
    return CppAddress(native.address) if native is not None and native.is_of(caller) else plugin


def engine_profile_values(
    engine: ICudaEngine, name: str, profile: int, which: int, size: int
) -> LentNumbers | None:
    """ICudaEngine::getProfileTensorValues."""
    if not 0 <= profile < engine.num_optimization_profiles:
        return None
    values = engine.get_tensor_profile_values(profile, name)
    key = f"{name} {profile} {which} {size}"
    return _numbers(engine, key, values[which], size) if values else None


def profile_values(
    profile: IOptimizationProfile, name: str, which: int, size: int
) -> LentNumbers | None:
    """IOptimizationProfile::getShapeValues."""
    values = shapes_of(profile).get(f"values of {name}", [None] * 3)[which]
    if values is None:
        kept: Sequence[Any] = profile.get_shape_input(name) or [None] * 3
        values = kept[which]
    key = f"{name} {which} {size}"
    return None if values is None else _numbers(profile, key, values, size)


def context_with_config(engine: ICudaEngine, config: IRuntimeConfig | None) -> object:
    """ICudaEngine::createExecutionContext with a runtime config."""
    if config is None:
        return engine.create_execution_context()
    strategy = config.get_execution_context_allocation_strategy()
    return engine.create_execution_context(strategy, config)


def set_shape_binding(context: IExecutionContext, index: int, address: int) -> bool:
    """IExecutionContext::setInputShapeBinding."""
    shape = context._engine._at(index).shape
    count = int(np.prod(shape)) if shape else 1
    values = read_at(address, (count,), DataType.INT32)
    return context.set_shape_input(index, [int(v) for v in values])


def get_shape_binding(context: IExecutionContext, index: int, address: int) -> bool:
    """IExecutionContext::getShapeBinding: copy the values that were set."""
    values = context.get_shape(index)
    if not values or not address:
        return False
    write_at(address, np.array(values, np.int32), DataType.INT32)
    return True


def missing_shape_at(context: IExecutionContext, index: int) -> str:
    """IExecutionContext::inferShapes: the name of an input that lacks a shape or values."""
    return context.infer_shapes()[index]


def plugin_to_serialize(config: IBuilderConfig, index: int, path: str | None) -> None:
    """IBuilderConfig::setPluginsToSerialize: one path at a time, the first one drops the others."""
    before = [] if index == 0 else list(config.plugins_to_serialize)
    config.plugins_to_serialize = [*before, path] if path is not None else before


def count_plugins_to_serialize(config: IBuilderConfig) -> int:
    """IBuilderConfig::getNbPluginsToSerialize."""
    return len(config.plugins_to_serialize)


def plugin_to_serialize_at(config: IBuilderConfig, index: int) -> str | None:
    """IBuilderConfig::getPluginToSerialize."""
    paths: list[str] = config.plugins_to_serialize
    return paths[index] if 0 <= index < len(paths) else None


def subgraph_nodes(parser: OnnxParser, index: int) -> LentNumbers | None:
    """IParser::getSubgraphNodes."""
    return _numbers(parser, f"nodes {index}", parser.get_subgraph_nodes(index), 8)


def stack_at(error: ParserError, index: int) -> str:
    """IParserError::localFunctionStack: one function."""
    return error.local_function_stack()[index]


def _refit_map(parser: OnnxParser) -> list[tuple[str, str, str]]:
    """(name of the weights, layer, role) of every initialiser that a parsed layer takes."""
    rows = []
    for layer in parser._network._layers:
        names = [str(what) for kind, what in layer._slots if kind == "weights"]
        windowed = layer._kind in ("CONVOLUTION", "DECONVOLUTION", "FULLY_CONNECTED")
        roles = ("KERNEL", "BIAS") if windowed else ("CONSTANT",) * len(names)
        rows += [(n, layer._name, role) for n, role in zip(names, roles, strict=False)]
    return rows


def count_refit_map(parser: OnnxParser) -> int:
    """IParser::getRefitMap: how many weights have a layer and a role."""
    return len(_refit_map(parser))


def refit_map_at(parser: OnnxParser, index: int, column: int) -> object:
    """Name, layer or role of the weights with a number."""
    row = _refit_map(parser)[index]
    return WeightsRole[row[2]] if column == 2 else row[column]

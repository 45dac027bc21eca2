"""Algorithm selectors: applications that choose how each layer is computed, and keep the choice.

A CPU runtime chooses its kernels itself, so every layer has one algorithm here. A selector is asked
for each layer, may refuse it, and gets the report, as with TensorRT.
Source: tensorrt-api spec 3.2; TensorRT's Python bindings up to 10.x.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace._core.errors import EngineError
from headrace._core.text import error_text, printable
from headrace.plugins.types import DataType, Dims, TensorFormat
from headrace.trt.types.strict import Subclassed
from headrace.trt.types.values import strides

if TYPE_CHECKING:
    from headrace.trt.api.config import IBuilderConfig
    from headrace.trt.api.network import INetworkDefinition
    from headrace.trt.api.record import ShapeRanges
    from headrace.trt.layers.base import ILayer
    from headrace.trt.types.tensor import ITensor


@dataclass(frozen=True, slots=True)
class IAlgorithmIOInfo:
    """An input or output of an algorithm.

    Attributes:
        dtype: of its elements.
        strides: steps along each axis, in elements.
        tensor_format: always LINEAR.
        vectorized_dim: -1, since no format is vectorised.
        components_per_element: always 1.
    """

    dtype: DataType
    strides: Dims
    tensor_format: TensorFormat = TensorFormat.LINEAR
    vectorized_dim: int = -1
    components_per_element: int = 1


@dataclass(frozen=True, slots=True)
class IAlgorithmVariant:
    """The identifier of an algorithm: a checksum of the layer's kind, and 0."""

    implementation: int
    tactic: int = 0


@dataclass(frozen=True, slots=True)
class IAlgorithm:
    """The algorithm of a layer.

    Attributes:
        algorithm_variant: its identifier.
        timing_msec: 0; layers are not timed one by one.
        workspace_size: 0 bytes.
    """

    algorithm_variant: IAlgorithmVariant
    _infos: tuple[IAlgorithmIOInfo, ...]
    timing_msec: float = 0.0
    workspace_size: int = 0

    def get_algorithm_io_info(self, index: int) -> IAlgorithmIOInfo:
        """An input or output; inputs come first."""
        return self._infos[index]


@dataclass(frozen=True, slots=True)
class IAlgorithmContext:
    """The layer that an algorithm is chosen for.

    Attributes:
        name: of the layer.
        num_inputs, num_outputs: how many tensors it takes and makes.
    """

    name: str
    num_inputs: int
    num_outputs: int
    _shapes: tuple[tuple[Dims, ...], ...]

    def get_shape(self, index: int) -> list[Dims]:
        """[min, opt, max] of an input or output; empty if they follow from the profile's shapes."""
        return list(self._shapes[index])


class IAlgorithmSelector(Subclassed):
    """Chooses algorithms. Subclasses override both methods."""

    def select_algorithms(self, context: IAlgorithmContext, choices: list[IAlgorithm]) -> list[int]:
        """Indices of the choices that may be used; none leaves the choice to the builder."""
        raise NotImplementedError("select_algorithms")

    def report_algorithms(
        self, contexts: list[IAlgorithmContext], choices: list[IAlgorithm]
    ) -> None:
        """The choice that was made for each layer."""


def select(
    network: INetworkDefinition, config: IBuilderConfig, profiles: Sequence[ShapeRanges]
) -> None:
    """Ask the config's selector, if there is one, about every layer that outputs need.

    Raises:
        EngineError: it raised, gave an index that there is not, or chose nothing where the flag
            REJECT_EMPTY_ALGORITHMS forbids it.
    """
    selector = config._plain.get("algorithm_selector")
    if selector is None:
        return
    contexts, algorithms = [], []
    for layer in network._needed():
        if layer._kind == "CONSTANT":  # no algorithm computes it
            continue
        context, algorithm = _choice(layer, profiles[0])
        chosen = _ask(selector, "select_algorithms", context, [algorithm])
        if not chosen and "REJECT_EMPTY_ALGORITHMS" in config._flags:
            raise EngineError(f"the algorithm selector chose nothing for layer {context.name!r}")
        wrong = [i for i in chosen or () if int(i) != 0]
        if wrong:
            raise EngineError(
                f"the algorithm selector chose {wrong[0]} for layer {context.name!r}",
                expected="indices of the choices: 0, the only one",
            )
        contexts.append(context)
        algorithms.append(algorithm)
    _ask(selector, "report_algorithms", contexts, algorithms)


def _choice(layer: ILayer, profile: ShapeRanges) -> tuple[IAlgorithmContext, IAlgorithm]:
    inputs = [t for t in layer._inputs if t is not None]
    tensors = [*inputs, *layer._outputs]
    infos = tuple(IAlgorithmIOInfo(t.dtype, strides(tuple(t.shape))) for t in tensors)
    shapes = tuple(_range(t, profile) for t in tensors)
    context = IAlgorithmContext(layer.name, len(inputs), len(layer._outputs), shapes)
    return context, IAlgorithm(IAlgorithmVariant(zlib.crc32(layer._kind.encode())), infos)


def _range(tensor: ITensor, profile: ShapeRanges) -> tuple[Dims, ...]:
    axes = tuple(tensor.shape)
    if -1 not in axes:
        return (Dims(axes),) * 3
    shapes = profile.shapes.get(tensor.name) if tensor.is_network_input else None
    return () if shapes is None else tuple(Dims(shape) for shape in shapes)


def _ask(selector: IAlgorithmSelector, method: str, *arguments: object) -> Any:
    try:
        return getattr(selector, method)(*arguments)
    except Exception as error:  # the user's code
        text = error_text(error)
        print(printable(f"[ERROR] Exception caught in {method}(): {text}"), file=sys.stderr)
        raise EngineError(
            f"{method} raised {text}", where=f"algorithm selector {type(selector).__name__}"
        ) from error

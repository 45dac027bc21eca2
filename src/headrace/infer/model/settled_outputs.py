"""Outputs of a model that is not built: their shapes at the size of the config's images."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headrace._core.errors import EngineError
from headrace.engine.input_shapes import resolve_shape
from headrace.infer.model.image_input import axis_order
from headrace.network.shapes.model_shapes import ModelShapes
from headrace.network.tensor_spec import Axes, TensorSpec

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.network import Network


def settled_outputs(network: Network, cfg: ModelConfig) -> list[TensorSpec]:
    """The outputs, with the lengths that the size of the config's images gives free axes.

    They stay as they are where that size is not known, or the model is over 2 GiB.
    """
    outputs = list(network.outputs)
    fixed = all(spec.shape and all(isinstance(d, int) for d in spec.shape[1:]) for spec in outputs)
    if fixed or network.is_large or not network.inputs:
        return outputs
    first = network.inputs[0]
    try:
        image = resolve_shape(first, cfg.infer_dims, axis_order(cfg), where=str(cfg.path))
    except EngineError:
        return outputs  # told already
    shapes = {spec.name: tuple(max(d, 1) for d in spec.dims) for spec in network.inputs}
    shapes[first.name] = tuple(d or 1 for d in image)
    output_shapes = ModelShapes(network.to_proto().SerializeToString()).outputs(shapes)
    return [
        replace(spec, shape=_known(spec.shape, output_shapes.get(spec.name))) for spec in outputs
    ]


def _known(axes: Axes, shape: tuple[int, ...] | None) -> Axes:
    """The axes; free ones behind the batch as found."""
    if not shape or (axes and len(shape) != len(axes)):
        return axes
    pairs = list(zip(axes or (None,) * len(shape), shape, strict=True))
    lengths = (f if f > 0 and not isinstance(a, int) else a for a, f in pairs[1:])
    return (pairs[0][0], *lengths)

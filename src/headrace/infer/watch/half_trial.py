"""FP16 of a config, tried on images: findings about values that FP16 cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.engine.input_shapes import (
    complete_infer_dims,
    extra_inputs,
    resolve_shape,
    sample_inputs,
)
from headrace.engine.precision.explicit import Exported, export
from headrace.engine.precision.half import LARGEST_FP16
from headrace.engine.tuning.half_check import HalfCheck, check_half
from headrace.infer.model.image_input import axis_order, image_range
from headrace.infer.model.precision import precision_rules
from headrace.infer.model.source import model_source
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.nodes import has_plugins

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config import ModelConfig
    from headrace.network.network import Network

_NAMED = 8  # layers in an advice
_LOST_DB = 15.0  # FP16 leaves 30 and more; below half of it the outputs are others
_MADE = 2  # images of noise


def try_half(cfg: ModelConfig, feeds: Sequence[Mapping[str, Array]]) -> HalfCheck:
    """Run a config's model with FP16's roundings beside FP32.

    Args:
        cfg: its `layer-device-precision` pins layers, as in a build.
        feeds: inputs of a few runs by name; none: images of noise, as preprocessing would give.

    Raises:
        ConfigError: a bad item in `layer-device-precision` or `output-io-formats`.
        EngineError: the config names no model, or one that cannot be tried; the runtime fails.
        ModelError: the model cannot be read.
    """
    source = model_source(cfg)
    if source is None:
        raise EngineError("the config names no model")
    network = source.network()
    if network.is_large or has_plugins(network):
        raise EngineError("it is over 2 GiB" if network.is_large else "it has plugins")
    rules, _ = precision_rules(cfg, "fp16")

    def lower(largest: Mapping[str, float]) -> Exported:
        scales = {**rules.scales, **{name: v / 127 for name, v in largest.items()}}
        return export(
            network, "fp16", scales, keep=rules.keep, pins=rules.pins, skip_unknown=True, fold=True
        )

    return check_half(network, lower, feeds or _noise(cfg, network))


def _noise(cfg: ModelConfig, network: Network) -> list[dict[str, Array]]:
    where, image = str(cfg.path), network.inputs[0]
    shape = resolve_shape(image, complete_infer_dims(cfg.infer_dims), axis_order(cfg), where=where)
    low, high = image_range(cfg)
    inputs = [TensorSpec(image.name, image.dtype, shape), *extra_inputs(network, shape, where)]
    return [
        sample_inputs(inputs, shape[0] or 1, low=low, high=high, seed=seed) for seed in range(_MADE)
    ]


def half_findings(
    check: HalfCheck, where: str = "network-mode", *, of: str = "", end: str = ""
) -> Iterator[Finding]:
    """Word the effect of FP16 on a network, seen on images `of` a kind; `end` ends the sentence."""
    fault = check.fault
    least = min(check.decibels.values(), default=0.0)
    if fault is None or (not fault.overflows and least >= _LOST_DB):
        return
    data = {
        "layer": fault.layer, "operator": fault.operator, "tensor": fault.tensor,
        "largest": None if np.isnan(fault.largest) else fault.largest,
        "images": counted(check.images, "image") + of, "outputs": list(check.broken),
        "decibels": round(least, 1), "keep": list(check.keep),
    }  # fmt: skip
    if not fault.overflows:
        text = (
            "FP16 loses layer {layer} ({operator}): its values, at most {largest:.3g}, become 0 in "
            "{images}, and the outputs keep {decibels:.0f} dB of FP32's (FP16 leaves 30 and more)"
        )
        text += end
        yield Finding("fp16-values-lost", "warning", text, where, data, remedies=_ways_out(check))
        return
    if fault.largest > LARGEST_FP16:
        text = "FP16 overflows in layer {layer} ({operator}): its values reach {largest:.3g} in "
        text += "{images}, and FP16 ends at 65504; "
    else:
        text = "FP16 makes NaN or infinity of layer {layer} ({operator}) in {images}: a value that "
        text += "it divides by, or takes the logarithm of, becomes 0; "
    if check.harmless:
        text += "the outputs stay as they are ({decibels:.0f} dB)"
        yield Finding("fp16-overflow", "info", text, where, data)
        return
    text += "{outputs} have NaN or infinity then" if check.broken else "the outputs are others then"
    text += end
    yield Finding("fp16-overflow", "warning", text, where, data, remedies=_ways_out(check))


def _ways_out(check: HalfCheck) -> tuple[str, ...]:
    general = "network-mode=0 computes all of it in FP32"
    if not check.keep:
        return (general,)
    pins = ";".join(f"{name}:fp32:gpu" for name in check.keep[:_NAMED])
    more = ";…" if len(check.keep) > _NAMED else ""
    tried = f"the outputs then keep {check.kept_decibels:.0f} dB, tried on these images"
    return (f"layer-device-precision={pins}{more} keeps these in FP32: {tried}", general)

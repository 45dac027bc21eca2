"""Even ranges of activations: a factor per channel, and zero points.

A tensor has one scale for all its channels. Where one channel reaches far and another does not,
the small one is left with few of the 256 levels. A factor per channel, taken out of the weights
behind it, makes them alike without a change of what is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from noria._core.text import fresh
from noria.engine.precision.choice import TensorChoice
from noria.engine.precision.prepare import Proto, captured_names, replace_all

Floats = npt.NDArray[np.float64]
_POWERS = np.linspace(0, 1, 11)
_WIDEST = 1e-4  # of the widest channel: below this a channel is noise
_WORTH = 0.98  # of the noise without: a factor costs a multiplication


@dataclass(slots=True)
class Channels:
    """Lowest and highest value and sum of squares of each channel, over `count` values each."""

    low: Floats
    high: Floats
    squares: Floats
    count: int

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Channels:
        """Of (n, channels, …)."""
        flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
        squares = np.einsum("ci,ci->c", flat, flat, dtype=np.float64)
        return cls(flat.min(1).astype(float), flat.max(1).astype(float), squares, flat.shape[1])

    def add(self, other: Channels) -> None:
        """Count further values."""
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.squares, self.count = self.squares + other.squares, self.count + other.count


def choose_ranges(proto: Proto, seen: Mapping[str, Channels]) -> dict[str, TensorChoice]:
    """Choose how each activation is quantised: its range, and factors where they help.

    Of a family of factors those are taken that leave least noise behind the layers: that of the
    activation's rounding and that of the weights', both as uniform rounding has it.

    Args:
        proto: a prepared model, batch normalisations folded.
        seen: activation -> its channels.
    """
    weights = {t.name: t for t in proto.graph.initializer}
    chosen = {}
    for name, channels in seen.items():
        takers = [n for n in proto.graph.node if n.input and n.input[0] == name]
        kernels = [_by_group(n, weights) for n in takers if _is_convolution(n, weights)]
        factors = _best_factors(channels, kernels) if kernels else None
        low, high = channels.low, channels.high
        if factors is not None:
            low, high = low * factors, high * factors
        if max(-low.min(), high.max()) > 0:
            chosen[name] = TensorChoice(
                low=min(0.0, float(low.min())),
                high=max(0.0, float(high.max())),
                factors=() if factors is None else tuple(float(f) for f in factors),
            )
    return chosen


def _is_convolution(node: Any, weights: Mapping[str, Any]) -> bool:
    return node.op_type == "Conv" and len(node.input) > 1 and node.input[1] in weights


def _by_group(node: Any, weights: Mapping[str, Any]) -> Floats:
    """(groups, inputs, outputs, kernel) of a convolution's weights."""
    kernel = numpy_helper.to_array(weights[node.input[1]]).astype(np.float64)
    group = next((a.i for a in node.attribute if a.name == "group"), 1)
    split = kernel.reshape(group, kernel.shape[0] // group, kernel.shape[1], -1)
    return split.transpose(0, 2, 1, 3)


def _best_factors(channels: Channels, kernels: Sequence[Floats]) -> Floats | None:
    """The factors of least noise, their geometric mean 1; None if those are all 1."""
    size = len(channels.low)
    reach = np.maximum(-channels.low, channels.high)
    if size < 2 or not np.isfinite(reach).all() or reach.max() <= 0:
        return None
    if any(k.shape[0] * k.shape[1] != size for k in kernels):
        return None
    reach = np.maximum(reach, reach.max() * _WIDEST)
    largest = np.max([np.abs(k).max(axis=(2, 3)).ravel() for k in kernels], axis=0)
    largest = np.maximum(largest, max(largest.max(), 1e-30) * _WIDEST)
    best, least = None, _noise(channels, kernels, np.ones(size))
    for power in _POWERS:
        for raw in (reach**-power, largest ** (1 - power) / reach**power):
            factors = raw / np.exp(np.log(raw).mean())
            noise = _noise(channels, kernels, factors)
            if noise < least * _WORTH:
                best, least = factors, noise
    return best


def _noise(channels: Channels, kernels: Sequence[Floats], factors: Floats) -> float:
    """Squares of rounding errors behind the layers, by the squares of their results."""
    reach = max(0.0, (channels.high * factors).max()) - min(0.0, (channels.low * factors).min())
    power = channels.squares / max(channels.count, 1)
    total = 0.0
    for kernel in kernels:
        groups, inputs, _, area = kernel.shape
        scaled = kernel / factors.reshape(groups, inputs, 1, 1)
        steps = np.abs(scaled).max(axis=(1, 3)) / 127  # a scale per output channel
        taken = (power * factors**2).reshape(groups, inputs).sum(axis=1) * area
        rounding = (reach / 255) ** 2 * np.square(scaled).sum()
        rounding += (np.square(steps) * taken[:, None]).sum()
        truth = (np.square(kernel) * power.reshape(groups, inputs, 1, 1)).sum()
        total += float(rounding / max(truth, 1e-30))
    return total


def even_out(proto: Proto, tensors: Mapping[str, TensorChoice], nodes: Collection[str]) -> Proto:
    """Put the factors of activations into a copy of a prepared model.

    Args:
        proto: the model; what it computes stays the same.
        tensors: activation -> its factors.
        nodes: names of the convolutions that take the even tensor, named `evened(activation)`.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    graph = made.graph
    weights = {t.name: t for t in graph.initializer}
    taken = {n for node in graph.node for n in (node.name, *node.output)} | set(weights)
    nodes_out: list[Any] = []
    there: set[str] = set()
    for node in graph.node:
        choice = tensors.get(node.input[0]) if node.input else None
        if choice and choice.factors and node.name in nodes and _is_convolution(node, weights):
            kernel = numpy_helper.to_array(weights[node.input[1]])
            factors = np.array(choice.factors, np.float32)
            group = next((a.i for a in node.attribute if a.name == "group"), 1)
            if len(factors) == group * kernel.shape[1]:
                name = node.input[0]
                if name not in there:
                    there.add(name)
                    shape = (-1, *[1] * (kernel.ndim - 2))
                    label = fresh(f"{name}_factors", taken)
                    graph.initializer.append(numpy_helper.from_array(factors.reshape(shape), label))
                    multiply = fresh(f"{name}_evening", taken)
                    nodes_out.append(
                        helper.make_node("Mul", [name, label], [evened(name)], multiply)
                    )
                per_group = factors.reshape(group, 1, -1, *[1] * (kernel.ndim - 2))
                split = kernel.reshape(group, -1, *kernel.shape[1:]) / per_group
                label = fresh(f"{node.name}_evened_weights", taken)
                graph.initializer.append(
                    numpy_helper.from_array(split.reshape(kernel.shape), label)
                )
                node.input[0], node.input[1] = evened(name), label
        nodes_out.append(node)
    for name in there:
        graph.value_info.append(
            helper.make_tensor_value_info(evened(name), TensorProto.FLOAT, None)
        )
    replace_all(graph.node, nodes_out)
    used = {name for node in graph.node for name in node.input} | captured_names(graph)
    used |= {value.name for value in graph.output}
    replace_all(graph.initializer, [t for t in graph.initializer if t.name in used])
    return made


def evened(name: str) -> str:
    """The name of an activation with its factors in."""
    return f"{name}_even"


def set_ranges(graph: Any, tensors: Mapping[str, TensorChoice]) -> None:
    """Let the pairs of activations store unsigned bytes over their own range, in place."""
    ranges = {**tensors} | {evened(n): t for n, t in tensors.items() if t.factors}
    taken = {tensor.name for tensor in graph.initializer}
    names: dict[str, tuple[str, str]] = {}
    pairs = {"QuantizeLinear", "DequantizeLinear"}
    stored = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "QuantizeLinear"}
    for node in graph.node:
        source = stored.get(node.output[0]) or stored.get(node.input[0] if node.input else "")
        if node.op_type not in pairs or source is None or source not in ranges:
            continue
        if source not in names:
            low, high = ranges[source].low, ranges[source].high
            scale = np.float32((high - low) / 255)
            zero = np.uint8(np.clip(round(-low / float(scale)), 0, 255))
            labels = fresh(f"{source}_own_scale", taken), fresh(f"{source}_own_zero", taken)
            for label, value in zip(labels, (scale, zero), strict=True):
                graph.initializer.append(numpy_helper.from_array(np.asarray(value), label))
            names[source] = labels
        node.input[1], node.input[2] = names[source]

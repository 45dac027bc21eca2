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
_ALIKE = 0.9  # correlation of the values under the places of a kernel
_MOST_FLIPS = 48
_WORTH = 0.98  # of the noise without: a factor costs a multiplication


@dataclass(slots=True)
class Channels:
    """Lowest and highest value and sums of each channel, over `count` values each."""

    low: Floats
    high: Floats
    sums: Floats
    squares: Floats
    count: int

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Channels:
        """Of (n, channels, …)."""
        flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
        squares = np.einsum("ci,ci->c", flat, flat, dtype=np.float64)
        sums = flat.sum(1, dtype=np.float64)
        return cls(
            *(flat.min(1).astype(float), flat.max(1).astype(float)), sums, squares, flat.shape[1]
        )

    def add(self, other: Channels) -> None:
        """Count further values."""
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.sums, self.squares = self.sums + other.sums, self.squares + other.squares
        self.count += other.count


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
        if not kernels:  # products of unsigned bytes overflow in ONNX Runtime without VNNI
            continue
        factors = _best_factors(channels, kernels)
        low, high = channels.low, channels.high
        mean, power = channels.sums / channels.count, channels.squares / channels.count
        if factors is not None:
            low, high = low * factors, high * factors
        if max(-low.min(), high.max()) > 0:
            chosen[name] = TensorChoice(
                low=min(0.0, float(low.min())),
                high=max(0.0, float(high.max())),
                factors=_short(factors),
                means=_short(mean),
                deviations=_short(np.sqrt(np.maximum(power - mean**2, 0))),
            )
    return chosen


def _short(values: Floats | None) -> tuple[float, ...]:
    """Six digits: more only make the file longer."""
    return () if values is None else tuple(float(f"{value:.6g}") for value in values)


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
            factors = np.asarray(_short(raw / np.exp(np.log(raw).mean())))
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


def even_out(
    proto: Proto, tensors: Mapping[str, TensorChoice], nodes: Collection[str], levels: int = 127
) -> Proto:
    """Put the factors of activations into a copy of a prepared model, and round the weights.

    Args:
        proto: the model.
        tensors: activation -> its factors, and what its channels hold.
        nodes: names of the layers to quantise; what others compute stays the same.
        levels: the largest quantised weight.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    graph = made.graph
    weights = {t.name: t for t in graph.initializer}
    taken = {n for node in graph.node for n in (node.name, *node.output)} | set(weights)
    ordered: list[Any] = []
    there: set[str] = set()
    for node in graph.node:
        name = node.input[0] if node.input else ""
        choice = tensors.get(name)
        if choice is None or node.name not in nodes or not _is_convolution(node, weights):
            ordered.append(node)
            continue
        kernel = _by_group(node, weights)
        channels = kernel.shape[0] * kernel.shape[1]
        factors = np.array(choice.factors or [1.0] * channels)
        if len(factors) == channels:
            if choice.factors and name not in there:
                there.add(name)
                shape = (-1, *[1] * (len(weights[node.input[1]].dims) - 2))
                values = factors.astype(np.float32).reshape(shape)
                label = fresh(f"{name}_factors", taken)
                graph.initializer.append(numpy_helper.from_array(values, label))
                multiply = fresh(f"{name}_evening", taken)
                ordered.append(helper.make_node("Mul", [name, label], [evened(name)], multiply))
            kernel = kernel / factors.reshape(*kernel.shape[:2], 1, 1)
            if len(choice.means) == len(choice.deviations) == channels:
                spread = np.array(choice.deviations) * factors
                kernel = round_weights(kernel, np.array(choice.means) * factors, spread, levels)
            dims = tuple(weights[node.input[1]].dims)
            label = fresh(f"{node.name}_rounded", taken)
            values = kernel.transpose(0, 2, 1, 3).reshape(dims).astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(values, label))
            node.input[1] = label
            if choice.factors:
                node.input[0] = evened(name)
        ordered.append(node)
    types = [helper.make_tensor_value_info(evened(n), TensorProto.FLOAT, None) for n in there]
    graph.value_info.extend(types)
    replace_all(graph.node, ordered)
    used = {name for node in graph.node for name in node.input} | captured_names(graph)
    used |= {value.name for value in graph.output}
    replace_all(graph.initializer, [t for t in graph.initializer if t.name in used])
    return made


def round_weights(kernel: Floats, means: Floats, deviations: Floats, levels: int) -> Floats:
    """Round weights to bytes of a scale per output channel, so that their errors cancel.

    To the nearest, each error is small, but their sum over inputs that are alike need not be:
    those of a kernel's places, and the means of all channels. Weights are rounded the other way
    as long as that makes the expected error of the layer's result less.

    Args:
        kernel: (groups, inputs, outputs, places).
        means, deviations: (groups * inputs,) of the values of the channels.
        levels: the largest byte.

    Returns:
        The rounded values, in the kernel's shape.
    """
    groups, inputs, outputs, places = kernel.shape
    rows = kernel.transpose(0, 2, 1, 3).reshape(groups * outputs, inputs, places)
    step = np.maximum(np.abs(rows).max(axis=(1, 2), keepdims=True), 1e-30) / levels
    scaled = rows / step
    bytes_ = np.round(scaled)
    mean = np.repeat(means.reshape(groups, inputs), outputs, axis=0)[:, :, None]
    power = np.repeat(deviations.reshape(groups, inputs), outputs, axis=0)[:, :, None] ** 2
    error = bytes_ - scaled
    every = np.arange(len(rows))
    for _ in range(_MOST_FLIPS):
        flip = np.where(error > 0, -1.0, 1.0)
        together = error.sum(axis=2, keepdims=True)
        whole = (together * mean).sum(axis=1, keepdims=True)
        gain = 2 * whole * mean * flip + (mean * flip) ** 2
        gain = gain + _ALIKE * power * (2 * together * flip + 1)
        gain = gain + (1 - _ALIKE) * power * (2 * error * flip + 1)
        gain = np.where(np.abs(bytes_) >= levels, np.inf, gain).reshape(len(rows), -1)
        best = gain.argmin(axis=1)
        better = every[gain[every, best] < 0]
        if not len(better):
            break
        at = (better, best[better] // places, best[better] % places)
        change = flip[at]
        bytes_[at] += change
        error[at] += change
    rounded = (bytes_ * step).reshape(groups, outputs, inputs, places)
    return np.asarray(rounded.transpose(0, 2, 1, 3))


def evened(name: str) -> str:
    """The name of an activation with its factors in."""
    return f"{name}_even"


def set_ranges(graph: Any, tensors: Mapping[str, TensorChoice]) -> None:
    """Let the pairs of activations store unsigned bytes over their own range, in place."""
    ranges = {**tensors} | {evened(n): t for n, t in tensors.items() if t.factors}
    taken = {tensor.name for tensor in graph.initializer}
    names: dict[str, tuple[str, str]] = {}
    owned: set[str] = set()
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
        owned.add(node.output[0] if node.op_type == "QuantizeLinear" else node.input[0])
    for value in graph.value_info:
        if value.name in owned:
            value.type.tensor_type.elem_type = TensorProto.UINT8

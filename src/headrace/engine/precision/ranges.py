"""Ranges and factors of activations that leave least rounding noise behind the layers.

A tensor has one scale for all its channels. Where one channel reaches far and another does not,
the small one is left with few of the 256 levels. A factor per channel, taken out of the weights
behind it, gives each channel the levels it needs without a change of what is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

from headrace._core._native import rounding_errors
from headrace._core.types import Array
from headrace.engine.precision.choice import TensorChoice
from headrace.engine.precision.prepare import Proto

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


Floats = npt.NDArray[np.float64]
Samples = npt.NDArray[np.float32]

_BELOW_ZERO = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0)  # of the range above 0
_CLIPPED = np.array([1, 1.15, 1.35, 1.6, 2, 2.5])  # what a channel's largest value exceeds it by
_POWERS = (1, 0.8, 0.6, 0.4, 0.2, 0)  # of the factors that suit the activations alone
_WIDEST = 1e-3  # of the widest channel: below this a channel is noise
_DIRECTIONS = 8  # in which channels move together, of the most that can be
_INSIDE = 0.6  # of the places that are looked at


@dataclass(slots=True)
class Channels:
    """Values in the channels of an activation.

    Attributes:
        low, high: (C,) the lowest and highest value of each channel.
        parts: values at some places, (C, n) each; all together are a sample of the images.
    """

    low: Floats
    high: Floats
    parts: list[Samples] = field(default_factory=list)

    @classmethod
    def of(cls, values: Array, indices: npt.NDArray[np.int64] | None = None) -> Channels:
        """Look at (n, channels, …); `indices` are those of the sample, all by default."""
        flat = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
        part = flat if indices is None else flat[:, indices]
        return cls(flat.min(1).astype(float), flat.max(1).astype(float), [part.astype(np.float32)])

    def add(self, other: Channels) -> None:
        """Count further values."""
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.parts += other.parts

    @property
    def sample(self) -> Samples:
        """(C, n) the values of all parts."""
        self.parts = [np.ascontiguousarray(np.concatenate(self.parts, axis=1))]
        return self.parts[0]


def sample_places(
    shape: Sequence[int], rects: Floats, count: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Choose places of a map (1, channels, height, width), most of them inside objects.

    Objects are few and small in most images, and their values reach farthest: a range that
    suits the background alone cuts them off.

    Args:
        shape: of the map; other shapes than four axes have no insides.
        rects: (N, 4) left, top, right, bottom of objects, as shares of the image.
        count: the most places.
        rng: decides.

    Returns:
        Indices into the flat map, none twice.
    """
    size = int(np.prod(shape[2:], dtype=np.int64)) * shape[0]
    inside = np.zeros(0, np.int64)
    if len(shape) == 4 and shape[0] == 1 and len(rects):
        height, width = shape[2:]
        covered = np.zeros((height, width), bool)
        edges = np.clip(rects, 0, 1) * (width, height, width, height)
        for left, top, right, bottom in edges:
            covered[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))] = True
        inside = np.flatnonzero(covered)
        inside = rng.choice(inside, min(int(count * _INSIDE), len(inside)), replace=False)
    rest = np.setdiff1d(np.arange(size), inside, assume_unique=True)
    rest = rng.choice(rest, min(count - len(inside), len(rest)), replace=False)
    return np.concatenate([inside, rest])


def choose_ranges(
    proto: Proto, seen: Mapping[str, Channels], *, weight_bits: Literal[7, 8] = 8
) -> dict[str, TensorChoice]:
    """Choose how each activation is quantised: its range, and factors where they help.

    Args:
        proto: a prepared model, batch normalisations folded.
        seen: activation -> its channels.
        weight_bits: those of the weights, whose noise the factors change as well.
    """
    levels = 127 if weight_bits == 8 else 63
    weights = {t.name: t for t in proto.graph.initializer}
    chosen = {}
    for name, channels in seen.items():
        takers = [n for n in proto.graph.node if n.input and n.input[0] == name]
        kernels = [by_group(n, weights) for n in takers if is_convolution(n, weights)]
        if not kernels:  # products of unsigned bytes overflow in ONNX Runtime without VNNI
            continue
        if not max(-channels.low.min(), channels.high.max()) > 0:
            continue
        directions, deviations = _moments(channels.sample)
        low, high, factors = _least_noise(channels, kernels, levels)
        chosen[name] = TensorChoice(
            low=low,
            high=high,
            factors=() if np.ptp(factors) < 1e-6 else _rounded(factors),
            directions=directions,
            deviations=deviations,
        )
    return chosen


def _rounded(values: Floats, digits: int = 6) -> tuple[float, ...]:
    """More digits only make the file longer."""
    return tuple(float(f"{value:.{digits}g}") for value in values)


def _moments(sample: Samples) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]:
    """The strongest directions of the channels' second moment, and each channel's rest."""
    values = sample.astype(np.float64)
    moment = values @ values.T / max(values.shape[1], 1)
    strengths, axes = np.linalg.eigh(moment)
    along = (axes * np.sqrt(np.maximum(strengths, 0))).T[-_DIRECTIONS:][::-1]
    left = np.diag(moment) - np.square(along).sum(0)
    directions = tuple(_rounded(one, 4) for one in along)
    return directions, _rounded(np.sqrt(np.maximum(left, 0)), 4)


def is_convolution(node: NodeProto, weights: Mapping[str, TensorProto]) -> bool:
    """True for convolutions with weights in the graph."""
    return node.op_type == "Conv" and len(node.input) > 1 and node.input[1] in weights


def by_group(node: NodeProto, weights: Mapping[str, TensorProto]) -> Floats:
    """(groups, inputs, outputs, kernel) of a convolution's weights."""
    kernel = numpy_helper.to_array(weights[node.input[1]]).astype(np.float64)
    group = next((a.i for a in node.attribute if a.name == "group"), 1)
    split = kernel.reshape(group, kernel.shape[0] // group, kernel.shape[1], -1)
    return split.transpose(0, 2, 1, 3)


def _least_noise(
    channels: Channels, kernels: Sequence[Floats], levels: int
) -> tuple[float, float, Floats]:
    """Lowest and highest value and factors, their geometric mean 1.

    With the activation's bytes over [-b, 1], every channel takes the factor that loses it least:
    a larger one has finer steps and cuts off more. Those factors suit the activation alone; the
    weights, divided by them, would rather be alike. Of their powers, and of some b, those are taken
    whose noise of both behind the layers is least, relative to the layers' results.
    """
    sample, size = channels.sample, len(channels.low)
    if any(k.shape[0] * k.shape[1] != size for k in kernels):
        low, high = channels.low.min(), channels.high.max()
        return min(float(low), 0.0), max(float(high), 0.0), np.ones(size)
    above, below = np.maximum(channels.high, 0), np.maximum(-channels.low, 0)
    power = np.square(sample, dtype=np.float64).mean(1)
    squares = [np.square(k).sum((2, 3)).ravel() for k in kernels]
    results = [max(float((s * power).sum()), 1e-30) for s in squares]
    needed = np.sum([s / r for s, r in zip(squares, results, strict=True)], axis=0)
    separate = all(k.shape[1] == 1 for k in kernels)  # the weights of an input have their own scale
    least = max(above.max(), below.max()) * _WIDEST
    best: tuple[float, float, Floats] | None = None
    lowest = np.inf
    for under in _BELOW_ZERO if below.max() > least else (0.0,):
        bound = 1 / np.maximum(above, least)
        if under:
            bound = np.minimum(bound, under / np.maximum(below, least * under))
        tried = np.stack([_rounding(sample, bound * clipped, under) for clipped in _CLIPPED])
        suited = bound * _CLIPPED[tried.argmin(0)]
        for exponent in (1,) if separate else _POWERS:
            factors = suited**exponent
            factors *= (suited / factors).min()
            lost = tried.min(0) if exponent == 1 else _rounding(sample, factors, under)
            noise = float((needed * lost).sum())
            for kernel, result in zip(kernels, results, strict=True):
                noise += _weights_noise(kernel, factors, power, levels) / result
            if noise < lowest:
                mean = float(np.exp(np.log(factors).mean()))
                lowest, best = noise, (-under / mean, 1 / mean, factors / mean)
    assert best is not None
    return best


def _rounding(sample: Samples, factors: Floats, under: float) -> Floats:
    """(C,) mean squared error of the values in bytes over [-under, 1], behind the factors."""
    step = (1 + under) / 255
    zero = round(under / step)
    squares = np.empty(len(sample))
    rounding_errors(sample, (factors / step).astype(np.float32), -zero, 255 - zero, squares)
    squares /= max(sample.shape[1], 1)
    return np.asarray(squares * (step / factors) ** 2)


def _weights_noise(kernel: Floats, factors: Floats, power: Floats, levels: int) -> float:
    """Squared error of a layer's result by its weights in bytes, as uniform rounding has it."""
    groups, inputs, _, area = kernel.shape
    steps = np.abs(kernel / factors.reshape(groups, inputs, 1, 1)).max(axis=(1, 3)) / levels
    met = (power * factors**2).reshape(groups, inputs).sum(axis=1) * area
    return float((np.square(steps) * met[:, None]).sum() / 12)

"""Frames at hand: inputs of the network with its outputs, and other inputs made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array, Arrays
from headrace.config.enums import ColorFormat, TensorOrder
from headrace.infer.geometry import Rect, ScaleTransform, fit
from headrace.infer.preprocess import Preprocessor
from headrace.media.frame import Frame
from headrace.media.sources.arrays import ArraySource
from headrace.meta import Layer

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.meta import NetworkInfo

Run = Callable[[Array], Arrays]
"""The network on one input (C, H, W) or (H, W, C): outputs with a batch axis of 1."""

_ALIKE = 0.1  # of their range: images that differ by less in the mean show the same scene
_BLOCK = 1 << 15  # values
_LARGEST = 1920  # pixels of a side of an image that is made of an input


class PackedInput(PlainRecord, frozen=True):
    """An input of the network as the bytes that it was made of: a quarter of its memory.

    Attributes:
        levels: the bytes, in the axes of the input.
        means: of each value, in the same axes or for all of them.
        scale: see `Preprocessor`.
    """

    levels: Array
    means: Array
    scale: np.float32

    def unpacked(self) -> Array:
        """The input, to the bit."""
        values = self.levels.astype(np.float32)
        values -= self.means
        values *= self.scale
        return values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input."""
        return self.levels.shape

    def thinned(self, step: int) -> PackedInput:
        """Every so many values of it, as one row."""
        at = np.unravel_index(np.arange(0, self.levels.size, step), self.shape)
        return PackedInput(self.levels[at], np.broadcast_to(self.means, self.shape)[at], self.scale)


def packed(tensor: Array, pre: Preprocessor) -> PackedInput | None:
    """Pack an input; None if it was not made by `pre`."""
    if tensor.dtype != np.float32 or tensor.shape != tuple(pre.shape):
        return None
    means, scale = _means(pre), np.float32(pre.scale)
    if pre.order == TensorOrder.NCHW:
        means = means.transpose(2, 0, 1)
    plain = scale == 1 and not means.any()
    every = np.broadcast_to(means, tensor.shape)
    levels = np.empty(tensor.shape, np.uint8)
    for at in _blocks(tensor.shape, planar=pre.order == TensorOrder.NCHW):
        part = levels[at]
        if plain:
            part[...] = values = tensor[at]
            same = np.array_equal(part, values)
        else:
            values = tensor[at] / scale
            values += every[at]
            part[...] = np.rint(values, out=values)
            values -= every[at]
            values *= scale
            same = np.array_equal(values, tensor[at])
        if not same:
            return None
    return PackedInput(levels, means, scale)


def _blocks(shape: tuple[int, ...], *, planar: bool) -> Iterator[tuple[slice, ...]]:
    """Parts of an input that stay in a cache: twice as fast as the whole."""
    rows, planes = (shape[1], shape[0]) if planar else (shape[0], 1)
    step = max(1, _BLOCK * rows * planes // math.prod(shape))
    for plane in range(planes):
        for row in range(0, rows, step):
            here = slice(row, row + step)
            yield (slice(plane, plane + 1), here) if planar else (here,)


def _means(pre: Preprocessor) -> Array:
    """Means of the levels: (height, width, channels), or 1 for the first two."""
    if pre.mean is not None:
        return pre.mean
    return np.array(pre.means[: pre.channels], np.float32)[None, None]


class Sample(PlainRecord):
    """One item as it went through the network.

    Attributes:
        kept: its input, as `Preprocessor.shape` has it; `outputs` without the batch axis.
        found: the model's parser found something in it.
        news: how much the image differs from the mean of those before it, in levels of the input.
        transform: where its piece of the frame lies in the input; None: it fills it.
        size: width and height of the frame in pixels; zeros if they are not known.
        frame: the image, where it is kept; None makes one of the input.
        crop: the rectangle of it that is shown, in frame pixels; None for the whole frame.
    """

    kept: Array | PackedInput
    outputs: Arrays
    found: bool = False
    news: float = 0.0
    transform: ScaleTransform | None = None
    size: tuple[int, int] = (0, 0)
    frame: Frame | None = None
    crop: Rect | None = None

    @property
    def tensor(self) -> Array:
        """The input."""
        return self.kept.unpacked() if isinstance(self.kept, PackedInput) else self.kept

    def thinned(self, step: int) -> Array:
        """Every so many values of the input."""
        kept = self.kept
        if isinstance(kept, PackedInput):
            return kept.thinned(step).unpacked()
        return kept.reshape(-1)[::step]

    @property
    def layers(self) -> dict[str, Layer]:
        """The outputs as parsers see them."""
        return {name: Layer(name, data) for name, data in self.outputs.items()}


Piece = tuple[Frame, Rect | None]
"""A frame with the rectangle of it that a network sees; None for the whole frame."""


def sampled(pre: Preprocessor, run: Run, pieces: Iterable[Piece]) -> list[Sample]:
    """Scale pieces of frames and run the network on each.

    Raises:
        EngineError: the network failed.
    """
    samples = []
    for frame, crop in pieces:
        tensor = np.empty(pre.shape, np.float32)
        transform = pre(frame, tensor, crop)
        outputs = {name: data[0].copy() for name, data in run(tensor).items()}
        size = frame.width, frame.height
        samples.append(
            Sample(tensor, outputs, transform=transform, size=size, frame=frame, crop=crop)
        )
    return samples


def placed(sample: Sample, network: NetworkInfo) -> tuple[ScaleTransform, tuple[int, int]]:
    """Where the sample lies in the input, and the size of its frame in pixels."""
    if sample.transform is not None and all(sample.size):
        return sample.transform, sample.size
    size = network.width, network.height
    return fit(Rect(0, 0, *size), *size), size


def prepared(
    sample: Sample, old: Preprocessor, new: Preprocessor, network: NetworkInfo
) -> tuple[Array, ScaleTransform, tuple[int, int]]:
    """The input that another pre-processing makes of the same image.

    Without the image itself, that of the old input is taken: its bytes, where no bars are.

    Returns:
        The input, where the image lies in it, and the size of its frame in pixels.
    """
    frame, crop = sample.frame, sample.crop
    if frame is None:
        frame, crop = _image_of(sample, old, network), None
    tensor = np.empty(new.shape, np.float32)
    transform = new(frame, tensor, crop)
    return tensor, transform, (frame.width, frame.height)


def _image_of(sample: Sample, pre: Preprocessor, network: NetworkInfo) -> Frame:
    """The image that an input shows, in the shape that it has in its frame."""
    transform, _ = placed(sample, network)
    levels = sample.tensor / np.float32(pre.scale)
    planar = pre.order == TensorOrder.NCHW
    if planar:
        levels = levels.transpose(1, 2, 0)
    image = np.clip(np.rint(levels + _means(pre)), 0, 255).astype(np.uint8)
    left, top, wide, high = (int(v) for v in transform.dst)
    image = np.ascontiguousarray(image[top : top + high, left : left + wide])
    if pre.channels == 1:
        image = image[..., 0]
    order = {ColorFormat.BGR: "bgr", ColorFormat.GRAY: "gray"}.get(pre.color_format, "rgb")
    frame = ArraySource((), name="trial", format=order).frame_of(image, 0)
    shape, real = wide / high, transform.src.width / max(1.0, transform.src.height)
    if 0.98 < shape / real < 1.02 or pre.channels == 1:
        return frame
    sides = (round(high * real), high) if real > shape else (wide, round(wide / real))
    if max(sides) > _LARGEST:
        return frame
    stretch = Preprocessor(*sides, color_format=ColorFormat.RGB, order=TensorOrder.NHWC)
    pixels = np.empty(stretch.shape, np.float32)
    stretch(frame, pixels)
    return ArraySource((), name="trial", format="rgb").frame_of(pixels.astype(np.uint8), 0)


def blank_frames(network: NetworkInfo) -> Iterator[Frame]:
    """Images of the network's size that show nothing: plain grey, a ramp, noise."""
    high, wide = network.height, network.width
    ramp = np.broadcast_to(np.linspace(0, 255, wide), (high, wide))
    noise = np.random.default_rng(0).uniform(0, 255, (high, wide, 3))
    source = ArraySource((), name="blank", format="rgb")
    for index, image in enumerate((np.full((high, wide), 114), ramp, noise)):
        pixels = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
        yield source.frame_of(np.ascontiguousarray(pixels, np.uint8), index)


def image_fields(cfg: ModelConfig) -> tuple[object, ...]:
    """The values of a config that decide about the network's input."""
    return (
        cfg.net_scale_factor, tuple(cfg.offsets), cfg.mean_file, cfg.model_color_format,
        cfg.maintain_aspect_ratio, cfg.symmetric_padding, cfg.scaling_filter, cfg.profile,
        cfg.network_input_order,
    )  # fmt: skip


def neighbours(samples: Sequence[Sample]) -> list[tuple[int, int]]:
    """Pairs of samples, one behind the other, that show the same scene a little later."""
    pairs = []
    for (i, a), (j, b) in pairwise(enumerate(samples)):
        if a.kept.shape != b.kept.shape:
            continue
        step = max(1, math.prod(a.kept.shape) // 4096)
        one, other = a.thinned(step), b.thinned(step)
        span = float(max(np.ptp(one), np.ptp(other)))
        if span and float(np.abs(one - other).mean()) <= _ALIKE * span:
            pairs.append((i, j))
    return pairs

"""First layers: the values they were trained on, as far as their numbers tell.

The first convolution answers natural images with a spread that follows from its weights. Behind
it either a normalisation has kept the spread seen in training, which gives the scale of the input;
or that has been folded into the weights, which still tells 0..255 from numbers around 1: a layer
that was trained answers with about 1, not with hundreds.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.infer.recognise.stem import Stem

Level = Literal["bytes", "small"]

# Natural images, in levels 0 to 255: their spread, and how alike neighbours and channels are.
_SPREAD = 0.27 * 255
_NEIGHBOURS = 0.95
_CHANNELS = 0.92
_BYTES = (0.02, 8.0)  # spread of the answers to 0..255 of a layer that was trained on that
FOLDED = 30.0  # from here on it was trained on small numbers


class FirstLayers(PlainRecord, frozen=True):
    """Findings in the layers up to the first convolution.

    Attributes:
        inside: the graph scales or centres the image itself, in words; empty if it does not.
            `level` is then that of what it begins with.
        level: whether the first layer was trained on 0..255 or on small numbers; None: not known.
        scale: the input's scale for bytes (1/255 = 0.0039), where a normalisation tells; or None.
        centred: True if the input's mean was near 0 in training; None: not known.
        why: the numbers behind `level` and `scale`, in words.
    """

    inside: str = ""
    level: Level | None = None
    scale: float | None = None
    centred: bool | None = None
    why: str = ""


def weigh(stem: Stem) -> FirstLayers:
    """Weigh the layers up to the first convolution."""
    if stem.steps:
        words = ", ".join(f"{name} {number:.4g}" for name, number in stem.steps)
        of_bytes = any(
            (name == "Mul" and 0 < n <= 0.02) or (name in ("Div", "Sub", "Add") and n >= 10)
            for name, n in stem.steps
        )
        inside = f"the graph normalises the image itself ({words})"
        return FirstLayers(inside, "bytes" if of_bytes else "small", why=inside)
    if stem.conv is None:
        return FirstLayers()
    if stem.untrained:
        return FirstLayers(why="the first layer was never trained")
    spread = natural_answers(stem.conv)
    if (ratio := spread_ratio(stem, spread)) is not None:
        scale, level = 1 / ratio, learnt_mean(stem)
        # 0..1 has its mean near 0.45: in units of the input's own spread that is 1.7
        centred = abs(level) < 0.8 * scale * _SPREAD
        why = "the statistics behind the first layer fit images scaled by "
        why += f"1/{ratio:.0f} with a mean of {level:.2f}"
        return FirstLayers("", "bytes" if scale > 0.3 else "small", scale, centred, why)
    size = middle(spread)
    why = f"on images in 0..255 the results of the first layer vary by {size:.3g}"
    if _BYTES[0] <= size <= _BYTES[1]:
        return FirstLayers(level="bytes", why=f"{why}: it was trained on 0..255")
    if size < FOLDED:
        return FirstLayers(why=why)
    why += ", where about 1 is usual: it was trained on small numbers, not on 0..255"
    return FirstLayers(level="small", why=why)


def spread_ratio(stem: Stem, spread: Array) -> float | None:
    """Compare the spread of each filter's answers with that in training.

    Returns:
        How many times as far they spread, the median over the filters that are in use; None
        where no statistics tell.
    """
    if stem.statistics is None:
        return None
    variance = np.maximum(stem.statistics[1], 0)
    used = (variance > middle(variance) * 0.1) & (spread > 0)
    return middle(spread[used] / np.sqrt(variance[used])) if used.any() else None


def learnt_mean(stem: Stem) -> float:
    """Mean of the input in training, from convolution and statistics; both must be there."""
    assert stem.conv is not None
    assert stem.statistics is not None
    gain = stem.conv.sum(axis=(1, 2, 3))
    moved = stem.statistics[0] - (0 if stem.bias is None else stem.bias)
    return float((moved * gain).sum() / max(float((gain * gain).sum()), 1e-12))


def middle(values: Array) -> float:
    """Upper median; NumPy's own loads its masked arrays."""
    return float(np.sort(values)[len(values) // 2])


def natural_answers(filters: Array) -> Array:
    """Estimate the spread (standard deviation) of each filter's answers to images in 0..255."""
    count, channels, height, width = filters.shape
    y, x = np.mgrid[:height, :width]
    coordinates = np.stack([y.ravel(), x.ravel()], axis=1)
    away = np.abs(coordinates[:, None] - coordinates[None]).sum(axis=-1)
    alike = np.full((channels, channels), _CHANNELS)
    np.fill_diagonal(alike, 1.0)
    covariance = np.kron(alike, _NEIGHBOURS**away) * _SPREAD**2
    flat = filters.reshape(count, -1)
    variance = np.einsum("oi,ij,oj->o", flat, covariance, flat)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

"""First layers: the values they were trained on, as far as their numbers tell.

The first convolution answers natural pictures with a spread that follows from its weights. Behind
it either a normalisation has kept the spread seen in training, which gives the scale of the input;
or that has been folded into the weights, which still tells 0..255 from numbers around 1: a layer
that was trained answers with about 1, not with hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from noria.infer.recognition.evidence import PASSIVE

if TYPE_CHECKING:
    from noria.infer.recognition.evidence import FileEvidence

Array = npt.NDArray[Any]
Level = Literal["bytes", "small"]

# Natural pictures, in levels 0 to 255: their spread, and how alike neighbours and channels are.
_SPREAD = 0.27 * 255
_NEIGHBOURS = 0.95
_CHANNELS = 0.92
_BYTES = (0.02, 8.0)  # spread of the answers to 0..255 of a layer that was trained on that
_FOLDED = 30.0  # from here on it was trained on small numbers
_UNTRAINED = 1e-4
_SCALING = ("Sub", "Div", "Mul", "Add", "BatchNormalization")
_KEEP_PICTURES = frozenset(
    (*PASSIVE, *_SCALING, "Slice", "SpaceToDepth", "Concat", "Pad", "Split", "Clip", "Resize")
)
_REACH = 40  # nodes between the input and the first convolution


@dataclass(frozen=True)
class Stem:
    """Findings in the layers up to the first convolution.

    Attributes:
        focus: the picture is cut into four by strided slices, as YOLOX and early YOLOv5 do.
        inside: the graph scales or centres the picture itself, in words; empty if it does not.
            `level` is then that of what it begins with.
        level: whether the first layer was trained on 0..255 or on small numbers; None: not known.
        scale: the input's scale for bytes (1/255 = 0.0039), where a normalisation tells; or None.
        centred: True if the input's mean was near 0 in training; None: not known.
        why: the numbers behind `level` and `scale`, in words.
    """

    focus: bool = False
    inside: str = ""
    level: Level | None = None
    scale: float | None = None
    centred: bool | None = None
    why: str = ""


def read_stem(evidence: FileEvidence) -> Stem:
    """Follow the picture to the first convolution, and weigh that."""
    value = evidence.network.model.graph.inputs[0]
    slices, inside = 0, list[tuple[str, float]]()
    seen: set[int] = set()
    line = [value]
    for _ in range(_REACH):
        if not line:
            break
        value = line.pop(0)
        for node in value.consumers():
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.op_type == "Conv":
                return _weighed(evidence, node, slices >= 4, inside)
            if node.op_type not in _KEEP_PICTURES:
                continue
            slices += node.op_type in ("Slice", "SpaceToDepth")
            if node.op_type in _SCALING:
                constants = [evidence.constant(v) for v in node.inputs if v is not value]
                numbers = [n for n in constants if n is not None and n.size]
                if numbers:
                    inside.append((node.op_type, float(np.abs(numbers[0]).max())))
            line += node.outputs
    return _normalising(slices >= 4, inside) if inside else Stem(slices >= 4)


def _normalising(focus: bool, steps: list[tuple[str, float]]) -> Stem:
    """The stem of a graph that normalises: by numbers that bytes need, or others."""
    words = ", ".join(f"{name} {number:.4g}" for name, number in steps)
    of_bytes = any(
        (name == "Mul" and 0 < number <= 0.02) or (name in ("Div", "Sub", "Add") and number >= 10)
        for name, number in steps
    )
    inside = f"the graph normalises the picture itself ({words})"
    return Stem(focus, inside, "bytes" if of_bytes else "small", why=inside)


def _weighed(
    evidence: FileEvidence, conv: Any, focus: bool, inside: list[tuple[str, float]]
) -> Stem:
    if inside:
        return _normalising(focus, inside)
    weights = evidence.constant(conv.inputs[1])
    if weights is None or weights.ndim != 4:
        return Stem(focus)
    filters = weights.astype(np.float64)
    spread = _answers(filters)
    after = [n for n in conv.outputs[0].consumers() if n.op_type == "BatchNormalization"]
    if after:
        found = _from_normalisation(evidence, conv, after[0], filters, spread)
        if found is not None:
            scale, centred, why = found
            return Stem(focus, "", "bytes" if scale > 0.3 else "small", scale, centred, why)
    middle = float(np.median(spread))
    why = f"the first layer answers 0..255 with a spread of {middle:.3g}"
    if _BYTES[0] <= middle <= _BYTES[1]:
        return Stem(focus, "", "bytes", why=f"{why}: it was trained on 0..255")
    if middle >= _FOLDED:
        return Stem(
            focus, "", "small", why=f"{why}: it was trained on small numbers, not on 0..255"
        )
    return Stem(focus, why=why)


def _answers(filters: Array) -> Array:
    """Spread (standard deviation) of each filter's answers to natural pictures in 0..255."""
    count, channels, height, width = filters.shape
    y, x = np.mgrid[:height, :width]
    place = np.stack([y.ravel(), x.ravel()], axis=1)
    away = np.abs(place[:, None] - place[None]).sum(axis=-1)
    alike = np.full((channels, channels), _CHANNELS)
    np.fill_diagonal(alike, 1.0)
    covariance = np.kron(alike, _NEIGHBOURS**away) * _SPREAD**2
    flat = filters.reshape(count, -1)
    variance = np.einsum("oi,ij,oj->o", flat, covariance, flat)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _from_normalisation(
    evidence: FileEvidence, conv: Any, norm: Any, filters: Array, spread: Array
) -> tuple[float, bool | None, str] | None:
    """Scale of the input and whether it was centred, from the statistics kept in training."""
    kept = [evidence.constant(v) for v in norm.inputs[3:5]]
    if any(k is None or k.shape != spread.shape for k in kept):
        return None
    mean, variance = (np.asarray(k, np.float64) for k in kept)
    if np.ptp(variance) < _UNTRAINED and abs(float(variance[0]) - 1.0) < _UNTRAINED:
        return None  # as initialised
    used = (variance > np.median(variance) * 0.1) & (spread > 0)
    if not used.any():
        return None
    scale = float(np.median(np.sqrt(variance[used]) / spread[used]))
    bias = evidence.constant(conv.inputs[2]) if len(conv.inputs) > 2 else None
    gain = filters.sum(axis=(1, 2, 3))
    moved = mean - (0 if bias is None else bias)
    level = float((moved * gain).sum() / max(float((gain * gain).sum()), 1e-12))
    # 0..1 has its mean near 0.45: in units of the input's own spread that is 1.7
    centred = abs(level) < 0.8 * scale * _SPREAD
    why = (
        f"the statistics behind the first layer fit pictures scaled by 1/{1 / scale:.0f} with a "
        f"mean of {level:.2f}"
    )
    return scale, centred, why

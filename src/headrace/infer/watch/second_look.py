"""Rules that try other parsers on kept outputs, and the network on changed images.

They run once, when a run has ended (or is long): on up to four kept samples, of a built-in parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.parsers import WELL_KNOWN, WELL_KNOWN_INSTANCES, BuiltinParser
from headrace.infer.recognise.exporters import USUAL
from headrace.infer.trial import Sample
from headrace.infer.watch.rules import MIN_FRAMES
from headrace.infer.watch.training import byte_range
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.cluster import Clusterer
    from headrace.infer.preprocess import Preprocessor

Run = Callable[[Array], Arrays]

_CERTAIN = 0.5  # lowest best score of boxes that prove another reading right
_MANY = 60  # more boxes of a frame prove nothing
_HIGH_THRESHOLD = 0.8
_WEAK = 0.3
_MORE = 4.0  # times the scores of the own parser: another reading that finds more is the right one
_CONTRAST = 15.0  # standard deviation of an image's bytes
_IMAGES = 4  # that must all be read better in the other order of colours …
_SURER = 1.12  # … by as much; YOLOX-nano: 1.10 to 1.39 on four videos if wrong, ≤ 0.9 if right


class SampleReading(NamedTuple):
    """Boxes of a parser in one sample, after thresholds and clustering.

    Attributes:
        boxes: how many.
        total: sum of their scores; `best` the highest.
        edges: share of boxes that touch an edge of the network input.
        sound: they are neither too many nor huge nor tiny.
        corner: share of boxes that touch the left and the top edge alone.
    """

    boxes: int = 0
    total: float = 0.0
    best: float = 0.0
    edges: float = 0.0
    sound: bool = False
    corner: float = 0.0


@dataclass(frozen=True, slots=True)
class Reader:
    """Parses and clusters like the model's own post-processing, and measures the result."""

    cfg: ModelConfig
    network: NetworkInfo
    params: DetectionParams
    clusterer: Clusterer

    def __call__(self, parser: Any, layers: Mapping[str, Layer]) -> SampleReading:
        """The boxes of `parser`; none where it refuses the outputs."""
        try:
            kept = self.clusterer(parser(layers, self.network, self.params)).detections
        except HeadraceError:
            return SampleReading()
        return self.measure(kept)

    def measure(self, kept: Detections) -> SampleReading:
        """The same for boxes that are left already."""
        if hidden := self.cfg.filter_out_class_ids:
            kept = kept.select(~np.isin(kept.class_ids, hidden))
        if not len(kept):
            return SampleReading()
        left, top, w, h = kept.boxes.T
        wide, high = float(self.network.width), float(self.network.height)
        ends = (left + w >= wide - 0.5) | (top + h >= high - 0.5)
        edges = (left <= 0.5) | (top <= 0.5) | ends
        corner = (left <= 0.5) & (top <= 0.5) & ~ends
        odd = (w * h > 0.9 * wide * high) | (w < 3) | (h < 3) | (left >= wide) | (top >= high)
        best = float(kept.scores.max())
        sound = len(kept) <= _MANY and float(odd.mean()) < 0.2 and best <= 1.001
        sound &= bool((kept.scores != 1).any())  # all 1: class numbers that are read as scores
        total = float(np.sort(kept.scores)[-_MANY:].sum())
        return SampleReading(
            len(kept), total, best, float(edges.mean()), sound, float(corner.mean())
        )


def _convincing(readings: Sequence[SampleReading]) -> bool:
    """Whether two samples, or the only one, have sound boxes, some of them certain."""
    good = [r for r in readings if r.boxes and r.sound and r.best >= _CERTAIN]
    return len(good) >= min(2, len(readings))


def other_heads(
    reader: Reader, parser: object, samples: Sequence[Sample], *, silent: bool, source: str
) -> Iterator[Finding]:
    """Another built-in head reads sensible boxes where the model's parser reads none, or cut ones.

    Args:
        reader: clusters as the model does.
        parser: the model's own.
        samples: what the network gave.
        silent: the parser found nothing in any of them; else it found little, or most of its boxes
            touch an edge or are tiny.
        source: where the parser comes from.
    """
    own = parser.head.name if isinstance(parser, BuiltinParser) else None
    mine = [reader(parser, s.layers) for s in samples] if own and not silent else []
    total = sum(r.total for r in mine)
    others: dict[str, list[SampleReading]] = {}
    layers, classes = list(samples[0].layers.values()), reader.params.num_classes
    masked = reader.cfg.network_type is NetworkType.INSTANCE_SEGMENTATION
    known = {**WELL_KNOWN, **(WELL_KNOWN_INSTANCES if masked else {})}
    for name, other in known.items():
        head = other.head if isinstance(other, BuiltinParser) else None
        if head is None or name == own or not head.suggested:
            continue
        if head.rank(layers, reader.network, classes) is not None:
            readings = [reader(other, s.layers) for s in samples]
            if _convincing(readings):
                others[name] = readings
    if not others:
        return
    name, readings = max(others.items(), key=lambda other: sum(r.total for r in other[1]))
    box_count, best = sum(r.boxes for r in readings), max(r.best for r in readings)
    what = (
        f"{counted(box_count, 'box')} in {counted(len(samples), 'image')}, scores up to {best:.2f}"
    )
    change = f"set parse-bbox-func-name={name}"
    if masked:
        boxes = name in WELL_KNOWN
        change = f"set parse-bbox-instance-mask-func-name={name}"
        change = f"network-type=0 with parse-bbox-func-name={name} reads them" if boxes else change
    cut = sum(r.edges * r.boxes for r in mine) / max(1, sum(r.boxes for r in mine))
    whole = sum(r.edges * r.boxes for r in readings) / box_count
    images = sum(r.boxes > 0 for r in readings)
    # Large objects in the first corner are cut in fact, and read as corners they would not be.
    corner = sum(r.corner * r.boxes for r in mine) / max(1, sum(r.boxes for r in mine))
    all_cut = images >= MIN_FRAMES and cut >= 0.9 and whole == 0 and corner <= 0.5
    if sum(r.total for r in readings) >= _MORE * total:
        few = "nothing" if silent else f"{sum(r.boxes for r in mine)} in these images"
        text = f"{source} finds {few}, though the outputs have strong responses: read as {name} "
        yield Finding(
            "parser-silent", "warning", f"{text}they hold {what}: {change}", "parse-bbox-func-name"
        )
    elif (box_count >= 6 or images >= MIN_FRAMES) and not any(r.sound for r in mine):
        text = f"the boxes are no objects: {source} reads tiny or huge ones; as {name} the outputs "
        yield Finding(
            "boxes-odd", "warning", f"{text}hold {what}: {change}", "parse-bbox-func-name"
        )
    elif all_cut or (box_count >= 8 and whole <= 0.25 * cut):
        text = f"{cut:.0%} of the boxes are cut by the image's edge: {source} probably reads "
        text += f"corners and centres wrongly; as {name} the outputs hold {what}, {whole:.0%} "
        yield Finding(
            "boxes-cut", "warning", f"{text}of them cut: {change}", "parse-bbox-func-name"
        )


def high_threshold(reader: Reader, parser: object, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Nothing reaches the threshold, and it is one that hardly anything can reach."""
    lowest = reader.params.min_threshold
    if lowest < _HIGH_THRESHOLD or not isinstance(parser, BuiltinParser):
        return
    thresholds = np.full_like(reader.params.per_class_threshold, 0.05)
    params = replace(reader.params, per_class_threshold=thresholds)
    best = []
    for sample in samples:
        try:
            scores = parser(sample.layers, reader.network, params).scores
        except HeadraceError:
            return
        best.append(float(scores.max()) if len(scores) else 0.0)
    if sum(b >= _WEAK for b in best) > len(best) / 2 or lowest > 1:
        text = f"pre-cluster-threshold={lowest:g} is above all scores: the best of "
        text += f"{counted(len(samples), 'image')} is {max(best):.2f}; usual are 0.2 to 0.5"
        yield Finding("threshold-above-all", "warning", text, "pre-cluster-threshold")


_CENTRES = ("HeadraceParseYoloV8", "HeadraceParseYoloV5", "NvDsInferParseCustomYoloV8",
            "NvDsInferParseYoloV11", "NvDsInferParseCustomYoloV7")  # fmt: skip
_CORNERS = ("NvDsInferParseYolo", "NvDsInferParseYoloCuda")


def odd_tables(reader: Reader, parser: object, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Rows with strong scores hold boxes of another kind than centre and size in pixels."""
    if (
        not isinstance(parser, BuiltinParser)
        or parser.head.name.removesuffix("_cuda") not in _CENTRES
    ):
        return
    name, classes = parser.head.name, reader.params.num_classes
    strong = [_strong(sample, classes, reader.params.min_threshold) for sample in samples]
    seen = [rows for rows in strong if len(rows)]
    if len(seen) < min(2, len(samples)) or sum(map(len, seen)) < 5:
        return
    if (finding := _in_unit(seen, name, reader)) is not None:
        yield finding
        return
    a, b, c, d = np.concatenate(seen).T
    wide, high = float(reader.network.width), float(reader.network.height)
    corners = (c > a) & (d > b) & (c <= wide * 1.02) & (d <= high * 1.02)
    beyond = (a + c / 2 > wide * 1.05) | (b + d / 2 > high * 1.05)
    beyond |= (a - c / 2 < -0.05 * wide) | (b - d / 2 < -0.05 * high)
    if corners.mean() >= 0.95 and beyond.mean() >= 0.4:
        text = f"the model's boxes are corners, and {name} reads centre and size: so "
        text += (
            f"{beyond.mean():.0%} of {counted(len(a), 'strong row')} reach beyond the image, as "
        )
        text += "left, top, right, bottom none does; export the model with centre and size, or read"
        text += " it with a parser of your own (parse-bbox-func-name)"
        yield Finding("boxes-corners", "warning", text, "parse-bbox-func-name")


def final_rows(
    reader: Reader, parser: object, samples: Sequence[Sample], source: str
) -> Iterator[Finding]:
    """Rows of a selection, which a silent parser of corners or of the user drops, are in 0..1.

    Args:
        reader, parser, samples, source: as for `other_heads`.
    """
    if isinstance(parser, BuiltinParser) and parser.head.name not in _CORNERS:
        return
    strong = [_final(sample, reader.params.min_threshold) for sample in samples]
    seen = [rows for rows in strong if len(rows)]
    name = parser.head.name if isinstance(parser, BuiltinParser) else source
    if len(seen) >= min(2, len(samples)) and (finding := _in_unit(seen, name, reader)) is not None:
        yield finding


def _in_unit(seen: Sequence[Array], name: str, reader: Reader) -> Finding | None:
    """The finding that strong boxes are in 0..1, if they are."""
    boxes = np.concatenate(seen)
    top = float(boxes.max())
    if reader.network.width <= 8 or top > 1.5:
        return None
    text = f"the model's boxes are in 0..1, and {name} reads pixels of the network input: "
    text += f"{counted(len(boxes), 'strong row')} of {counted(len(seen), 'image')} end at "
    text += f"{top:.3g}; export the model with boxes in pixels, or multiply them in a parser "
    text += "of your own (parse-bbox-func-name)"
    if name == "HeadraceParseYoloV8":
        text += f", or set parse-bbox-func-name={name}Unit"
    return Finding("boxes-in-0..1", "warning", text, "parse-bbox-func-name")


def _final(sample: Sample, threshold: float) -> Array:
    """Select rows box, score, class number of a single table; return (N, 4) boxes."""
    tables = [np.squeeze(x) for x in sample.outputs.values()]
    if len(tables) != 1 or tables[0].ndim != 2 or tables[0].shape[1] != 6:
        return np.empty((0, 4))
    rows = tables[0].astype(np.float32)
    if not (np.rint(rows[:, 5]) == rows[:, 5]).all():
        return np.empty((0, 4))
    return rows[(rows[:, 4] >= threshold) & np.isfinite(rows).all(axis=1), :4]


def _strong(sample: Sample, classes: int, threshold: float) -> Array:
    """Select rows of a single table with scores at the threshold or above; return (N, 4) boxes."""
    tables = [np.squeeze(x) for x in sample.outputs.values()]
    if len(tables) != 1 or tables[0].ndim != 2 or tables[0].dtype.kind != "f":
        return np.empty((0, 4))
    table = tables[0].astype(np.float32)
    rows = table.T if table.shape[0] in (classes + 4, classes + 5) else table
    if rows.shape[1] == classes + 4:
        scores = rows[:, 4:].max(axis=1)
    elif rows.shape[1] == classes + 5:
        scores = rows[:, 4] * rows[:, 5:].max(axis=1)
    else:
        return np.empty((0, 4))
    return rows[(scores >= threshold) & np.isfinite(rows).all(axis=1), :4]


_BLIND = 0.5  # of the outputs' own spread: what an image changes, if its range is too small


def other_ranges(
    reader: Reader, parser: object, samples: Sequence[Sample], pre: Preprocessor, run: Run
) -> Iterator[Finding]:
    """Yield a finding if a silent network finds boxes in images of another usual range.

    A network that gets too much finds things in anything, so that the same range must find nothing
    in images without content.

    Args:
        reader, parser, samples: as for `other_heads`.
        pre: the model's pre-processing.
        run: the network, on one input with its batch axis.
    """
    low, high = byte_range(pre)
    # In a dark or plain image a wrong range makes something of nothing.
    samples = [s for s in samples if float(s.tensor.std()) > _CONTRAST * pre.scale]
    if not samples:
        return
    blind = _blind(samples, pre, run)
    for usual in USUAL:
        scale, means = usual.factor, usual.offsets
        span = 255 * scale
        words = " with ".join(usual.keys) + ("" if means else f" (0 to {span:g})")
        if 0.4 < span / (high - low) < 2.5 and abs(low + max(means, default=0) * scale) < span / 4:
            continue  # it is the model's own
        changed = _rescaled(pre, scale, means)
        if changed is None:
            return
        if span > high - low and not blind:
            continue
        readings = [reader(parser, _layers(run(changed(s.tensor)))) for s in samples]
        if not _convincing(readings):
            continue
        best = max(r.best for r in readings)
        controls = [
            reader(parser, _layers(run(changed(c)))) for c in _empty(samples[-1].tensor, pre)
        ]
        if any(c.best > best / 2 for c in controls):
            continue
        box_count = sum(r.boxes for r in readings)
        text = f"images have the wrong range: {low:.4g} to {high:.4g} of net-scale-factor="
        text += f"{pre.scale:.6g} give no boxes; the same {counted(len(samples), 'image')} with "
        text += f"{words} give {box_count}, scores up to {best:.2f}"
        yield Finding("input-range", "warning", text, "net-scale-factor")
        return


def swapped_colors(
    reader: Reader, parser: object, samples: Sequence[Sample], pre: Preprocessor, run: Run
) -> Iterator[Finding]:
    """Yield a finding if scores are higher in each sample with red and blue exchanged.

    Scores of one image say nothing: of two orders one is always a little better.
    """
    if pre.channels != 3 or len(set(pre.offsets)) > 1 or pre.mean is not None:
        return
    axis = -1 if pre.shape[-1] == 3 and pre.shape[0] != 3 else 0
    colored = [s for s in samples if _colored(s.tensor, axis, pre.scale)]
    before = [reader(parser, s.layers) for s in colored]
    silent = not any(r.boxes for r in before)
    if len(colored) < (1 if silent else _IMAGES):
        return
    after = [
        reader(parser, _layers(run(np.flip(s.tensor, axis).astype(np.float32)))) for s in colored
    ]
    old, new = sum(r.total for r in before), sum(r.total for r in after)
    better = sum(b.total > a.total for a, b in zip(before, after, strict=True))
    worse = sum(b.total < a.total for a, b in zip(before, after, strict=True))
    if silent:
        if not _convincing(after):
            return
        if any(reader(parser, _layers(run(c))).boxes for c in _empty(colored[-1].tensor, pre)):
            return
    elif not (new >= _SURER * old and new >= old + 0.5 and worse == 0 and better >= _IMAGES - 1):
        return
    now = int(pre.color_format)
    text = f"red and blue are probably swapped: model-color-format={now} gives "
    text += f"{counted(sum(r.boxes for r in before), 'box')} in {counted(len(colored), 'image')} "
    text += f"(sum of scores {old:.1f}), the other order {sum(r.boxes for r in after)} ({new:.1f})"
    text += f": set model-color-format={1 - now}"
    data = {"set": {"model-color-format": 1 - now}}
    yield Finding("input-colors", "warning", text, "model-color-format", data)


def _layers(outputs: Arrays) -> dict[str, Layer]:
    return {name: Layer(name, data[0]) for name, data in outputs.items()}


def _rescaled(
    pre: Preprocessor, scale: float, means: Sequence[float]
) -> Callable[[Array], Array] | None:
    """From an input of the model to one with another normalisation; None if it has no three."""
    if pre.mean is not None or pre.channels != 3:
        return None
    shape = (3, 1, 1) if pre.shape[0] == 3 else (1, 1, 3)
    old = np.array(pre.offsets or (0.0,) * 3, np.float32).reshape(shape)
    new = np.array(means or (0.0,) * 3, np.float32).reshape(shape)

    def change(tensor: Array) -> Array:
        return ((tensor / np.float32(pre.scale) + old - new) * np.float32(scale)).astype(np.float32)

    return change


def _empty(tensor: Array, pre: Preprocessor) -> Iterator[Array]:
    """Inputs of images that show nothing: plain grey, a ramp, noise."""
    means = np.array(pre.offsets or (0.0,) * pre.channels, np.float32)
    planar = tensor.shape[0] == pre.channels
    means = means.reshape((-1, 1, 1) if planar else (1, 1, -1))
    high, wide = tensor.shape[1:] if planar else tensor.shape[:2]
    ramp = np.broadcast_to(np.linspace(0, 255, wide, dtype=np.float32), (high, wide))
    noise = np.random.default_rng(0).uniform(0, 255, tensor.shape).astype(np.float32)
    for image in (np.full((high, wide), 114, np.float32), ramp, noise):
        if image.ndim == 2:
            image = np.broadcast_to(image[None] if planar else image[..., None], tensor.shape)
        yield ((image - means) * np.float32(pre.scale)).astype(np.float32)


def _blind(samples: Sequence[Sample], pre: Preprocessor, run: Run) -> bool:
    """Whether the outputs hardly depend on the images: they differ little from those of black."""
    means = np.array(pre.offsets or (0.0,) * pre.channels, np.float32)
    planar = samples[0].tensor.shape[0] == pre.channels
    black = np.broadcast_to(
        -means.reshape((-1, 1, 1) if planar else (1, 1, -1)) * np.float32(pre.scale),
        samples[0].tensor.shape,
    )
    dark = {n: data[0].astype(np.float32) for n, data in run(black.astype(np.float32)).items()}
    for sample in samples:
        for name, data in sample.outputs.items():
            if data.dtype.kind != "f" or data.shape != dark[name].shape:
                return False
            spread = float(np.abs(dark[name] - dark[name].mean(axis=0)).mean())
            if float(np.abs(data - dark[name]).mean()) > _BLIND * spread:
                return False
    return True


def _colored(tensor: Array, axis: int, scale: float) -> bool:
    """Whether red and blue differ enough to matter: by three levels in the mean."""
    red, blue = (tensor[0], tensor[2]) if axis == 0 else (tensor[..., 0], tensor[..., 2])
    return float(np.abs(red - blue).mean()) > 3 * abs(scale)

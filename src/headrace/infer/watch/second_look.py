"""Rules that try other parsers on kept outputs, and the network on changed images.

They run once, when a run has ended (or is long): on up to four kept samples, of a built-in parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace._core.types import Array
from headrace.config.enums import PARSER_FIELDS
from headrace.infer.parsers import BuiltinParser
from headrace.infer.trial import (
    Change,
    ConfigTrials,
    Sample,
    advised,
    in_range,
    other_ranges,
    parser_change,
    plain,
    range_change,
    readers,
    tried,
)
from headrace.infer.watch.rules import FINAL_ROWS, MIN_FRAMES
from headrace.infer.watch.training import byte_range

if TYPE_CHECKING:
    from headrace.infer.preprocess import Preprocessor

_THRESHOLD = "class-attrs-all.pre-cluster-threshold"
_HIGH_THRESHOLD = 0.8
_LEAST_OF_OWN = 0.5
_WEAK = 0.3
_MORE = 4.0  # times the scores of the own parser: another reading that finds more is the right one
_CONTRAST = 15.0  # standard deviation of an image's bytes
_IMAGES = 4  # that must all be read better in the other order of colours …
_SURER = 1.12  # … by as much; YOLOX-nano: 1.10 to 1.39 on four videos if wrong, ≤ 0.9 if right


def other_heads(
    trials: ConfigTrials, parser: object, *, silent: bool, source: str
) -> Iterator[Finding]:
    """Another built-in head reads sensible boxes where the model's parser reads none, or cut ones.

    Args:
        trials: the kept samples.
        parser: the model's own.
        silent: the parser found nothing in any of them; else it found little, or most of its boxes
            touch an edge or are tiny.
        source: where the parser comes from.
    """
    own = isinstance(parser, BuiltinParser)
    mine = list(trials.present.readings) if own and not silent else []
    total = sum(r.total for r in mine)
    others = readers(trials)
    if not others:
        return
    readings = others[0].readings
    box_count = others[0].boxes
    field = PARSER_FIELDS[trials.cfg.network_type].replace("_", "-")
    cut = sum(r.edges * r.boxes for r in mine) / max(1, sum(r.boxes for r in mine))
    whole = sum(r.edges * r.boxes for r in readings) / box_count
    images = sum(r.boxes > 0 for r in readings)
    # Large objects in the first corner are cut in fact, and read as corners they would not be.
    corner = sum(r.corner * r.boxes for r in mine) / max(1, sum(r.boxes for r in mine))
    all_cut = images >= MIN_FRAMES and cut >= 0.9 and whole == 0 and corner <= 0.5
    if sum(r.total for r in readings) >= _MORE * total:
        few = "nothing" if silent else f"{sum(r.boxes for r in mine)} boxes in these images"
        text = f"{source} finds {few}, though the outputs have strong responses"
        finding = Finding("parser-silent", "warning", text, field)
    elif (box_count >= 6 or images >= MIN_FRAMES) and not any(r.sound for r in mine):
        text = f"the boxes are no objects: {source} reads tiny or huge ones"
        finding = Finding("boxes-odd", "warning", text, field)
    elif all_cut or (box_count >= 8 and whole <= 0.25 * cut):
        text = f"{cut:.0%} of the boxes are cut by the image's edge, as corners and centres that "
        text += (
            f"{source} takes for each other would be; {whole:.0%} are if they are read otherwise"
        )
        finding = Finding("boxes-cut", "warning", text, field)
    else:
        return
    yield tried(advised(finding, [o.change for o in others]), trials, plain)


def high_threshold(trials: ConfigTrials, parser: object) -> Iterator[Finding]:
    """Nothing reaches the threshold, and it is one that hardly anything can reach."""
    lowest = min((c.pre_cluster_threshold for c in trials.cfg.per_class), default=0.0)
    own = not isinstance(parser, BuiltinParser)  # it may drop boxes itself, by whatever threshold
    if lowest < (_LEAST_OF_OWN if own else _HIGH_THRESHOLD):
        return
    low = trials({_THRESHOLD: "0.05"})
    best = [reading.best for reading in low.readings]
    seen = sum(b >= _WEAK for b in best)  # the other images may be empty
    if best and (seen >= min(2, len(best)) or lowest > 1):
        text = f"pre-cluster-threshold={lowest:g} is above all scores: the best of "
        text += f"{counted(len(best), 'image')} is {max(best):.4g}; usual are 0.2 to 0.5"
        finding = Finding("threshold-above-all", "warning", text, "pre-cluster-threshold")
        yield advised(finding, [{_THRESHOLD: "0.25"}])


_CENTRES = tuple(name for name in FINAL_ROWS if name != "HeadraceParseYoloObb")
_CORNERS = ("NvDsInferParseYolo", "NvDsInferParseYoloCuda", "NvDsInferParseYoloSeg",
            "HeadraceParseYoloEndSeg", "HeadraceParseYoloEndPose")  # fmt: skip
_MOST_FINAL = 1000  # rows of a selection


def selected_rows(trials: ConfigTrials, parser: object) -> Iterator[Finding]:
    """Rows of a selection are read as candidates: a column of their scores holds class numbers."""
    if not isinstance(parser, BuiltinParser):
        return
    name = parser.head.name.removesuffix("_cuda")
    if name not in FINAL_ROWS:
        return
    tables = [_table(sample)[0] for sample in trials.samples]
    if not tables or not all(map(_selection, tables)):
        return
    rows, top = counted(sum(map(len, tables)), "row"), max(int(t[:, 5].max()) for t in tables)
    text = f"{name} reads a score of each class where the model has class numbers: column 5 of "
    text += f"{rows} of {counted(len(tables), 'image')} holds whole numbers up to {top}, and "
    text += "column 4 the scores in falling order, as the rows that a selection in the graph leaves"
    finding = Finding("boxes-odd", "warning", text, parser.head.key)
    change = parser_change(FINAL_ROWS[name], trials.cfg.network_type, trials.cfg)
    yield tried(advised(finding, [change]), trials, plain)


def _selection(rows: Array) -> bool:
    """Whether rows are box, score, class number, the best first, and something behind them."""
    if rows.shape[1:] < (6,) or not 2 <= len(rows) <= _MOST_FINAL:
        return False
    scores, numbers = rows[:, 4], rows[:, 5]
    falls = (np.diff(scores) <= 0).all() and 0 <= scores[-1] < scores[0] <= 1
    return bool(falls and (np.rint(numbers) == numbers).all() and numbers.min() >= 0)


_SIGMOID, _SOFTMAX = "HeadraceParseDetr", "HeadraceParseDetrSoftmax"
_MOSTLY, _SELDOM = 0.8, 0.2  # queries of an image that stand for no object


def other_logits(trials: ConfigTrials, parser: object) -> Iterator[Finding]:
    """Name the reading of logits, soft-max or sigmoid, that the last one contradicts.

    It means no object where a soft-max follows, and wins for most queries of any image.
    """
    if not isinstance(parser, BuiltinParser) or parser.head.name not in (_SIGMOID, _SOFTMAX):
        return
    tables = [v for s in trials.samples for v in s.outputs.values() if v.shape[-1] != 4]
    rows = [np.reshape(table, (-1, table.shape[-1])) for table in tables]
    if not rows or any(table.shape != rows[0].shape for table in rows):
        return
    count = rows[0].shape[1]
    none = float(np.mean([(table.argmax(axis=1) == count - 1).mean() for table in rows]))
    name, classes = parser.head.name, trials.cfg.num_detected_classes
    text = f"the last of {count} logits is the largest for {none:.0%} of the queries: "
    if name == _SIGMOID and none > _MOSTLY and classes == count > 2:
        text += f"it means no object, and {name} takes it for class {count - 1}"
        other, right = _SOFTMAX, count - 1
    elif name == _SOFTMAX and none < _SELDOM and classes == count - 1:
        text += f"it does not mean no object, as {name} takes it, and scores are too high"
        other, right = _SIGMOID, count
    else:
        return
    change = parser_change(other, trials.cfg.network_type, trials.cfg)
    finding = Finding("boxes-odd", "warning", text, parser.head.key)
    both = {**change, "num-detected-classes": str(right)}
    yield tried(advised(finding, [both]), trials, plain)


def odd_tables(trials: ConfigTrials, parser: object) -> Iterator[Finding]:
    """Rows with strong scores hold boxes of another kind than centre and size in pixels."""
    if (
        not isinstance(parser, BuiltinParser)
        or parser.head.name.removesuffix("_cuda") not in _CENTRES
    ):
        return
    name, classes = parser.head.name, trials.cfg.num_detected_classes
    poses = name.endswith("Pose")
    strong = [_strong(s, classes, _lowest(trials), poses=poses) for s in trials.samples]
    seen = [rows for rows in strong if len(rows)]
    if len(seen) < min(2, len(trials.samples)) or sum(map(len, seen)) < 5:
        return
    if (finding := _in_unit(seen, name, trials)) is not None:
        yield finding
        return
    a, b, c, d = np.concatenate(seen).T
    wide, high = float(trials.network.width), float(trials.network.height)
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


def final_rows(trials: ConfigTrials, parser: object, source: str) -> Iterator[Finding]:
    """Rows of a selection, which a silent parser of corners or of the user drops, are in 0..1.

    Args:
        trials, parser, source: as for `other_heads`.
    """
    if isinstance(parser, BuiltinParser) and parser.head.name not in _CORNERS:
        return
    strong = [_final(sample, _lowest(trials)) for sample in trials.samples]
    seen = [rows for rows in strong if len(rows)]
    name = parser.head.name if isinstance(parser, BuiltinParser) else source
    enough = len(seen) >= min(2, len(trials.samples))
    if enough and (finding := _in_unit(seen, name, trials)) is not None:
        yield finding


def _lowest(trials: ConfigTrials) -> float:
    """The lowest threshold of the config."""
    return min((c.pre_cluster_threshold for c in trials.cfg.per_class), default=0.0)


def _in_unit(seen: Sequence[Array], name: str, trials: ConfigTrials) -> Finding | None:
    """The finding that strong boxes are in 0..1, if they are."""
    boxes = np.concatenate(seen)
    top = float(boxes.max())
    if trials.network.width <= 8 or top > 1.5:
        return None
    text = f"the model's boxes are in 0..1, and {name} reads pixels of the network input: "
    text += f"{counted(len(boxes), 'strong row')} of {counted(len(seen), 'image')} end at "
    text += f"{top:.3g}; export the model with boxes in pixels, or multiply them in a parser "
    text += "of your own (parse-bbox-func-name)"
    finding = Finding("boxes-in-0..1", "warning", text, "parse-bbox-func-name")
    if name != "HeadraceParseYoloV8":
        return finding
    change = parser_change(f"{name}Unit", trials.cfg.network_type, trials.cfg)
    return tried(advised(finding, [change]), trials, plain)


def _table(sample: Sample) -> tuple[Array, int]:
    """The single table, and the number of masks beside it; an empty one if there are several."""
    values = [np.squeeze(x) for x in sample.outputs.values()]
    tables = [v for v in values if v.ndim == 2]
    maps = [v.shape[0] for v in values if v.ndim == 3]
    if len(tables) != 1 or len(maps) > 1 or len(values) > 2 or tables[0].dtype.kind != "f":
        return np.empty((0, 0), np.float32), 0
    return tables[0].astype(np.float32), sum(maps)


def _final(sample: Sample, threshold: float) -> Array:
    """Select rows box, score, class number of a single table; return (N, 4) boxes."""
    rows, _ = _table(sample)
    count, width = rows.shape
    if width < 6 or (width > 6 and (count > _MOST_FINAL or rows[:, 4].max(initial=0) > 1)):
        return np.empty((0, 4))
    if not (np.rint(rows[:, 5]) == rows[:, 5]).all():
        return np.empty((0, 4))
    return rows[(rows[:, 4] >= threshold) & np.isfinite(rows).all(axis=1), :4]


def _strong(sample: Sample, classes: int, threshold: float, *, poses: bool) -> Array:
    """Select rows of a single table with scores at the threshold or above; return (N, 4) boxes.

    Behind the scores are a number for each mask, or the points of `poses`.
    """
    table, more = _table(sample)
    if poses:
        more = min(table.shape) - classes - 4
    widths = classes + 4 + more, classes + 5 + more
    rows = table.T if table.shape[0] in widths else table
    if rows.shape[1] == widths[0]:
        scores = rows[:, 4 : 4 + classes].max(axis=1, initial=0)
    elif rows.shape[1] == widths[1]:
        scores = rows[:, 4] * rows[:, 5 : 5 + classes].max(axis=1, initial=0)
    else:
        return np.empty((0, 4))
    return rows[(scores >= threshold) & np.isfinite(rows).all(axis=1), :4]


_BLIND = 0.5  # of the outputs' own spread: what an image changes, if its range is too small


def other_range(trials: ConfigTrials, pre: Preprocessor) -> Iterator[Finding]:
    """Yield a finding if a silent network finds boxes in images of another usual range.

    A network that gets too much finds things in anything, so that the same range must find nothing
    in images without content.
    """
    low, high = byte_range(pre)
    # In a dark or plain image a wrong range makes something of nothing.
    samples = [s for s in trials.samples if float(s.tensor.std()) > _CONTRAST * pre.scale]
    if not samples or pre.mean is not None or pre.channels != 3:
        return
    bright = trials.of(samples)
    blind = _blind(bright, pre)
    changes, fits = [], in_range(bright)
    for usual in other_ranges(trials.cfg):
        if 255 * usual.factor > high - low and not blind:
            continue
        change = range_change(usual, trials.cfg)
        outcome = bright(change)
        if outcome.sound and fits(outcome, bright.present):
            changes.append(change)
    if changes:
        text = f"images have the wrong range: {low:.4g} to {high:.4g} of net-scale-factor="
        text += f"{pre.scale:.6g} give no boxes"
        finding = Finding("input-range", "warning", text, "net-scale-factor")
        yield tried(advised(finding, changes), bright, plain)


def swapped_colors(trials: ConfigTrials, pre: Preprocessor) -> Iterator[Finding]:
    """Yield a finding if scores are higher in each sample with red and blue exchanged.

    Scores of one image say nothing: of two orders one is always a little better.
    """
    if pre.channels != 3 or len(set(pre.offsets)) > 1 or pre.mean is not None:
        return
    axis = -1 if pre.shape[-1] == 3 and pre.shape[0] != 3 else 0
    colored = trials.of([s for s in trials.samples if _colored(s.tensor, axis, pre.scale)])
    before = colored.present.readings
    silent = not any(r.boxes for r in before)
    if len(before) < (1 if silent else _IMAGES):
        return
    change: Change = {"model-color-format": str(1 - int(pre.color_format))}
    outcome = colored(change)
    after = outcome.readings
    if len(after) < len(before):
        return
    old, new = sum(r.total for r in before), outcome.total
    better = sum(b.total > a.total for a, b in zip(before, after, strict=True))
    worse = sum(b.total < a.total for a, b in zip(before, after, strict=True))
    if silent:
        if not outcome.sound or colored.nonsense(change) > 0:
            return
    elif not (new >= _SURER * old and new >= old + 0.5 and worse == 0 and better >= _IMAGES - 1):
        return
    text = f"red and blue are swapped: model-color-format={int(pre.color_format)} gives "
    text += f"{colored.present} (sum of scores {old:.1f}, with the other order {new:.1f})"
    finding = Finding("input-colors", "warning", text, "model-color-format")
    yield tried(advised(finding, [change]), colored, plain)


def _blind(trials: ConfigTrials, pre: Preprocessor) -> bool:
    """Whether the outputs hardly depend on the images: they differ little from those of black."""
    if trials.run is None:
        return False
    means = np.array(pre.offsets or (0.0,) * pre.channels, np.float32)
    samples = trials.samples
    planar = samples[0].tensor.shape[0] == pre.channels
    black = np.broadcast_to(
        -means.reshape((-1, 1, 1) if planar else (1, 1, -1)) * np.float32(pre.scale),
        samples[0].tensor.shape,
    )
    outputs = trials.infer(black.astype(np.float32))
    dark = {name: data.astype(np.float32) for name, data in outputs.items()}
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

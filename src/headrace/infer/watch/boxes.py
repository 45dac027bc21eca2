"""Rules on boxes and scores that no right set-up gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import field

from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace.config.enums import ClusterMode, ProcessMode
from headrace.infer.trial import advised
from headrace.infer.watch.rules import MIN_FRAMES, enough

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.meta import Detections, FrameMeta, NetworkInfo
    from headrace.meta.detections import FloatArray

_TOO_HIGH = 1.001  # half precision rounds a sigmoid to 1 at most; INT8 scales may pass it a little
_CROWD = 300  # objects of one frame: crowds and drone images stay below, as do NMS layers
_BACKGROUND = 0.9  # share of one class in such a frame
_NAMES = ("background", "__background__", "bg")  # of no object; usual in labels of SSD and Caffe
_NOTHINGS = 10  # objects of such a name in a frame that are no slip of a network
_FULL = 0.01  # of the input's sides: a box that leaves less than that on each side is the input
_PLACES = 16  # boxes at as many places never have one score, except from a parser that makes it up
_CELLS = 64  # a mask of fewer is often full in a right set-up
_HALF = 0.5  # chance of a cell of a mask; where none has more, another threshold leaves none
_SPOT = 0.02  # of the input's sides: centres of all boxes of a frame within it
_LIKE = 0.75  # IoU of boxes of one class that are the same object to any NMS in use
_DOUBLE = 0.5  # IoU of candidates of one object, before any NMS
_THRESHOLD = "class-attrs-all.pre-cluster-threshold"
_PAIRS = 128  # boxes of a frame whose overlaps are looked at: 0.1 ms


class BoxWatch(PlainRecord):
    """Counts over the looks at a detector's boxes.

    Attributes:
        custom: the parser is the user's own.
        labels: names of the classes.
        looks: frames (or objects) looked at; `found` of them had boxes of the parser.
        kept: boxes left by clustering; `edges` of them touch an edge of the network input, and
            `tiny` are smaller than any object that a network is trained to find.
    """

    cfg: ModelConfig
    network: NetworkInfo
    custom: bool = False
    labels: Sequence[str] = ()
    looks: int = 0
    found: int = 0
    parsed: int = 0
    kept: int = 0
    edges: int = 0
    tiny: int = 0
    _bad: dict[str, list[int]] = field(default_factory=dict)  # kind -> frames, boxes
    _top: float = 0.0
    _low: float = 0.0
    _scores: tuple[float, float] = (np.inf, -np.inf)
    _spread: int = 0  # boxes of frames whose boxes stand everywhere
    _crowds: list[int] = field(default_factory=list)
    _crowd_classes: dict[int, int] = field(default_factory=dict)
    _sample: tuple[float, ...] = ()
    _in_frame: bool = True
    _pointed: bool = False  # objects have points
    _masks: tuple[float, float] = (np.inf, -np.inf)
    _weak: int = 0
    _places: set[tuple[float, ...]] = field(default_factory=set)

    def look(self, parsed: Detections, kept: Detections, attached: int, meta: FrameMeta) -> None:
        """Count one item.

        Args:
            parsed: the parser's boxes, in network pixels.
            kept: those left by thresholds and clustering.
            attached: how many of them became objects.
            meta: of the frame.
        """
        self.looks += 1
        if hidden := self.cfg.filter_out_class_ids:  # a background class, say
            parsed = parsed.select(~np.isin(parsed.class_ids, hidden))
            kept = kept.select(~np.isin(kept.class_ids, hidden))
        if not len(parsed):
            return
        self.found += 1
        self.parsed += len(parsed)
        self.kept += len(kept)
        self._pointed |= parsed.keypoints is not None
        self._look_at_places(parsed.boxes, meta)
        self._look_at_scores(parsed)
        if len(kept):
            self._look_at_objects(kept, attached)

    @property
    def odd(self) -> bool:
        """Whether so many boxes are cut, tiny or missing that another reading is worth a try."""
        cut = self.kept >= 6 and max(self.edges, self.tiny) >= 0.6 * self.kept
        return cut or 2 * self.found <= self.looks

    def _mark(self, kind: str, boxes: int) -> None:
        if boxes:
            frames_boxes = self._bad.setdefault(kind, [0, 0])
            frames_boxes[0] += 1
            frames_boxes[1] += boxes

    def _look_at_places(self, boxes: FloatArray, meta: FrameMeta) -> None:
        wide, high = float(self.network.width), float(self.network.height)
        left, top, w, h = boxes.T
        right, bottom = left + w, top + h
        inverted = (w < 0) | (h < 0)
        self._mark("inverted", int(inverted.sum()))
        flat = (w == 0) | (h == 0)
        self._mark("flat", int(flat.sum()))
        outside = (
            ~inverted & ~flat & ((left >= wide) | (top >= high) | (right <= 0) | (bottom <= 0))
        )
        if n := int(outside.sum()):
            self._mark("outside", n)
            self._sample = self._sample or tuple(boxes[int(outside.argmax())].tolist())
            self._in_frame &= bool((right <= meta.width * 1.05).all())
            self._in_frame &= bool((bottom <= meta.height * 1.05).all())
        beyond = (right > wide * 1.02) | (bottom > high * 1.02)
        corners = (w > left) & (h > top) & (w <= wide * 1.02) & (h <= high * 1.02)
        self._mark("corners", int(corners.sum()) if (beyond & corners).mean() >= 0.3 else 0)
        far = (right > wide * 1.1) | (bottom > high * 1.1)
        far |= (left < wide * -0.1) | (top < high * -0.1)
        self._mark("far", int(far.sum()))
        full = (left <= wide * _FULL) & (top <= high * _FULL)
        full &= (right >= wide * (1 - _FULL)) & (bottom >= high * (1 - _FULL))
        self._mark("full", int(full.sum()))

    def _look_at_scores(self, parsed: Detections) -> None:
        low, high = float(parsed.scores.min()), float(parsed.scores.max())
        self._top, self._low = max(self._top, high), min(self._low, low)
        if high > _TOO_HIGH:
            self._mark("high", int((parsed.scores > _TOO_HIGH).sum()))
        if low < 0:
            self._mark("low", int((parsed.scores < 0).sum()))
        before = self._scores
        self._scores = min(before[0], low), max(before[1], high)
        if len(self._places) < _PLACES:
            self._places.update(map(tuple, parsed.boxes[:_PLACES].round().tolist()))
        if len(parsed) >= 30:  # a few like objects may well have like scores
            x, y = parsed.boxes[:, 0], parsed.boxes[:, 1]
            if np.ptp(x) > self.network.width / 2 and np.ptp(y) > self.network.height / 2:
                self._spread += len(parsed)

    def _look_at_objects(self, kept: Detections, attached: int) -> None:
        wide, high = float(self.network.width), float(self.network.height)
        boxes = kept.boxes
        left, top, w, h = boxes.T
        touches = (left <= 0.5) | (top <= 0.5) | (left + w >= wide - 0.5) | (top + h >= high - 0.5)
        self.edges += int(touches.sum())
        self.tiny += int(((w < 4) & (h < 4)).sum())
        if len(boxes) >= 5:
            x, y = left + w / 2, top + h / 2
            if np.ptp(x) <= wide * _SPOT and np.ptp(y) <= high * _SPOT:
                # larger than the spot and alike: the candidates of one object, unsuppressed
                large = bool((np.median(w) > wide * _SPOT) & (np.median(h) > high * _SPOT))
                doubles = _twins(kept, _DOUBLE) if large else 0
                self._mark("spot", len(boxes) if 2 * doubles < len(boxes) else 0)
        if any(c.pre_cluster_threshold <= 0 for c in self.cfg.per_class):
            self._weak += int((kept.scores < 0.05).sum())
        if attached:
            nothing = int(np.isin(kept.class_ids, self._background()).sum())
            self._mark("background", nothing if nothing >= max(_NOTHINGS, attached / 2) else 0)
        if attached > _CROWD:
            self._crowds.append(attached)
            ids, numbers = np.unique(kept.class_ids, return_counts=True)
            for class_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
                self._crowd_classes[class_id] = self._crowd_classes.get(class_id, 0) + number
        if self._may_overlap() and kept.angles is None:
            self._mark("twins", _twins(kept))
        if kept.masks is not None:
            self._look_at_masks([mask for mask in kept.masks if mask.size >= _CELLS])

    def _look_at_masks(self, masks: Sequence[FloatArray]) -> None:
        for mask in masks:
            low, high = float(mask.min()), float(mask.max())
            self._masks = min(self._masks[0], low), max(self._masks[1], high)
            self._mark("masked", 1)
            self._mark("filled", int(low > self.cfg.segmentation_threshold))

    def _background(self) -> list[int]:
        """Classes that by their name are no objects."""
        return [i for i, name in enumerate(self.labels) if name.strip().casefold() in _NAMES]

    def _may_overlap(self) -> bool:
        """Whether clustering leaves such pairs at all."""
        mode, _ = self.cfg.effective_cluster
        loose = any(c.nms_iou_threshold > _LIKE for c in self.cfg.per_class)
        return mode is ClusterMode.NONE or (mode is ClusterMode.NMS and loose)

    def findings(self, *, final: bool) -> Iterator[Finding]:
        """Yield the findings of the looks so far."""
        if not self.found:
            return
        yield from self._of_places(final)
        yield from self._of_masks(final)
        yield from self._of_scores(final)
        yield from self._of_numbers(final)

    def _seen(self, kind: str, share: float, final: bool, of: int | None = None) -> int:
        """How many boxes show it, if that is evidence enough; else 0."""
        frames, boxes = self._bad.get(kind, (0, 0))
        if boxes < share * (self.parsed if of is None else of):
            return 0
        return boxes if enough(frames, self.found, boxes=boxes, final=final) else 0

    def _of_places(self, final: bool) -> Iterator[Finding]:
        net, of = f"{self.network.width}x{self.network.height}", counted(self.parsed, "box")
        if n := self._seen("inverted", 0.3, final):  # rounding inverts no third of them
            text = f"the parser's boxes are inverted: {n:,} of {of} have a negative width or height"
            text += ", as centre and size read as corners have; parsers return left, top, width, "
            yield Finding("boxes-inverted", "warning", f"{text}height (parse-bbox-func-name)")
        if n := self._seen("flat", 0.3, final):  # rounding and clipping make few so
            text = f"the parser's boxes are empty: {n:,} of {of} have no width or no height"
            if self._pointed:
                text += "; objects have points: return the box around them, else nothing is drawn "
                text += "around an object, cut out of it, or tracked"
            yield Finding("boxes-empty", "warning", text, "parse-bbox-func-name")
        if n := self._seen("corners", 0.95, final):
            text = "the parser's boxes hold right and bottom corners instead of width and height: "
            text += f"{n:,} of {of} reach beyond the {net} network input, and would lie in it as "
            text += "corners; parsers return left, top, width, height (parse-bbox-func-name)"
            yield Finding("boxes-corners", "warning", text, "parse-bbox-func-name")
        elif n := self._seen("outside", 0.05, final):
            first_box = ", ".join(f"{v:.5g}" for v in self._sample)
            text = f"the parser's boxes lie outside the image: {n:,} of {of} are beyond the "
            text += f"{net} network input, the first at left, top, width, height {first_box}; "
            if self._in_frame:
                text += "they fit the frame: parsers return pixels of the network input"
            else:
                text += "a guess: the model is decoded twice, or for another input size "
                text += "(parse-bbox-func-name, infer-dims)"
            yield Finding("boxes-outside", "warning", text, "parse-bbox-func-name")
        elif n := self._seen("far", 0.2, final):  # half an object does not reach so far
            text = f"the parser's boxes reach outside the image: {n:,} of {of} by more than a "
            text += f"tenth of the {net} network input, as with x and y, or corners and centres, "
            text += "swapped (parse-bbox-func-name)"
            yield Finding("boxes-outside", "warning", text, "parse-bbox-func-name")
        # A close-up fills the input with a few candidates, and never all of them exactly.
        primary = self.cfg.process_mode is ProcessMode.PRIMARY
        full = self._seen("full", 0.9, final)
        if primary and full >= 20 and full >= 5 * self.found:
            text = f"the parser's boxes are as large as the image: {full:,} of {of} fill the "
            text += (
                f"{net} network input, as boxes in pixels do that are scaled as if they were in "
            )
            text += "0..1 (parse-bbox-func-name)"
            yield Finding("boxes-full", "warning", text, "parse-bbox-func-name")
        spot = self._bad.get("spot", [0, 0])
        # the boxes of one frame may have one cause: their number is no evidence
        if spot[0] >= 0.9 * self.found and enough(spot[0], self.looks, final=final):
            text = f"all boxes of a frame stand on one point: {counted(spot[1], 'box')} of "
            text += f"{counted(spot[0], 'frame')}, within {_SPOT:.0%} of the network input; "
            text += "a guess: positions are in 0..1 or not decoded (parse-bbox-func-name)"
            yield Finding("boxes-on-one-point", "warning", text, "parse-bbox-func-name")

    def _of_masks(self, final: bool) -> Iterator[Finding]:
        masked, (low, high) = self._bad.get("masked", (0, 0))[1], self._masks
        filled = self._seen("filled", 1.0, final, of=masked)
        if filled and low >= 0 and _HALF < high <= _TOO_HIGH:
            limit = self.cfg.segmentation_threshold
            text = f"all {counted(filled, 'mask')} fill their boxes: values from {low:.3g} to "
            text += f"{high:.3g} are above segmentation-threshold={limit:g}"
            finding = Finding("masks-full", "warning", text, "segmentation-threshold")
            yield advised(finding, [{"segmentation-threshold": f"{_HALF:g}"}])

    def _of_scores(self, final: bool) -> Iterator[Finding]:
        of = counted(self.parsed, "box")
        if n := self._seen("high", 0.01, final):
            text = f"scores are no probabilities: {n:,} of {of} have more than 1, up to "
            text += f"{self._top:.4g}; a guess: the sigmoid or softmax is missing in the model or "
            text += "the parser, or they are percent; pre-cluster-threshold compares them as is"
            yield Finding("scores-above-1", "warning", text, "parse-bbox-func-name")
        elif n := self._seen("low", 0.01, final):
            text = f"scores are no probabilities: {n:,} of {of} are below 0, down to "
            text += f"{self._low:.4g}; a guess: the sigmoid or softmax is missing in the model or "
            text += "the parser (parse-bbox-func-name)"
            yield Finding("scores-below-0", "warning", text, "parse-bbox-func-name")
        low, high = self._scores
        # Everywhere in the image and always the same: no network is that sure of nothing.
        spread = self._spread >= max(100, 0.9 * self.parsed) and high - low < 1e-4
        same = self.custom and high == low and len(self._places) >= _PLACES
        if spread or (same and self.found >= MIN_FRAMES):
            text = f"all scores are {high:.4g}: {of} of {counted(self.found, 'frame')}, at many "
            text += "places; a guess: the parser reads the wrong values as scores "
            text += "(parse-bbox-func-name)"
            yield Finding("scores-alike", "warning", text, "parse-bbox-func-name")

    def _of_numbers(self, final: bool) -> Iterator[Finding]:
        crowds = len(self._crowds)
        if n := self._seen("background", 0.5, final, of=self.kept):
            ids = self._background()
            text = f"class {ids[0]} is {self.labels[ids[0]]!r} and no object: {n:,} of "
            text += f"{counted(self.kept, 'box')} are of it"
            finding = Finding("background-class", "warning", text, "filter-out-class-ids")
            hidden = ";".join(map(str, (*self.cfg.filter_out_class_ids, *ids)))
            yield advised(finding, [{"filter-out-class-ids": hidden}], basis="read")
        elif crowds >= 0.75 * self.looks and enough(crowds, self.looks, final=final):
            yield self._crowd(sum(self._crowds) // crowds)
        elif (
            self._weak >= max(0.6 * self.kept, 10 * self.found)
            and enough(self.found, self.looks, final=final)
        ):  # fmt: skip
            text = f"pre-cluster-threshold=0 lets everything pass: {self._weak:,} of "
            text += f"{counted(self.kept, 'box')} have scores below 0.05; usual are 0.2 to 0.5"
            finding = Finding("threshold-0", "warning", text, "pre-cluster-threshold")
            yield advised(finding, [{_THRESHOLD: "0.25"}])
        twins = self._bad.get("twins", [0, 0])
        share = twins[1] / self.kept if self.kept else 0.0
        if share >= 0.4 and enough(twins[0], self.found, final=final) and twins[1] >= 6:
            yield self._overlaps(share)

    def _crowd(self, mean: int) -> Finding:
        total = sum(self._crowd_classes.values())
        class_id = max(self._crowd_classes, key=self._crowd_classes.__getitem__)
        share = self._crowd_classes[class_id] / total
        if share >= _BACKGROUND and self.cfg.num_detected_classes > 1:
            text = f"class {class_id} looks like the background: {share:.1%} of about {mean:,} "
            finding = Finding(
                "background-class", "warning", f"{text}objects a frame are of it",
                "filter-out-class-ids",
            )  # fmt: skip
            hidden = ";".join(map(str, (*self.cfg.filter_out_class_ids, class_id)))
            return advised(finding, [{"filter-out-class-ids": hidden}])
        threshold = min((c.pre_cluster_threshold for c in self.cfg.per_class), default=0.0)
        text = f"about {mean:,} objects a frame are more than images have, at "
        text += f"pre-cluster-threshold={threshold:g}; or the parser reads the wrong values as "
        finding = Finding("too-many-boxes", "warning", text + "scores", "pre-cluster-threshold")
        higher = [{_THRESHOLD: value} for value in ("0.25", "0.5") if float(value) > threshold]
        return advised(finding, higher) if higher else finding

    def _overlaps(self, share: float) -> Finding:
        text = f"the same objects are found several times: {share:.0%} of the boxes overlap another"
        text += f" of their class by more than {_LIKE:g} (IoU); "
        mode, _ = self.cfg.effective_cluster
        if mode is ClusterMode.NONE:
            text += "cluster-mode=4 leaves them all, and the model suppresses none"
            finding = Finding("overlaps", "warning", text, "cluster-mode")
            return advised(finding, [{"cluster-mode": "2"}])
        limit = max((c.nms_iou_threshold for c in self.cfg.per_class), default=0.0)
        text += f"nms-iou-threshold={limit:g} lets them through: usual are 0.45 to 0.65"
        finding = Finding("overlaps", "warning", text, "nms-iou-threshold")
        return advised(finding, [{"class-attrs-all.nms-iou-threshold": "0.5"}])


def _twins(kept: Detections, limit: float = _LIKE) -> int:
    """Boxes that overlap an earlier one of their class by more than `limit` (IoU)."""
    if len(kept) < 2:
        return 0
    boxes, ids = kept.boxes[:_PAIRS], kept.class_ids[:_PAIRS]
    x1, y1 = boxes[:, 0], boxes[:, 1]
    x2, y2 = x1 + boxes[:, 2], y1 + boxes[:, 3]
    w = np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1)
    h = np.minimum(y2[:, None], y2) - np.maximum(y1[:, None], y1)
    shared = np.maximum(w, 0) * np.maximum(h, 0)
    area = boxes[:, 2] * boxes[:, 3]
    alike = shared > np.float32(limit) * (area[:, None] + area - shared)
    alike &= ids[:, None] == ids
    return int(np.triu(alike, 1).any(axis=0).sum())

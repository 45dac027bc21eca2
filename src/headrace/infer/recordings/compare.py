"""Differences between results of a parser and those that were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.infer.parsers.labels import class_name
from headrace.infer.recordings.recording import RecordedItem
from headrace.meta import Classification, Detections, Segmentation

TOLERANCE = 1e-3
_SHOWN = 20
Result = Detections | Classification | Segmentation | None


def first_difference(
    found: Result,
    recorded: Result,
    *,
    labels: Sequence[str] = (),
    tolerance: float = TOLERANCE,
) -> str | None:
    """The first difference between two results in words; None if there is none.

    Args:
        found: the result now.
        recorded: the result in the recording.
        labels: names of the classes.
        tolerance: of coordinates in pixels, of scores and angles; other values are equal or not.
    """
    if type(found) is not type(recorded):
        return f"recorded is {_kind(recorded)}, found is {_kind(found)}"
    if isinstance(found, Detections) and isinstance(recorded, Detections):
        return _of_boxes(found, recorded, labels, tolerance)
    if isinstance(found, Segmentation) and isinstance(recorded, Segmentation):
        return _of_maps(found, recorded)
    if isinstance(found, Classification) and isinstance(recorded, Classification):
        return _of_attributes(found, recorded, tolerance)
    return None


def assert_same_objects(found: Result, item: RecordedItem, *, tolerance: float = TOLERANCE) -> None:
    """Assert that a parser still gives the recorded result.

        assert_same_objects(parse(item.layers, item.network, item.params), item)

    Boxes go through the thresholds and the clustering of the recorded config first.

    Args:
        found: the return value of the parser.
        item: of the recording.
        tolerance: see `first_difference`.

    Raises:
        AssertionError: they differ; the message has the boxes, `-` recorded, `+` found.
        ValueError: the recording has no result for this item.
    """
    __tracebackhide__ = True
    recorded = item.result
    if recorded is None:
        raise ValueError(f"{item.place}: nothing was recorded to compare with")
    if isinstance(found, Detections):
        found = item.cluster(found)
    labels = class_names(item)
    difference = first_difference(found, recorded, labels=labels, tolerance=tolerance)
    if difference is None:
        return
    text = f"{item.place}: {difference}"
    if isinstance(found, Detections) and isinstance(recorded, Detections):
        text += "\n" + "\n".join(_diff(found, recorded, labels, tolerance))
    raise AssertionError(text)


def class_names(item: RecordedItem) -> Sequence[str]:
    """Names of the classes of a detector; none of other models."""
    names = getattr(item.params, "labels", ())
    return names if all(isinstance(name, str) for name in names) else ()


def result_text(item: RecordedItem, result: Result) -> str:
    """A result in words; boxes in pixels of the frame, best first of each class."""
    if isinstance(result, Detections):
        names = class_names(item)
        placed = Detections(item.to_frame(result), result.scores, result.class_ids)
        return "; ".join(box_text(placed, row, names) for row in _order(placed)) or "no objects"
    if isinstance(result, Classification):
        return result.text.strip() or "no label"
    if isinstance(result, Segmentation):
        classes, counts = np.unique(result.class_map, return_counts=True)
        shares = zip(classes.tolist(), (counts / result.class_map.size).tolist(), strict=True)
        names = class_names(item)
        return "; ".join(f"{class_name(names, c)} {share:.1%}" for c, share in shares if c >= 0)
    return "no result"


def box_text(detections: Detections, row: int, labels: Sequence[str] = ()) -> str:
    """One box in words: `car 0.91 at 12,30 40x20`."""
    left, top, width, height = (f"{v:.5g}" for v in detections.boxes[row].tolist())
    name = class_name(labels, int(detections.class_ids[row]))
    return f"{name} {detections.scores[row]:.4g} at {left},{top} {width}x{height}"


def _kind(result: Result) -> str:
    return {
        Detections: "a list of boxes", Classification: "attributes", Segmentation: "a class map",
    }.get(type(result), "nothing")  # fmt: skip


def _order(detections: Detections) -> list[int]:
    """Rows by class, then by falling score, then by place."""
    keys = (*detections.boxes.T[::-1], -detections.scores, detections.class_ids)
    return [int(row) for row in np.lexsort(keys)]


def _near(
    a: Detections, row: int, b: Detections, rows: npt.NDArray[np.intp], tolerance: float
) -> npt.NDArray[np.intp]:
    """The rows of `b`, among `rows`, with the class, score and place of a row of `a`."""

    def close(x: Array, y: Any) -> npt.NDArray[np.bool_]:
        return np.asarray(np.isclose(x, y, rtol=1e-5, atol=tolerance, equal_nan=True))

    same: npt.NDArray[np.bool_] = b.class_ids[rows] == a.class_ids[row]
    same &= close(b.scores[rows], a.scores[row]) & close(b.boxes[rows], a.boxes[row]).all(axis=1)
    if a.angles is not None and b.angles is not None:
        same &= close(b.angles[rows], a.angles[row])
    if a.keypoints is not None and b.keypoints is not None:
        if a.keypoints.shape[1] != b.keypoints.shape[1]:
            return rows[:0]
        same &= close(b.keypoints[rows], a.keypoints[row]).all(axis=(1, 2))
    near: npt.NDArray[np.intp] = rows[same]
    return near


def _same_mask(a: Detections, row: int, b: Detections, other: int, tolerance: float) -> bool:
    if a.masks is None or b.masks is None:
        return True
    x, y = a.masks[row], b.masks[other]
    return x.shape == y.shape and np.allclose(x, y, rtol=1e-5, atol=tolerance, equal_nan=True)


def _pairs(
    actual: Detections, recorded: Detections, tolerance: float
) -> tuple[list[int], list[int]]:
    """Rows of each that the other has none for, by class and score."""
    left = np.array(_order(recorded), np.intp)
    new = []
    for row in _order(actual):
        near = _near(actual, row, recorded, left, tolerance).tolist()
        match = next((o for o in near if _same_mask(actual, row, recorded, o, tolerance)), None)
        if match is None:
            new.append(row)
        else:
            left = left[left != match]
    return new, left.tolist()


def _of_boxes(
    actual: Detections, recorded: Detections, labels: Sequence[str], tolerance: float
) -> str | None:
    for name in ("masks", "angles", "keypoints"):
        if (getattr(actual, name) is None) != (getattr(recorded, name) is None):
            has = "the recording" if getattr(actual, name) is None else "the parser"
            return f"only {has} has {name}"
    new, lost = _pairs(actual, recorded, tolerance)
    if not new and not lost:
        return None
    text = f"{len(recorded)} objects were recorded, {len(actual)} are found; "
    text += "first difference, in network pixels: "
    if lost and new and _nearer(actual, new[0], recorded, lost[0]):
        text += f"{box_text(recorded, lost[0], labels)} is now {box_text(actual, new[0], labels)}"
    elif lost:
        text += f"{box_text(recorded, lost[0], labels)} is gone"
    else:
        text += f"{box_text(actual, new[0], labels)} is new"
    return text


def _nearer(actual: Detections, row: int, recorded: Detections, other: int) -> bool:
    """True if two boxes are of one class, or overlap: one became the other."""
    a, b = actual.boxes[row], recorded.boxes[other]
    overlap = np.minimum(a[:2] + a[2:], b[:2] + b[2:]) - np.maximum(a[:2], b[:2])
    return bool(actual.class_ids[row] == recorded.class_ids[other] or (overlap > 0).all())


def _diff(
    actual: Detections, recorded: Detections, labels: Sequence[str], tolerance: float
) -> Iterator[str]:
    """Boxes that differ, recorded ones with `-`, found ones with `+`."""
    new, lost = _pairs(actual, recorded, tolerance)
    for old, now in islice(zip_longest(lost, new), _SHOWN):
        if old is not None:
            yield f"  - {box_text(recorded, old, labels)}"
        if now is not None:
            yield f"  + {box_text(actual, now, labels)}"
    if (more := max(len(lost), len(new)) - _SHOWN) > 0:
        yield f"  … {more} more"


def _of_maps(actual: Segmentation, recorded: Segmentation) -> str | None:
    a, b = actual.class_map, recorded.class_map
    if a.shape != b.shape:
        return f"the recorded class map is {b.shape}, the one found {a.shape}"
    different = np.argwhere(a != b)
    if not len(different):
        return None
    y, x = different[0].tolist()
    return (
        f"{len(different)} of {a.size} pixels have another class; first difference: "
        f"{b[y, x]} at {x},{y} is now {a[y, x]}"
    )


def _of_attributes(
    actual: Classification, recorded: Classification, tolerance: float
) -> str | None:
    if len(actual.attributes) != len(recorded.attributes):
        counts = f"{len(recorded.attributes)} attributes were recorded"
        return f"{counts}, {len(actual.attributes)} are found"
    for now, then in zip(actual.attributes, recorded.attributes, strict=True):
        close = np.isclose(now[2], then[2], rtol=1e-5, atol=tolerance, equal_nan=True)
        named = now[3] is None or now[3] == then[3]  # a label of None comes from the label file
        if now[:2] != then[:2] or not close or not named:
            return f"attribute {then[0]}: {then[1:]} was recorded, {now[1:]} is found"
    return None

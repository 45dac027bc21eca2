"""Evidence for and against each built-in head in the values of one run, the graph and the names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.types import Array

if TYPE_CHECKING:
    from headrace.infer.recognise.heads import View

UNIT_REACH = 2.0
"""Boxes in 0..1 reach a little further than 1."""

Check = Callable[["View"], "str | None"]
"""Why a head reads the outputs; None if something speaks against it."""

_ROWS_6 = "NvDsInferParseYolo"
_ORDERED, _MIXED = 0.9, 0.5  # share of rows whose second corner is right and below, see `corners`
_V5_LAYERS, _V7_LAYERS = ("model.24", "model.33"), ("model.77", "model.105", "model.102",
                                                     "model.118", "model.122", "model.144",
                                                     "model.162", "model.166")  # fmt: skip


def values_of(view: View, index: int = 0) -> Array:
    """One output of the run, float64."""
    return np.asarray(view.probe()[view.items[index].name], np.float64)


def rows_of(view: View) -> Array:
    """The first output as rows of its last axis."""
    values = values_of(view)
    return values.reshape(-1, values.shape[-1])


def whole(column: Array) -> bool:
    """Whether all values are whole numbers, of which there are some."""
    return bool(column.size and (np.rint(column) == column).all())


def reach_of(boxes: Array) -> float:
    """The 95th percentile of the absolute values; 0 without any."""
    return float(np.percentile(np.abs(boxes), 95)) if boxes.size else 0.0


def in_pixels(view: View) -> bool:
    """Whether the boxes of the first output, if there are any, reach beyond 0..1."""
    return not 0 < reach_of(values_of(view)) <= UNIT_REACH


def unit(values: Array) -> bool:
    """Whether all values are in 0..1."""
    return bool(not values.size or (values.min() >= -1e-3 and values.max() <= 1.001))


def corners(rows: Array) -> bool | None:
    """Whether the first four columns are corners, not centres with sizes; None: undecided.

    Second corners are right of and below the first; a centre is so to its size by chance only.
    """
    rows = rows[rows[:, :4].any(axis=1)]
    if not len(rows):
        return None
    share = float(((rows[:, 2] >= rows[:, 0]) & (rows[:, 3] >= rows[:, 1])).mean())
    return True if share > _ORDERED else False if share < _MIXED else None


def class_numbers_last(view: View) -> bool:
    """Whether the last column of rows is the number of a class: by the graph, or by its values."""
    joined = view.evidence.joined.get(view.items[0].name, ("",))
    column = rows_of(view)[:, -1]
    return whole(column) and (joined[-1] in ("Cast", "ArgMax") or len(np.unique(column)) > 1)


def final_rows(view: View) -> bool:
    """Whether rows are a selection: few, unlike the candidates of a grid."""
    count = view.items[0].shape[0]
    return isinstance(count, int) and count <= _MOST_FINAL


_MOST_FINAL = 1000
ROWS_7 = ("HeadraceParseYoloV7Rows", "HeadraceParseYoloNasRows", "HeadraceParseSSDRows")


def _seven(*, corner: int, score: int, label: int, small: bool) -> Check:
    def check(view: View) -> str | None:
        rows = rows_of(view)
        rows = rows[(rows[:, 0] >= 0) & rows.any(axis=1)]
        if not len(rows):
            return "shapes of the outputs"
        if not (whole(rows[:, 0]) and whole(rows[:, label]) and unit(rows[:, score])):
            return None
        reach = reach_of(rows[:, corner : corner + 4])
        if (reach <= UNIT_REACH) is not small:
            return None
        return f"column {label} holds whole numbers, boxes reach {reach:.3g}"

    return check


def six_by_place(view: View) -> bool:
    """Whether rows of six may hold corners in pixels: they are not within 0..1."""
    return not 0 < reach_of(rows_of(view)[:, :4]) <= UNIT_REACH


def _six(view: View) -> str | None:
    rows = rows_of(view)
    reach = reach_of(rows[:, :4])
    if not six_by_place(view) or (rows.size and not whole(rows[:, 5])):
        return None
    return f"boxes reach {reach:.3g}, the last column holds whole numbers"


def _not_in_pixels_by_name(view: View) -> str | None:
    """A head of boxes y first: no program with these names of outputs writes them."""
    names = {item.name for item in view.items}
    return None if any(known <= names for known in _PIXELS) else "shapes of the outputs"


def _after_nms(view: View, *, small: bool) -> str | None:
    """Judge boxes of a selection by their reach; without any, by the names of the outputs."""
    boxes = next(np.asarray(v) for v in view.probe().values() if np.shape(v)[-1:] == (4,))
    reach = reach_of(boxes)
    if reach:
        return f"boxes reach {reach:.3g}" if (reach <= UNIT_REACH) is small else None
    names = {item.name for item in view.items}
    if not small and any(known <= names for known in _PIXELS):
        return "names of the outputs, of programs that write boxes in pixels"
    return None if any(known <= names for known in _PIXELS) else "shapes of the outputs"


_PIXELS = (
    {"num_dets", "det_boxes"},  # YOLOv6, YOLOv7, DAMO-YOLO
    {"num_predictions", "pred_boxes"},  # super-gradients
    {"num_dets", "boxes", "scores", "labels"},  # mmyolo
)


def _grids(*, activated: bool, version: int) -> Check:
    def check(view: View) -> str | None:
        inside = all(unit(np.asarray(v)) for v in view.probe().values())
        if inside is not activated:
            return None
        names = " ".join(item.name for item in view.items).lower()
        layers = {name.partition("/")[0] for name in view.evidence.node_names}
        layers |= {name.partition("/")[2] for name in view.evidence.node_names}
        said = 5 if "yolov5" in names or layers & {*_V5_LAYERS} else 0
        said = 7 if "yolov7" in names or layers & {*_V7_LAYERS} else said
        if said not in (0, version):
            return None
        by = f"names of YOLOv{version}" if said else "shapes of the outputs"
        return f"{by}, values {'within' if activated else 'beyond'} 0..1"

    return check


def _v3_grids(view: View) -> str | None:
    names = " ".join(item.name for item in view.items).lower()
    if "yolov5" in names or "yolov7" in names:
        return None
    inside = all(unit(np.asarray(v)) for v in view.probe().values())
    return "shapes of the outputs, values within 0..1" if inside else None


def _joined(*, distances: bool) -> Check:
    def check(view: View) -> str | None:
        maps = [np.asarray(v).reshape(np.shape(v)[-3], -1) for v in view.probe().values()]
        named = all("yolov6r2" in item.name for item in view.items)
        positive = all(part[:4].min() >= 0 for part in maps)
        confident = all(
            (part[4] == 1).all() or np.allclose(part[4], part[5:].max(axis=0)) for part in maps
        )
        if (named or (positive and confident)) is not distances:
            return None
        return "maps of distances" if distances else "maps of offsets, some below 0"

    return check


def candidates_of(view: View) -> Array:
    """The first output as rows of candidates, in either orientation."""
    rows = rows_of(view)
    return rows.T if rows.shape[0] < rows.shape[1] else rows


def _fcos(view: View) -> str | None:
    """Corners in pixels; column 4 is a level of the pyramid, always 1, or the best score again."""
    if len(view.items) != 1:
        return None
    rows = candidates_of(view)
    if not corners(rows) or not unit(rows[:, 5:]) or rows.shape[1] < _FCOS_COLUMNS:
        return None
    if reach_of(rows[:, :4]) < view.network.width / 8:  # offsets of cells, and sizes
        return None
    five = rows[:, 4]
    if (five == 1).all():
        return "corners; column 4 is always 1"
    if whole(five) and five.min() >= 0 and 1 < five.max() < _PYRAMID:
        return "corners; column 4 is a level"
    again = np.allclose(five, rows[:, 5:].max(axis=1, initial=0))
    return "corners; column 4 repeats the best score" if again else None


def _unit_candidates(view: View) -> str | None:
    """Candidates with boxes in 0..1, centres a little beyond; logarithms of sizes are below 0."""
    if len(view.items) > 1:
        return None
    rows = candidates_of(view)
    if len(rows) <= _MOST_QUERIES or rows.shape[1] <= 4:
        return None
    reach = reach_of(rows[:, :4])
    if not unit(rows[:, 4:]) or rows[:, 2:4].min(initial=0) < 0 or not 0 < reach <= UNIT_REACH:
        return None
    return f"boxes reach {reach:.3g}, scores within 0..1"


def _yolov2_raw(view: View) -> str | None:
    return None if unit(values_of(view)) else "one grid of logits"


def _yolov2(view: View) -> str | None:
    return "one grid" if unit(values_of(view)) else None


FCOS = "HeadraceParseFcos"
YOLOV8_UNIT = "HeadraceParseYoloV8Unit"
_PYRAMID = 8  # levels at most
_MOST_QUERIES = 100  # points of a person; a grid has a candidate for each cell
_FCOS_COLUMNS = 7  # of one class, column 4 may be its score
CHECKS: Mapping[str, Check] = {
    _ROWS_6: _six,
    "HeadraceParseYoloV7Rows": _seven(corner=1, score=6, label=5, small=False),
    "HeadraceParseYoloNasRows": _seven(corner=1, score=5, label=6, small=False),
    "HeadraceParseSSDRows": _seven(corner=3, score=2, label=1, small=True),
    **{
        name: partial(_after_nms, small=small)
        for name, small in (
            ("HeadraceParseEfficientNMS", False),
            ("HeadraceParseEfficientNMSUnit", True),
            ("NvDsInferParseCustomBatchedNMSTLT", True),
            ("NvDsInferParseYoloV5CustomBatchedNMSTLT", False),
        )
    },
    **{
        f"HeadraceParseYoloV{version}{suffix}": _grids(activated=activated, version=version)
        for suffix, activated in (("Raw", False), ("Grids", True))
        for version in (5, 7)
    },
    "NvDsInferParseCustomYoloV3": _v3_grids,
    "NvDsInferParseCustomEfficientDetTAO": _not_in_pixels_by_name,
    "HeadraceParseJoinedMaps": _joined(distances=True),
    "HeadraceParseYoloXMaps": _joined(distances=False),
    FCOS: _fcos,
    YOLOV8_UNIT: _unit_candidates,
    "HeadraceParseYoloV2Raw": _yolov2_raw,
    "NvDsInferParseCustomYoloV2": _yolov2,
    "NvDsInferParseCustomYoloV2Tiny": _yolov2,
}
"""Heads that something beside the shapes decides, each by its own."""

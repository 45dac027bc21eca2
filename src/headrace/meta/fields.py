"""The fields of a record: keys, values and columns of each format, a row for each field.

JSON Lines, COCO, tables, messages and the live page read `FIELDS`. A new field is one row here: of
a format that the row does not name, the field is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any

import numpy as np
from msgspec import field

from headrace._core.plain_record import PlainRecord
from headrace.meta.detections import FloatArray
from headrace.meta.frame_meta import FrameMeta
from headrace.meta.json_forms import (
    classifiers_json,
    coco_attributes,
    coco_mask,
    coco_points,
    mask_json,
    points_json,
    quoted_text,
    segmentations_json,
    to_json,
)
from headrace.meta.masks import object_mask
from headrace.meta.objects import Objects
from headrace.meta.results import UNTRACKED_OBJECT_ID
from headrace.meta.shapes import rotated_corners

_ALL_ONES = b"\xff"  # of -1 and of UNTRACKED_OBJECT_ID, whatever the width
Form = Callable[[Objects, int], Any]
"""The value of an object in one format."""


class Column(PlainRecord, frozen=True):
    """A column of tables.

    Attributes:
        at: its index among the columns of objects; readers know the order.
        name, type: as Arrow has them.
        values: one for each object of a frame, None for null: an array or a list.
        unit: `1` is a share from 0 to 1; empty: it has none.
        null: True if the value may be missing.
    """

    at: int
    name: str
    type: str
    values: Callable[[Objects], Any]
    unit: str = ""
    null: bool = False


class RecordField(PlainRecord, frozen=True):
    """One fact of an object.

    Attributes:
        names: keys of JSON Lines, one for each number of `array`.
        array: attribute of `Objects` with numbers that the native core writes, (N,) or (N, keys)
            float32; None has none now.
        digits: decimals of `array`.
        tracked: `array` is written of tracked objects alone, and where it is finite; else an
            object whose numbers are not finite is left out.
        sparse: dict of `Objects` that has an entry for each object with it.
        optional: attribute of `Objects` that is None where no object of the frame has it.
        when: True if any object of the frame has it, where neither shows that.
        value: of one object, None for one without; needed with `json`.
        json: JSON of a value; None: the native core writes it, or the beginning of the object.
        refers: True if the value is the index of an object: each format counts its own.
        coco: members of an annotation for one object.
        columns: of tables.
        event, view: key and value in events of messages, and on the live page.
    """

    names: tuple[str, ...]
    array: str = ""
    digits: int = 0
    tracked: bool = False
    sparse: str = ""
    optional: str = ""
    when: Callable[[Objects], bool] | None = None
    value: Callable[[FrameMeta, int], Any] | None = None
    json: Callable[[Any], str] | None = None
    refers: bool = False
    coco: Callable[[FrameMeta, int], Mapping[str, Any]] | None = None
    columns: Sequence[Column] = ()
    event: Mapping[str, Form] = field(default_factory=dict)
    view: Mapping[str, Form] = field(default_factory=dict)


def has_tracks(objects: Objects) -> bool:
    """True if any object has a tracking id."""
    return bool(objects.object_ids.tobytes().strip(_ALL_ONES))


def _track(objects: Objects, index: int) -> int | None:
    track = int(objects.object_ids[index])
    return None if track == UNTRACKED_OBJECT_ID else track


def _parent(meta: FrameMeta, index: int) -> int | None:
    parent = int(meta.objects.parents[index])
    return parent if parent >= 0 else None


def _angle(meta: FrameMeta, index: int) -> float | None:
    angles = meta.objects.angles
    angle = 0.0 if angles is None else float(angles[index])
    return angle if angle and math.isfinite(angle) else None


def text_beyond_label(objects: Objects, index: int) -> str:
    """Display text of an object, blanks tidied; empty if it is the label."""
    text = objects.texts.get(index)
    if text is None:
        return ""
    text = " ".join(text.split())
    return "" if text == " ".join(objects.label(index).split()) else text


def _points(objects: Objects, index: int) -> FloatArray | None:
    points = objects.keypoints
    return points[index] if points is not None and len(points[index]) else None


def _coco_points(meta: FrameMeta, index: int) -> Mapping[str, Any]:
    points = _points(meta.objects, index)
    return {} if points is None else coco_points(points)


def _outline(meta: FrameMeta, index: int) -> Mapping[str, Any]:
    """The mask of an object; of one without, its corners if it is rotated."""
    mask = object_mask(meta.objects, index, meta.width, meta.height)
    if mask is not None:
        return coco_mask(mask, meta.width, meta.height)
    corners = rotated_corners(meta.objects, index)
    values = [round(value, 3) for corner in corners for value in corner]
    return {"segmentation": [values]} if corners else {}


def _rules(meta: FrameMeta, index: int) -> dict[str, Any] | None:
    rules = meta.objects.analytics.get(index)
    return None if rules is None else rules.to_dict() or None


def _named(objects: Objects, index: int) -> str:
    return objects.label(index) or f"class {objects.class_ids[index]}"


def _each(form: Form) -> Callable[[Objects], list[Any]]:
    """A column of the values of one form."""
    return lambda objects: [form(objects, i) for i in range(len(objects))]


def _labels(objects: Objects, index: int) -> list[str]:
    return plain_text(
        info.label for meta in objects.classifiers.get(index, ()) for info in meta.labels
    )


def plain_text(values: Any) -> list[str]:
    """Strings that every format can hold: lone surrogates become question marks."""
    return [v if v.isascii() else v.encode(errors="replace").decode() for v in values]


def _rule_column(at: int, name: str) -> Column:
    form = _each(lambda objects, i: list(getattr(objects.analytics.get(i), name, ())))
    return Column(at, name, "list<string>", form)


COMPONENT = RecordField(
    ("component_id",),
    value=lambda meta, i: int(meta.objects.component_ids[i]),
    json=str,
    columns=[Column(1, "component_id", "int32", lambda o: o.component_ids)],
    view={"component": lambda o, i: int(o.component_ids[i])},
)
TRACK = RecordField(
    ("object_id",),
    when=has_tracks,
    coco=lambda meta, i: {} if (id := _track(meta.objects, i)) is None else {"track_id": id},
    columns=[
        Column(
            9, "object_id", "uint64",
            lambda o: [None if i == UNTRACKED_OBJECT_ID else i for i in o.object_ids.tolist()],
            null=True,
        )
    ],
    event={"object_id": _track},
    view={"track": _track},
)  # fmt: skip

FIELDS: tuple[RecordField, ...] = (
    RecordField(
        ("class_id",),
        columns=[Column(2, "class_id", "int32", lambda o: o.class_ids)],
        event={"class_id": lambda o, i: int(o.class_ids[i])},
    ),
    RecordField(
        ("label",),
        columns=[Column(3, "label", "string", lambda o: plain_text(_each(Objects.label)(o)))],
        event={"label": Objects.label},
        view={"label": _named},
    ),
    # Thousandths of a pixel, millionths of confidence: finer than any detector, and short.
    RecordField(
        ("confidence",),
        array="confidences",
        digits=6,
        columns=[Column(4, "confidence", "float32", lambda o: o.confidences, "1")],
        event={"confidence": lambda o, i: float(o.confidences[i])},
        view={"confidence": lambda o, i: round(float(o.confidences[i]), 3)},
    ),
    RecordField(
        ("left", "top", "width", "height"),
        array="rects",
        digits=3,
        columns=[
            Column(5, "left", "float32", lambda o: o.rects[:, 0], "px"),
            Column(6, "top", "float32", lambda o: o.rects[:, 1], "px"),
            Column(7, "width", "float32", lambda o: o.rects[:, 2], "px"),
            Column(8, "height", "float32", lambda o: o.rects[:, 3], "px"),
        ],
        event={"box": lambda o, i: tuple(o.rects[i].tolist())},
        view={"box": lambda o, i: [round(v, 1) for v in o.rects[i].tolist()]},
    ),
    TRACK,
    RecordField(("tracker_confidence",), array="tracker_confidences", digits=6, tracked=True),
    COMPONENT,
    RecordField(
        ("parent",),
        when=lambda o: bool(o.parents.tobytes().strip(_ALL_ONES)),
        value=_parent,
        json=str,
        refers=True,
        columns=[
            Column(0, "parent", "int32",
                   lambda o: [None if p < 0 else p for p in o.parents.tolist()], null=True)
        ],
    ),
    RecordField(
        ("angle",),
        optional="angles",
        value=_angle,
        json=lambda angle: f"{angle:.3f}",
        columns=[
            Column(13, "angle", "float32",
                   lambda o: np.zeros(len(o), np.float32) if o.angles is None else o.angles, "deg")
        ],
    ),
    RecordField(
        ("text",),
        sparse="texts",
        value=lambda meta, i: text_beyond_label(meta.objects, i) or None,
        json=quoted_text,
        columns=[
            Column(10, "text", "string", lambda o: plain_text(
                " ".join(o.display_text(i).split()) for i in range(len(o))))
        ],
    ),
    RecordField(
        ("classifiers",),
        sparse="classifiers",
        value=lambda meta, i: meta.objects.classifiers.get(i) or None,
        json=classifiers_json,
        coco=lambda meta, i: (
            {"attributes": attributes}
            if (attributes := coco_attributes(meta.objects.classifiers.get(i, ())))
            else {}
        ),
        columns=[
            Column(11, "classifier_labels", "list<string>", _each(_labels)),
            Column(12, "classifier_confidences", "list<float32>", _each(
                lambda o, i: [x.confidence for c in o.classifiers.get(i, ()) for x in c.labels]),
                "1"),
        ],
        event={
            "attributes": lambda o, i: tuple(
                (c.classifier_type, x.label) for c in o.classifiers.get(i, ()) for x in c.labels
            )
        },
        view={"labels": lambda o, i: [x.label for c in o.classifiers.get(i, ()) for x in c.labels]},
    ),
    RecordField(
        ("mask",),
        optional="masks",
        value=lambda meta, i: object_mask(meta.objects, i, meta.width, meta.height),
        json=mask_json,
        coco=_outline,
    ),
    RecordField(
        ("keypoints",),
        optional="keypoints",
        value=lambda meta, i: _points(meta.objects, i),
        json=points_json,
        coco=_coco_points,
        columns=[
            Column(14, "keypoints", "list<float32>", _each(
                lambda o, i: [] if o.keypoints is None else o.keypoints[i].reshape(-1).tolist()))
        ],
    ),
    RecordField(
        ("analytics",),
        sparse="analytics",
        value=_rules,
        json=to_json,
        columns=[
            _rule_column(15, "regions"), _rule_column(16, "crossed"), _rule_column(17, "directions")
        ],
        event={"analytics": lambda o, i: o.analytics.get(i)},
        view={"rules": lambda o, i: a.to_dict() if (a := o.analytics.get(i)) else {}},
    ),
    RecordField(
        ("segmentations",),
        sparse="segmentations",
        value=lambda meta, i: meta.objects.segmentations.get(i) or None,
        json=segmentations_json,
    ),
    RecordField(
        ("reid",),
        sparse="reids",
        value=lambda meta, i: meta.objects.reids.get(i),
        json=lambda look: to_json([round(float(v), 6) for v in look]),
        columns=[
            Column(18, "reid", "list<float32>", _each(
                lambda o, i: o.reids[i].tolist() if i in o.reids else []))
        ],
    ),
)  # fmt: skip
"""In the order of JSON Lines."""
EVENT_FORMS: dict[str, Form] = {key: form for f in FIELDS for key, form in f.event.items()}
VIEW_FORMS: dict[str, Form] = {key: form for f in FIELDS for key, form in f.view.items()}


_EXTRAS = [row for row in FIELDS if row.json is not None and row is not COMPONENT]
_SPARSE = attrgetter(*(row.sparse for row in FIELDS if row.sparse))
_OPTIONAL = attrgetter(*(row.optional for row in FIELDS if row.optional))
_NONES = (None,) * sum(bool(row.optional) for row in FIELDS)
_WHEN = [row.when for row in _EXTRAS if row.when is not None]


def has_extras(objects: Objects) -> bool:
    """True if any object has more than class, confidence, box and track; asked every frame."""
    if any(_SPARSE(objects)) or not all(map(is_, _OPTIONAL(objects), _NONES)):
        return True
    return True in [when(objects) for when in _WHEN]


def extras_in(objects: Objects) -> list[RecordField]:
    """Fields of `has_extras` that any object has, in order."""
    return [row for row in _EXTRAS if _is_in(row, objects)]


def _is_in(row: RecordField, objects: Objects) -> bool:
    if row.when is not None:
        return row.when(objects)
    if row.sparse:
        return bool(getattr(objects, row.sparse))
    return getattr(objects, row.optional) is not None

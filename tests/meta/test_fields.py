"""The table of fields: no format forgets a row."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.media.messages.event import EventFilter, EventObject, MessageEvent
from headrace.media.messages.payload import payloads
from headrace.media.sinks.table import ParquetSink
from headrace.meta import ClassifierMeta, FrameMeta, LabelInfo
from headrace.meta.analytics import FrameAnalytics, ObjectAnalytics
from headrace.meta.fields import EVENT_FORMS, FIELDS, TRACK, VIEW_FORMS
from headrace.meta.table import to_rows
from tests.media.conftest import MakeMeta, gray_frame
from tests.media.conftest import make_meta as make_meta  # a fixture

OTHER: dict[str, Any] = {
    "class_id": 2,
    "label": "bus",
    "confidence": 0.75,
    "box": (1.0, 2.0, 3.0, 5.0),
    "object_id": 9,
    "analytics": ObjectAnalytics(regions=("door",)),
    "attributes": (("color", "red"),),
}


def objects_of(obj: EventObject) -> Any:
    event = MessageEvent("frame", "cam", 0, 1, 2, (obj,))
    return json.loads(payloads(event, "headrace")[0])["objects"]


def test_messages_write_each_attribute_of_an_object() -> None:
    plain = EventObject(1, "car", 0.5, (1, 2, 3, 4))
    names = {f.name for f in fields(EventObject)}
    assert names == OTHER.keys() == EVENT_FORMS.keys()
    for name, value in OTHER.items():
        assert objects_of(replace(plain, **{name: value})) != objects_of(plain), name


def test_the_page_shows_each_value_of_an_object() -> None:
    page = (Path(headrace.__file__).parent / "live" / "page" / "app.js").read_text()
    assert [key for key in VIEW_FORMS if not re.search(rf"\bone\.{key}\b", page)] == []


def test_coco_writes_members_of_tracks_and_of_what_json_lines_have_beside_the_numbers() -> None:
    """`has_tracks` and `has_extras` are all that COCO's sink asks before it takes the short way."""
    assert [f.names for f in FIELDS if f.coco and f.json is None and f is not TRACK] == []


def test_a_table_in_a_file_has_the_columns_of_one_in_memory(
    make_meta: MakeMeta, tmp_path: Path
) -> None:
    meta: FrameMeta = make_meta(gray_frame(4), (1, 2, 30, 20, 0.9, 0), (5, 6, 10, 10, 0.7, 0))
    objects = meta.objects
    objects.object_ids[:] = [7, 8]
    objects.tracker_confidences = np.array([0.5, 0.25], np.float32)
    objects.angles = np.array([0.5, 0], np.float32)
    objects.parents[1] = 0
    objects.add_classifier(0, ClassifierMeta(2, (LabelInfo(0, 3, 0.75, "red"),), "red ", "color"))
    objects.analytics[1] = ObjectAnalytics(crossed=("gate",))
    sink = ParquetSink("t.parquet", tmp_path / "t.parquet")
    try:
        assert to_rows([sink._light(meta)]) == to_rows([meta])
    finally:
        sink.abort("only looked at")


@pytest.mark.parametrize("schema", ["headrace", "deepstream"])
def test_messages_carry_the_counts_of_the_frame(make_meta: MakeMeta, schema: str) -> None:
    meta: FrameMeta = make_meta(gray_frame(), (1, 2, 30, 20, 0.9, 0))
    plain = EventFilter(every=1).event(meta)
    meta.analytics = FrameAnalytics(inside={"OC": 1}, crossed_total={"Entry": 3, "Exit": 2})
    event = EventFilter(every=1).event(meta)
    assert event is not None
    assert plain is not None
    written, without = (json.loads(payloads(e, schema)[0]) for e in (event, plain))
    counts = {"inside": {"OC": 1}, "crossed_total": {"Entry": 3, "Exit": 2}}
    assert written.pop("analytics") == counts
    assert written.keys() == without.keys()

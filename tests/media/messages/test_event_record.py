"""Payloads of events that applications make, value by value as the original writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.media.messages.event_record import EventRecord, record_payloads

PERSON = {"gender": "male", "hair": "black", "cap": "none", "apparel": "formal", "age": 45}
FACE = {"gender": "f", "hair": "h", "cap": "c", "glasses": "g", "facialhair": "x", "name": "n",
        "eyecolor": "e", "age": 9}  # fmt: skip


def record(**values: Any) -> EventRecord:
    first = {"event_type": 0, "object_type": 1, "box": (1.0, 2.0, 1000000.0, 4.25), "frame": 7,
             "track": 5, "confidence": 0.5, "time": "t"}  # fmt: skip
    return EventRecord(**(first | values))


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ({"attributes": PERSON}, "5|1|2|1e+06|6.25|Person|#|male|45|black|none|formal|0.5"),
        ({}, "5|1|2|1e+06|6.25|Person|#||||||"),
        ({"object_type": 2, "attributes": FACE},
         "5|1|2|1e+06|6.25|Face|#|f|9|h|c|g|x|n||e|0.5"),
        ({"object_type": 4}, "5|1|2|1e+06|6.25|Bicycle"),
        ({"object_type": 0x102, "object_name": "fork"}, "5|1|2|1e+06|6.25|fork"),
        ({"object_type": 0x101}, "5|1|2|1e+06|6.25|Custom"),
        ({"object_type": 7, "attributes": PERSON},
         "5|1|2|1e+06|6.25|Unknown|#|male|45|black|none|formal|0.5"),
    ],
)  # fmt: skip
def test_rows_of_the_minimal_schema(values: dict[str, Any], row: str) -> None:
    (message,) = record_payloads([record(**values)], "minimal", {})
    assert json.loads(message)["objects"] == [row]


@pytest.mark.parametrize(
    ("event", "obj", "part"),
    [
        (0, 0, "aisle"),
        (1, 1, "entrance"),
        (2, 1, "aisle"),
        (4, 0, "parkingSpot"),
        (5, 0, "parkingSpot"),
    ],
)
def test_the_place_is_named_by_the_event(event: int, obj: int, part: str) -> None:
    config = {"place0": {"id": "1", "place-sub-field2": "lane1"}}
    made = [record(event_type=event, object_type=obj)]
    (message,) = record_payloads(made, "deepstream", config)
    place = json.loads(message)["place"]
    assert list(place) == ["id", "name", "type", "location", part]
    assert "lane1" in place[part].values()


def test_a_person_of_the_full_schema() -> None:
    bare, known = record_payloads([record(), record(attributes=PERSON)], "deepstream", {})
    assert json.loads(bare)["object"]["person"]["confidence"] == 1.0
    found = json.loads(known)
    names = ["age", "gender", "hair", "cap", "apparel", "confidence"]
    assert list(found["object"]["person"]) == names
    assert found["object"]["person"]["age"] == 45
    assert (found["place"], found["analyticsModule"]) == (None, None)


@given(st.integers(-5, 300), st.integers(-5, 300), st.text(max_size=9))
def test_any_numbers_give_json(event: int, obj: int, name: str) -> None:
    made = [record(event_type=event, object_type=obj, object_name=name)]
    for schema in ("deepstream", "minimal"):
        (message,) = record_payloads(made, schema, {})
        assert json.loads(message)["@timestamp"] == "t"

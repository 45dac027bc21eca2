"""Records that are kept as JSON: what is refused, and where the error says it is."""

from __future__ import annotations

import math
from typing import Annotated

import pytest
from msgspec import Meta

from headrace._core.json_record import JsonRecord, RecordError, Seconds


class Part(JsonRecord, frozen=True, kw_only=True):
    """A part."""

    name: Annotated[str, Meta(min_length=1)]
    time_s: Seconds | None = None


class Whole(JsonRecord, frozen=True, kw_only=True):
    """A record with records in it."""

    parts: tuple[Part, ...] = ()
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.sizes) > 2:
            raise ValueError("too many sizes")


def test_a_record_survives_json() -> None:
    whole = Whole(parts=(Part(name="ü", time_s=0.5),), sizes=(1, 2))
    assert whole.to_json() == '{"parts":[{"name":"ü","time_s":0.5}],"sizes":[1,2]}'.encode()
    assert Whole.from_json(whole.to_json()) == whole == whole.checked()
    assert whole.changed(sizes=()) == Whole(parts=whole.parts, sizes=())


@pytest.mark.parametrize(
    ("data", "place", "found"),
    [
        (b'{"parts":[{"name":""}],"sizes":[]}', "parts.0.name", "length >= 1"),
        (b'{"parts":[{"name":"a","new":1}],"sizes":[]}', "parts.0.new", "unknown field"),
        (b'{"sizes":[1,true]}', "sizes.1", "Expected `int`, got `bool`"),
        (b'{"sizes":["1"]}', "sizes.0", "Expected `int`, got `str`"),
        (b'{"parts":[{"name":"a","time_s":1e999}],"sizes":[]}', "parts.0.time_s", "range"),
        (b'{"sizes":[1,2,3]}', "", "too many sizes"),
        (b"{}", "", "missing required field `sizes`"),
        (b"[]", "", "Expected `object`, got `array`"),
        (b'{"sizes":', "", "truncated"),
        (b'{"parts":[{"name":"\xff"}],"sizes":[]}', "", "(?i)utf-8"),
    ],
)
def test_refused(data: bytes, place: str, found: str) -> None:
    with pytest.raises(RecordError, match=found) as caught:
        Whole.from_json(data)
    assert caught.value.place == place
    assert caught.value.unknown == ("unknown" in found)


def test_a_record_made_by_code_is_checked_on_demand() -> None:
    for part in (Part(name=""), Part(name="a", time_s=math.nan), Part(name="a", time_s=-1)):
        with pytest.raises(RecordError):
            part.checked()

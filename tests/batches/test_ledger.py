"""The ledger is whole whenever its writer is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.batches.ledger import Ledger, UnitRecord, last_records, read_ledger
from headrace.batches.units import BatchUnit, packed, unit_id, unpacked
from headrace.errors import HeadraceError
from headrace.media.sources.video_structure import VideoCut, VideoSpan


def record(name: str, outcome: Any = "done", **values: Any) -> UnitRecord:
    return UnitRecord(unit_id(name), name, outcome, **values)


SPANS = (
    VideoSpan(VideoCut(0, 0), VideoCut(10, 1000), 10),
    VideoSpan(VideoCut(10, 1000), None, 7),
)


@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.integers(0, 5000))
def test_a_ledger_cut_anywhere_keeps_every_whole_line(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], cut: int
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    ledger = Ledger(path)
    for name in names:
        ledger.append(record(name, error=name * 40))
    ledger.close()
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    kept = data[:cut].count(b"\n")
    again = Ledger(path)
    assert set(again.outcomes) == {bytes.fromhex(unit_id(n)) for n in names[:kept]}
    again.append(record("z"))
    again.close()
    assert [r.input for r in read_ledger(path)] == [*names[:kept], "z"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    for name in "abc":
        ledger.append(record(name))
    ledger.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"unit":"zz"}\n' + lines[2])
    with pytest.raises(HeadraceError, match=r"ledger.jsonl:2: this line is damaged"):
        Ledger(path)


def test_the_last_outcome_counts(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(record("a", "failed", error="x"))
    assert ledger.outcome(unit_id("a")) == "failed"
    ledger.append(record("a"))
    assert ledger.outcome(unit_id("a")) == "done"
    assert ledger.outcome(unit_id("b")) is None
    assert ledger.counts() == {"done": 1}


def test_spans_are_units_until_the_video_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    split = record("video", "split", sha256="ab", spans=tuple(packed(s) for s in SPANS))
    ledger.append(split)
    units = Ledger(path).spans_of("video")
    assert [u.span for u in units] == list(SPANS)
    assert [u.sha256 for u in units] == ["ab", "ab"]
    ledger.append(UnitRecord(units[0].id, "video", "done", first=0))
    ledger.append(record("video", "whole"))
    again = Ledger(path)
    assert again.spans_of("video") == []
    assert again.outcome(units[0].id) is None
    assert [r.outcome for r in last_records(path)] == ["whole"]


def test_spans_survive_their_packing() -> None:
    for span in SPANS:
        assert unpacked(packed(span)) == span
    assert (
        BatchUnit("video", SPANS[0]).id != BatchUnit("video", SPANS[1]).id != BatchUnit("video").id
    )


def test_a_removed_ledger_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(HeadraceError, match="the ledger cannot be kept: the file was removed"):
        ledger.append(record("a"))


@given(
    st.one_of(
        st.binary(max_size=200),
        st.fixed_dictionaries(
            {"unit": st.sampled_from(["0" * 16, "x", "00"]), "input": st.text(max_size=5)},
            optional={
                "outcome": st.sampled_from(["done", "split", "none"]),
                "spans": st.lists(st.lists(st.integers(), max_size=6), max_size=2),
                "files": st.just({"parquet": {"path": "../x", "size_bytes": 1, "sha256": ""}}),
                "first": st.one_of(st.none(), st.text(max_size=2), st.integers()),
            },
        ).map(lambda d: json.dumps(d).encode() + b"\n"),
    )
)
def test_any_bytes_are_a_ledger_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    path.write_bytes(data)
    try:
        ledger = Ledger(path)
    except HeadraceError:
        return
    ledger.append(record("a"))
    assert [r.input for r in last_records(path)][-1] == "a"

"""Candidates found on the GPU are those of the CPU, bit for bit; run by the stand-in driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core import _native
from headrace._core.gpu.cuda_tensors import CudaTensor
from headrace.infer.gpu import hits
from headrace.infer.gpu.hits import HitFinder
from headrace.infer.parsers.boxes import TableHits, room_for_hits, table_hits, to_float32
from headrace.infer.parsers.device_tables import DeviceTables

WILD = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, 1.0], np.float32)


def on_gpu(array: np.ndarray[Any, Any], finder: HitFinder) -> DeviceTables:
    return DeviceTables.of(CudaTensor.of(array), finder)


def bits(found: TableHits) -> list[bytes]:
    count = len(found.rows)
    parts = (found.planes[:, :count], found.rows, found.class_ids, found.scores, found.starts)
    return [np.ascontiguousarray(part).tobytes() for part in parts]


@given(
    seed=st.integers(0, 2**32 - 1),
    items=st.integers(1, 3),
    count=st.integers(0, 40),
    classes=st.integers(0, 5),
    objectness=st.booleans(),
    columns=st.booleans(),
    half=st.booleans(),
    wild=st.booleans(),
)
def test_hits_are_those_of_the_cpu(
    driver: ctypes.CDLL, seed: int, items: int, count: int, classes: int, **kind: bool
) -> None:
    rng = np.random.default_rng(seed)
    width = 4 + kind["objectness"] + classes
    tables = rng.random((items, count, width), np.float32)
    if kind["wild"]:
        some = rng.random(tables.shape) < 0.3
        tables[some] = rng.choice(WILD, int(some.sum()))
    limits = rng.choice(np.array([-1, 0, 0.3, 0.5, np.nan], np.float32), rng.integers(0, 7))
    if kind["half"]:
        tables = tables.astype(np.float16)
    finder = HitFinder()
    there, host = on_gpu(tables, finder), to_float32(tables)
    if kind["columns"]:
        there = on_gpu(np.ascontiguousarray(tables.transpose(0, 2, 1)), finder).transpose(0, 2, 1)
    expected = bits(table_hits(host, limits, objectness=kind["objectness"]))
    for _ in range(2):  # memory is used again
        assert bits(table_hits(there, limits, objectness=kind["objectness"])) == expected


def test_more_hits_than_the_first_copy_holds(
    driver: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hits, "_FIRST", 3)
    tables = np.random.default_rng(1).random((4, 50, 7), np.float32)
    limits = np.full(3, 0.1, np.float32)
    found = table_hits(on_gpu(tables, HitFinder()), limits, objectness=False)
    assert len(found.rows) > 100
    assert bits(found) == bits(table_hits(tables, limits, objectness=False))


def test_items_are_copied_and_cut_but_never_out_of_place(driver: ctypes.CDLL) -> None:
    array = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    tables = on_gpu(array, HitFinder())
    assert np.array_equal(tables[1], array[1])
    assert np.array_equal(tables[-1], array[1])
    assert np.array_equal(tables.numpy(), array)
    assert np.array_equal(CudaTensor.of(array.T).numpy(), array.T)
    assert np.array_equal(tables.rows(1).numpy(), array[:1])
    assert np.array_equal(tables.reshape([2, 15])[1], array[1].ravel())
    assert (tables.ndim, len(tables), tables.transpose(0, 2, 1).shape) == (3, 2, (2, 5, 3))
    with pytest.raises(IndexError, match="item 2 of 2"):
        tables[2]
    with pytest.raises(ValueError, match="transposed"):
        tables.transpose(0, 2, 1)[0]


@given(
    seed=st.integers(0, 2**32 - 1),
    items=st.integers(1, 4),
    candidates=st.sampled_from([1, 63, 64, 65, 700]),
    part=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_hits_in_any_order_are_put_in_order(
    seed: int, items: int, candidates: int, part: float
) -> None:
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(rng.random(items * candidates) < part)
    found = np.zeros(len(places), hits._HIT)
    found["place"], found["class_id"] = places, rng.integers(0, 80, len(places))
    found["score"], found["box"] = rng.random(len(places)), rng.random((len(places), 4))
    mixed = rng.permutation(found).view(np.uint8).reshape(-1, hits._HIT.itemsize)
    planes, rows, class_ids, scores = room_for_hits(len(places) + 3)
    starts = np.empty(items + 1, np.int32)
    _native.ordered_hits(mixed, candidates, planes, rows, class_ids, scores, starts)
    count = len(places)
    assert np.array_equal(rows[:count], places % candidates)
    assert np.array_equal(class_ids[:count], found["class_id"])
    assert np.array_equal(scores[:count], found["score"])
    assert np.array_equal(planes[:, :count], found["box"].T)
    assert starts.tolist() == [int((places < k * candidates).sum()) for k in range(items + 1)]


def test_places_and_room_of_hits_are_checked() -> None:
    found = np.zeros((2, hits._HIT.itemsize), np.uint8)
    found[1, 0] = 20  # the place of the second
    columns = np.empty((4, 2), np.float32), np.empty(2, np.int32), np.empty(2, np.int32)
    starts = np.empty(3, np.int32)
    with pytest.raises(ValueError, match="a place beyond the last candidate"):
        _native.ordered_hits(found, 10, *columns, np.empty(2, np.float32), starts)
    with pytest.raises(ValueError, match="no room for all of them"):
        _native.ordered_hits(found, 11, *columns, np.empty(1, np.float32), starts)
    with pytest.raises(ValueError, match="no room for all of them"):
        _native.ordered_hits(found, 0, *columns, np.empty(2, np.float32), np.empty(0, np.int32))

"""Memory shared with a worker: whatever offset the worker names, nothing outside is touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.custom.guard.ipc import (
    ProtocolError,
    SharedRegion,
    Writer,
    _read_detections,
    _write_detections,
    arrays_in,
    new_memory,
)
from headrace.meta import Detections

SIZE = 4096


@given(start=st.integers(-8, SIZE + 8), count=st.integers(0, SIZE + 8), item=st.sampled_from("BIQ"))
def test_views_lie_within_the_region_or_are_refused(start: int, count: int, item: str) -> None:
    region = SharedRegion(new_memory("test", SIZE))
    kind = np.dtype(item)
    fits = start >= 0 and start + count * kind.itemsize <= SIZE
    if fits:
        view = region.view(start, kind, (count,))
        assert view.shape == (count,)
        assert view.dtype == kind
    else:
        with pytest.raises(ProtocolError):
            region.view(start, kind, (count,))


@pytest.mark.parametrize(("start", "count"), [(1, SIZE), (SIZE, 1), (SIZE - 3, 4), (-1, 1)])
def test_bytes_past_the_end_are_refused(start: int, count: int) -> None:
    region = SharedRegion(new_memory("test", SIZE))
    with pytest.raises(ProtocolError):
        region.take(start, count)


@pytest.mark.parametrize(
    "entry",
    [["<f4", [1e300], 0], ["<f4", [float("inf")], 0], ["<f4", [True], 0], ["<f4", "1", 0],
     ["<f4", [1], None], ["<f4", [1]], 7, ["<f4", [1] * 99, 0], ["<f4", [2**99], 0]],
)  # fmt: skip
def test_arrays_that_are_none_are_refused(entry: object) -> None:
    region = SharedRegion(new_memory("test", SIZE))
    with pytest.raises(ProtocolError):
        arrays_in([entry], region)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_keypoints_come_back_with_masks_and_angles(masked: bool, turned: bool) -> None:
    rng = np.random.default_rng(0)
    result = Detections(
        rng.random((3, 4)),
        rng.random(3),
        [0, 1, 2],
        masks=[rng.random((2, 3)), np.empty((0, 0)), rng.random((1, 4))] if masked else None,
        angles=rng.random(3) if turned else None,
        keypoints=rng.random((3, 5, 3)),
    )
    region = SharedRegion(new_memory("test", SIZE))
    back = _read_detections(_write_detections(result, Writer(region)), region).detections
    np.testing.assert_array_equal(back.keypoints, result.keypoints)
    assert (back.masks is None, back.angles is None) == (not masked, not turned)
    for ours, theirs in zip(back.masks or (), result.masks or (), strict=True):
        np.testing.assert_array_equal(ours, theirs)

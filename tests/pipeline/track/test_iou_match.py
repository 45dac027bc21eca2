"""The native matching against the plainest way to write it down."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core import _native
from tests.pipeline.track.scenes import iou
from tests.profiles import examples


@st.composite
def crowd(draw: st.DrawFn) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Boxes on a coarse grid, so that equal overlaps are common, in up to three groups."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 12), st.integers(0, 12), st.integers(1, 6), st.integers(1, 6),
                st.integers(0, 2),
            ),
            max_size=12,
        )
    )  # fmt: skip
    table = np.array(rows, np.float64).reshape(-1, 5)
    corners = np.concatenate((table[:, :2], table[:, :2] + table[:, 2:4]), axis=1)
    return corners, table[:, 4].astype(np.int64)


def overlaps(
    a: npt.NDArray[np.float64],
    a_groups: npt.NDArray[np.int64],
    b: npt.NDArray[np.float64],
    b_groups: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    sizes = [np.concatenate((c[:, :2], c[:, 2:] - c[:, :2]), axis=1) for c in (a, b)]
    return np.where(a_groups[:, None] == b_groups[None], iou(*sizes), 0.0)


@settings(max_examples=examples(150))
@given(crowd(), crowd(), st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.integers(0, 2**12 - 1))
def test_pairs_are_taken_by_rank_then_overlap_then_order(
    tracks: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    found: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    min_iou: float,
    bits: int,
) -> None:
    ranks = np.array([bits >> i & 1 for i in range(len(tracks[0]))], np.int32)
    table = overlaps(*tracks, *found)
    expected = [-1] * len(found[0])
    pairs = sorted((ranks[t], -table[t, f], t, f) for t, f in np.ndindex(table.shape))
    for _, negative, t, f in pairs:
        if 0 < -negative >= min_iou and expected[f] < 0 and t not in expected:
            expected[f] = t
    got = _native.match_boxes(tracks[0], tracks[1], ranks, found[0], found[1], min_iou)
    assert got.tolist() == expected


def test_the_greater_overlap_wins_whatever_comes_first() -> None:
    track, group = np.array([[0.0, 0, 10, 10]]), np.zeros(2, np.int64)
    found = np.array([[5.0, 0, 15, 10], [1.0, 0, 11, 10]])
    for boxes, expected in ((found, [-1, 0]), (found[::-1].copy(), [0, -1])):
        got = _native.match_boxes(track, group[:1], np.zeros(1, np.int32), boxes, group, 0.1)
        assert got.tolist() == expected


@settings(max_examples=examples(50))
@given(crowd(), crowd())
def test_best_overlap_is_the_greatest(
    found: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    others: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
) -> None:
    expected = overlaps(*found, *others).max(axis=1, initial=0.0)
    assert np.array_equal(_native.best_overlap(*found, *others), expected)

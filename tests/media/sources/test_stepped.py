"""Every n-th frame of a source, and sources that start over."""

from __future__ import annotations

from itertools import islice

import numpy as np

from noria.media import ArraySource
from noria.media.sources.base import SteppedSource

PICTURE = np.zeros((4, 6, 3), np.uint8)


def five() -> ArraySource:
    return ArraySource([PICTURE] * 5, fps=10)


def test_one_of_two_frames_at_half_the_rate() -> None:
    source = SteppedSource(five(), step=2)
    assert (source.fps, source.frames) == (5, 3)
    found = [(f.frame, f.pts_ns) for f in source]
    assert found == [(0, 0), (1, 200_000_000), (2, 400_000_000)]


def test_times_go_on_from_round_to_round() -> None:
    source = SteppedSource(five(), reopen=five, step=2)
    assert source.frames is None
    times = [f.pts_ns for f in islice(source, 7)]
    source.close()
    assert times == [200_000_000 * i for i in range(7)]

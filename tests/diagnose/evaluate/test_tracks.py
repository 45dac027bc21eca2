"""Scores of tracks: known results, and the files that hold tracks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headrace.diagnose.evaluate.tracks import Tracks, read_tracks, score_tracks
from headrace.errors import ConfigError
from tests.pipeline.track.scenes import needs_library

pytestmark = needs_library


def walk(ids: list[int], frames: int = 20, *, swap: int | None = None) -> Tracks:
    """Objects that go side by side; from frame `swap` on, the first two have each other's id."""
    tracks = {}
    for t in range(1, frames + 1):
        named = np.array(ids, np.int64)
        if swap is not None and t >= swap:
            named[:2] = named[1::-1]
        boxes = [[10 * t, 100 * i, 40, 80] for i in range(len(ids))]
        tracks[t] = (named, np.array(boxes, np.float64))
    return tracks


def test_perfect_tracks() -> None:
    scores = score_tracks(walk([1, 2, 3]), walk([7, 9, 8]))
    assert (scores.hota, scores.idf1, scores.mota) == pytest.approx((1, 1, 1))
    assert (scores.switches, scores.frames, scores.objects) == (0, 20, 60)


def test_a_swap_costs_association_alone() -> None:
    scores = score_tracks(walk([1, 2]), walk([1, 2], swap=11))
    assert scores.deta == pytest.approx(1)
    assert scores.switches == 2
    assert scores.mota == pytest.approx(1 - 2 / 40)
    assert scores.idf1 == pytest.approx(0.5)
    # of each detection, 10 of the 30 that share its true or given id share both
    assert scores.hota == pytest.approx(np.sqrt(1 / 3))


def test_missed_and_false_objects() -> None:
    truth = walk([1, 2])
    half = {t: found for t, found in walk([1, 2]).items() if t <= 10}
    assert score_tracks(truth, half).deta == pytest.approx(0.5)
    assert score_tracks(truth, half).mota == pytest.approx(0.5)
    assert score_tracks(half, truth).mota == pytest.approx(0)


def test_files_of_motchallenge_and_of_headrace(tmp_path: Path) -> None:
    mot, ours = tmp_path / "gt.txt", tmp_path / "out.jsonl"
    mot.write_text("1,5,10,20,30,40,1,-1,-1,-1\n2,5,11,20,30,40,1,1,1\n2,6,0,0,5,5,0,1,1\n")
    place = {"left": 10, "top": 20, "width": 30, "height": 40}
    lines = [
        {"frame": 0, "objects": [{"object_id": 5, **place}, place]},
        {"frame": 1, "objects": [{"object_id": 5, **place, "left": 11}]},
    ]
    ours.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = score_tracks(read_tracks(mot), read_tracks(ours))
    assert (scores.hota, scores.objects) == (pytest.approx(1), 2)


@pytest.mark.parametrize("line", ["1,2,3", "1,2,3,4,5,x", "1,2,3,4,nan,6", "{}", "a"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    for name in ("gt.txt", "gt.jsonl"):
        path = tmp_path / name
        path.write_text(f"\n{line}\n")
        with pytest.raises(ConfigError) as caught:
            read_tracks(path)
        assert f"{path}:2: " in str(caught.value)

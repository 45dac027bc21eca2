"""Scores of tracks against those of trackeval, the reference code of HOTA; skipped without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.diagnose.evaluate.tracks import Tracks, score_tracks

trackeval = pytest.importorskip("trackeval")
pytest.importorskip("trackers")


def tracks(rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Truth, and what a poor tracker makes of it: misses, ghosts, noise and swapped ids."""
    truth, result, names = {}, {}, rng.permutation(8)
    place, speed = rng.uniform(0, 400, (8, 2)), rng.normal(0, 3, (8, 2))
    for frame in range(1, 61):
        place = place + speed
        boxes = np.concatenate((place, np.full((8, 2), 50.0)), axis=1)
        truth[frame] = (np.arange(8, dtype=np.int64) + 3, boxes)
        if rng.random() < 0.2:
            names = rng.permutation(8)
        kept = rng.random(8) < 0.8
        noisy = boxes[kept] + rng.normal(0, 6, (int(kept.sum()), 4))
        ghosts = rng.uniform(0, 400, (int(rng.integers(0, 3)), 4))
        ids = np.concatenate((names[kept], np.arange(len(ghosts)) + 20)).astype(np.int64)
        result[frame] = (ids, np.concatenate((noisy, np.abs(ghosts))))
    return truth, result


def overlaps(a: Any, b: Any) -> Any:
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    both = np.clip(high - low, 0, None).prod(axis=2)
    return both / (a[:, 2:].prod(axis=1)[:, None] + b[:, 2:].prod(axis=1)[None] - both)


def reference(truth: Tracks, result: Tracks) -> dict[str, float]:
    """HOTA, DetA, AssA, IDF1, MOTA and switches by trackeval."""
    frames = sorted(truth)

    def numbered(rows: Tracks) -> tuple[list[Any], int]:
        every = np.unique(np.concatenate([rows[f][0] for f in frames]))
        return [np.searchsorted(every, rows[f][0]) for f in frames], len(every)

    true, true_count = numbered(truth)
    ours, our_count = numbered(result)
    data = {
        "num_timesteps": len(frames), "gt_ids": true, "tracker_ids": ours,
        "similarity_scores": [overlaps(truth[f][1], result[f][1]) for f in frames],
        "num_gt_dets": sum(map(len, true)), "num_tracker_dets": sum(map(len, ours)),
        "num_gt_ids": true_count, "num_tracker_ids": our_count,
    }  # fmt: skip
    hota = trackeval.metrics.HOTA().eval_sequence(data)
    clear = trackeval.metrics.CLEAR({"PRINT_CONFIG": False}).eval_sequence(data)
    identity = trackeval.metrics.Identity({"PRINT_CONFIG": False}).eval_sequence(data)
    return {
        "hota": float(np.mean(hota["HOTA"])), "deta": float(np.mean(hota["DetA"])),
        "assa": float(np.mean(hota["AssA"])), "idf1": float(identity["IDF1"]),
        "mota": float(clear["MOTA"]), "switches": float(clear["IDSW"]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_reference(seed: int) -> None:
    truth, result = tracks(np.random.default_rng(seed))
    wanted = reference(truth, result)
    scores = score_tracks(truth, result).to_dict()
    assert {name: scores[name] for name in wanted} == pytest.approx(wanted, abs=1e-6)

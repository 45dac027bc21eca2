"""The tracks of the native core against the same rules, written down one track at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace._core import _native
from headrace.meta import Detections, Objects, Space
from headrace.pipeline.track.iou import IouFollower, IouSettings
from headrace.pipeline.track.selection import Found, Selection
from headrace.pipeline.track.tracker import TrackIds, predict
from tests.pipeline.track.scenes import HEIGHT, IMAGE, WIDTH
from tests.profiles import examples


class Plain:
    """Tracks as dictionaries, oldest first."""

    def __init__(self, **rules: Any) -> None:
        self.rules, self.tracks, self.next = IouSettings(**rules), [], 1

    def step(self, found: Found, elapsed: int) -> tuple[list[int], list[list[float]]]:
        s, tracks = self.rules, self.tracks
        boxes = []
        for t in tracks:
            t["since"] += elapsed
            rigid = np.array([t["missed"] > 0])
            boxes.append(predict(t["box"][None], t["velocity"][None], t["since"], rigid)[0])
            t["missed"] += 1
        rows = [i for i in range(len(found)) if found.scores[i] >= np.float32(s.min_confidence)]
        matched = _native.match_boxes(
            np.array(boxes).reshape(-1, 4),
            np.array([t["group"] for t in tracks], np.int64),
            np.array([t["id"] == 0 for t in tracks], np.int32),
            found.corners[rows],
            found.groups[rows],
            s.min_iou,
        )
        track_of: dict[int, dict[str, Any]] = {}
        for row, k in zip(rows, matched.tolist(), strict=True):
            if k >= 0:
                t, box = tracks[k], found.corners[row]
                gain = 1.0 if t["hits"] == 1 else s.velocity_gain
                if s.velocity_gain:
                    moved = (box - t["box"]) / t["since"]
                    t["velocity"] = t["velocity"] + gain * (moved - t["velocity"])
                t |= {"box": box, "hits": t["hits"] + 1, "missed": 0, "since": 0}
                boxes[k], track_of[row] = box, t
        free = [r for r in rows if r not in track_of]
        free = [r for r in free if found.scores[r] >= np.float32(s.min_new_confidence)]
        if tracks and s.max_new_iou < 1:
            groups = np.array([t["group"] for t in tracks], np.int64)
            overlaps = _native.best_overlap(
                found.corners[free], found.groups[free], np.array(boxes), groups
            )
            free = [r for r, o in zip(free, overlaps.tolist(), strict=True) if o <= s.max_new_iou]
        if s.max_tracks:
            room = max(0, s.max_tracks - len(tracks))
            free = sorted(sorted(free, key=lambda r: -found.scores[r])[:room])
        for r in free:
            track_of[r] = {"box": found.corners[r], "velocity": np.zeros(4), "id": 0, "hits": 1}
            track_of[r] |= {"since": 0, "missed": 0, "group": found.groups[r]}
            tracks.append(track_of[r])
        for t in tracks:
            if not t["id"] and t["hits"] >= s.min_hits:
                t["id"], self.next = self.next, self.next + 1
        ids = [track_of[i]["id"] if i in track_of else 0 for i in range(len(found))]
        speeds = [
            track_of[i]["velocity"].tolist() if i in track_of else [0.0] * 4
            for i in range(len(found))
        ]
        self.forget()
        return ids, speeds

    def pass_over(self, elapsed: int) -> None:
        for t in self.tracks:
            t["since"] += elapsed
            t["missed"] += t["missed"] > 0
        self.forget()

    def forget(self) -> None:
        s = self.rules
        self.tracks = [
            t
            for t in self.tracks
            if t["missed"] <= (s.max_age if t["id"] else s.max_probation_misses)
        ]


RULES = st.fixed_dictionaries(
    {
        "min_iou": st.sampled_from([0.0, 0.2, 0.5]),
        "min_hits": st.integers(1, 3),
        "max_age": st.integers(0, 5),
        "max_probation_misses": st.integers(0, 2),
        "min_confidence": st.sampled_from([-1.0, 0.3]),
        "min_new_confidence": st.sampled_from([-1.0, 0.5]),
        "max_new_iou": st.sampled_from([0.4, 0.7, 1.0]),
        "max_tracks": st.sampled_from([0, 0, 5]),
        "velocity_gain": st.sampled_from([0.0, 0.4, 1.0]),
    }
)


@settings(max_examples=examples(150))
@given(rules=RULES, seed=st.integers(0, 2**32))
def test_tracks_are_those_of_the_plain_rules(rules, seed):
    rng = np.random.default_rng(seed)
    ours, plain = IouFollower(IouSettings(**rules), TrackIds()), Plain(**rules)
    select = Selection()
    place, size = rng.uniform(0, 300, (9, 2)), rng.uniform(5, 90, (9, 2))
    speed, groups = rng.normal(0, 6, (9, 2)), rng.integers(0, 2, 9)
    for frame in range(15):
        seen = np.flatnonzero(rng.random(9) < 0.8)
        elapsed = int(rng.integers(1, 4))
        if rng.random() < 0.2:
            ours.pass_over(elapsed, IMAGE, (WIDTH, HEIGHT))
            plain.pass_over(elapsed)
            continue
        start = (place + speed * frame + rng.normal(0, 2, (9, 2)))[seen]
        rects = np.concatenate([start, size[seen]], axis=1).astype(np.float32)
        scores = rng.random(len(seen)).round(1).astype(np.float32)
        scores[rng.random(len(seen)) < 0.05] = np.nan
        objects = Objects()
        found_there = Detections(rects, scores, groups[seen].astype(np.int32), space=Space.FRAME)
        objects.append(found_there, component_id=1)
        found = select(objects)
        ids, velocities = plain.step(found, elapsed)
        assert ours.step(found, elapsed, IMAGE, (WIDTH, HEIGHT)).tolist() == ids
        assert ours.velocities().tolist() == velocities

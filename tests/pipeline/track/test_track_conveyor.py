"""Trackers on the demo scene's exact truth, as a fair detector would see it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace import Inferencer, Pipeline, open_source
from headrace.meta import UNTRACKED_OBJECT_ID, FrameMeta
from headrace.pipeline.track import open_tracker
from tests.copies import copied_example
from tests.pipeline.track.scenes import (
    ALL,
    IMAGE,
    Score,
    Truth,
    detections,
    meta,
    score,
    video,
)
from tests.profiles import slow

FRAMES = 130


def run(
    spec: str, *, missed: float = 0.05, jitter: float = 1.0, interval: int = 0, start: int = 0
) -> tuple[Score, list[FrameMeta]]:
    """Track the video; with `interval` the model runs on every (interval + 1)th frame only."""
    rng, tracker, metas = np.random.default_rng(1), open_tracker(spec), []
    truths = video()[start : start + FRAMES]
    for number, truth in enumerate(truths):
        inferred = number % (interval + 1) == 0
        seen = detections(truth, rng, missed=missed, jitter=jitter) if inferred else Truth()
        metas.append(meta(number, seen.boxes, classes=seen.classes, inferred=inferred))
        tracker.update(IMAGE, metas[-1])
    return score(truths, metas), metas


@pytest.mark.parametrize("spec", ALL)
def test_parcels_keep_their_ids(spec: str) -> None:
    result, _ = run(spec)
    assert result.switches <= 1
    # what is missing is mostly what was not detected or is on probation
    assert result.idf1 > 0.9
    assert result.mota > 0.82


@pytest.mark.slow
@pytest.mark.parametrize("spec", ALL)
def test_parcels_keep_their_ids_when_the_detector_is_bad(spec: str) -> None:
    result, _ = run(spec, missed=0.25, jitter=2.5)
    assert result.switches <= 6


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("interval", [slow(1), 4])
def test_frames_between_inferences_are_filled(spec: str, interval: int) -> None:
    result, metas = run(spec, missed=0.0, interval=interval)
    assert result.switches <= 1
    assert result.mota > 0.75
    assert all(len(m.objects) for m in metas[10:])


def test_a_perfect_detector_gives_perfect_tracks_but_for_probation() -> None:
    result, metas = run("iou:min_hits=1", missed=0.0, jitter=0.0)
    assert result == Score(1.0, 1.0, 0)
    found = {i for m in metas for i in m.objects.object_ids.tolist()}
    assert found == set(range(1, len({p for t in video()[:FRAMES] for p in t.parcels}) + 1))


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.slow
def test_sources_do_not_disturb_each_other(spec: str) -> None:
    """Two videos at once give each the tracks it has alone, with ids of its own."""
    alone = [run(spec, start=start)[1] for start in (0, 40)]
    tracker, together = open_tracker(spec), ([], [])
    for number in range(FRAMES):
        for source in (0, 1):
            o = alone[source][number].objects
            m = meta(number, o.rects, classes=o.class_ids, scores=o.confidences, source_id=source)
            tracker.update(IMAGE, m)
            together[source].append(m)
    names = [_renamed(metas) for metas in together]
    assert [_renamed(metas) for metas in alone] == names
    used = [{i for m in metas for i in m.objects.object_ids.tolist()} for metas in together]
    assert used[0] & used[1] <= {UNTRACKED_OBJECT_ID}


@pytest.mark.slow
def test_the_demos_own_detector_and_a_tracker_follow_the_parcels(tmp_path: Path) -> None:
    """From the video's pixels, inferring on every third frame."""
    folder = tmp_path / "conveyor"
    copied_example("conveyor", folder)
    config = folder / "config_infer_primary.txt"
    config.write_text(config.read_text().replace("interval=0", "interval=2"))
    detector, source = Inferencer.from_config(config), open_source(str(folder / "conveyor.mp4"))
    pipeline = Pipeline(source, [detector, open_tracker("iou:match_classes=no")], limit=FRAMES)
    metas = [m for _, m in pipeline]
    detector.close()
    assert [m.inferred for m in metas] == [n % 3 == 0 for n in range(FRAMES)]
    result = score(video()[:FRAMES], metas)
    assert result.switches <= 1
    assert result.mota > 0.9
    assert result.idf1 > 0.94


def _renamed(metas: list[FrameMeta]) -> list[list[int]]:
    """Ids as numbers in the order of their appearance."""
    names: dict[int, int] = {UNTRACKED_OBJECT_ID: -1}
    return [[names.setdefault(i, len(names)) for i in m.objects.object_ids.tolist()] for m in metas]

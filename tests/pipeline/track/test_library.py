"""What is particular about the trackers of the library."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from headrace.errors import ConfigError
from headrace.pipeline.track import open_tracker, tracker_settings
from headrace.pipeline.track.library import LibraryFollower, library_tracker
from headrace.pipeline.track.selection import Selection
from headrace.pipeline.track.tracker import TrackIds
from tests.pipeline.track.scenes import HEIGHT, IMAGE, LIBRARY, WIDTH, meta, needs_library, track

BOX = [100, 100, 50, 50]


@pytest.mark.parametrize("name", LIBRARY)
def test_settings_are_those_of_the_library(name: str) -> None:
    settings = {s.name: s.default for s in tracker_settings(name)}
    assert settings["lost_track_buffer"] == 30
    assert settings["fill_gaps"] is True
    assert not {"iou", "state_estimator_class"} & set(settings)  # no numbers
    tracker = open_tracker(f"{name}:minimum_consecutive_frames=5,lost_track_buffer=3")
    assert track(tracker, [meta(i, [BOX]) for i in range(20)])[-1] == [1]


@needs_library
def test_the_librarys_own_checks_are_told() -> None:
    with pytest.raises(ConfigError, match=r"refuses its settings: .*lost_track_buffer"):
        open_tracker("sort:lost_track_buffer=-1")
    with pytest.raises(ConfigError, match="did you mean minimum_iou_threshold"):
        open_tracker("bytetrack:minimum_iou_treshold=0.2")


@pytest.mark.parametrize("name", LIBRARY)
def test_classes_are_kept_apart_unless_told_otherwise(name: str) -> None:
    classes = [0] * 6 + [1] * 6
    for spec, last in ((name, 2), (f"{name}:match_classes=no", 1)):
        metas = [meta(i, [BOX], classes=[c]) for i, c in enumerate(classes)]
        assert track(open_tracker(spec), metas)[-1] == [last]


@pytest.mark.slow
@needs_library
def test_ids_of_dead_tracks_are_forgotten() -> None:
    ids, select = TrackIds(), Selection()
    follower = LibraryFollower(library_tracker("sort"), {"lost_track_buffer": 1}, ids)
    for i in range(1200):
        far = [(i // 4) * 37 % 500, 100 * (i // 4 % 3), 30, 30]
        follower.step(select(meta(i, [far]).objects), 1, IMAGE, (WIDTH, HEIGHT))
    assert ids.take(1)[0] > 140
    (group,) = follower._groups.values()
    assert len(group.ids) < 110
    assert len(follower._seen_ids) < 110


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "trackers":
            raise ModuleNotFoundError("No module named 'trackers'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as caught:
        open_tracker("bytetrack")
    assert "pip install 'trackers>=" in str(caught.value)
    assert "iou" in str(caught.value)
    assert track(open_tracker("iou"), [meta(0, [BOX])]) == [[None]]


@pytest.mark.slow
def test_the_library_is_imported_only_when_it_is_asked_for() -> None:
    code = (
        "import sys; from headrace.pipeline.track import open_tracker; open_tracker('iou');"
        "sys.exit(any(m in sys.modules for m in ('trackers', 'supervision', 'scipy', 'cv2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_library
def test_a_weak_detection_continues_a_track_of_bytetrack() -> None:
    scores = [0.9] * 4 + [0.2] * 4
    metas = [meta(i, [BOX], scores=[s]) for i, s in enumerate(scores)]
    assert track(open_tracker("bytetrack"), metas)[-1] == [1]
    weak = [meta(i, [BOX], scores=[0.2]) for i in range(8)]
    assert track(open_tracker("bytetrack"), weak) == [[None]] * 8
    assert np.isfinite(metas[-1].objects.rects).all()

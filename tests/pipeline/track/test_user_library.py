"""The tracker `nvmot`: a low-level tracker library of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core.errors import ConfigError, CustomLibraryError
from headrace.custom.nvmot.records import MISC_KINDS
from headrace.media import Frame, PixelFormat
from headrace.meta.masks import object_mask
from headrace.pipeline.track import Tracker, open_tracker
from tests.custom.nvmot.built import SOME, library
from tests.pipeline.track.scenes import HEIGHT, WIDTH, ids, meta
from tests.profiles import slow

Open = Callable[..., Any]
A, B = (100.0, 100.0, 40.0, 80.0), (300.0, 100.0, 40.0, 80.0)
IMAGE = Frame.from_array(np.full((HEIGHT, WIDTH, 3), 200, np.uint8), PixelFormat.RGB)


@pytest.fixture
def opened(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """`opened(words, compiled, **settings)`: the tracker of tests with words of its file."""
    trackers: list[Tracker] = []

    def open_it(words: str = "", compiled: str = "9.1", **settings: Any) -> Any:
        config = tmp_path / "words.txt"
        config.write_text(words)
        settings = {"generation": compiled, "config": str(config)} | settings
        path = library(tmp_path_factory, compiled)
        trackers.append(open_tracker("nvmot", library=str(path), **settings))
        return trackers[-1]

    yield open_it
    for tracker in trackers:
        tracker.close()


def play(tracker: Any, numbers: range, *boxes: Any, source_id: int = 0) -> list[Any]:
    """The ids of frames in which the boxes move by a pixel."""
    got = []
    for i in numbers:
        m = meta(i, [(x + i, *rest) for x, *rest in boxes], source_id=source_id)
        tracker.update(IMAGE, m)
        got.append(ids(m))
    return got


@pytest.mark.parametrize("generation", SOME)
@pytest.mark.sampled
def test_a_library_of_each_generation(opened: Open, generation: str) -> None:
    tracker = opened("image 19 past 1 reid 4 shadow 1", generation, reid_output=True)
    assert play(tracker, range(3), A, B) == [[1, 2]] * 3
    m = meta(3, [(103, *A[1:])])
    tracker.update(IMAGE, m)
    assert ids(m) == [1]
    assert m.objects.rects[0] == pytest.approx([103, *A[1:]], abs=0.01)
    # the byte of the image in the middle of the box
    assert m.objects.tracker_confidences == pytest.approx([200 / 255], abs=0.01)
    records = tracker.records[0]
    if generation >= "6.3":
        assert m.objects.reids[0].tolist() == [0] * 4
    if generation >= "6.4":
        assert records.record_ids.tolist() == [2]  # in the shadow
        assert int(records.records[0, 0]) == list(MISC_KINDS).index("shadow")


@pytest.mark.parametrize("generation", SOME)
def test_past_frames_come_in_pixels_of_the_frame(opened: Open, generation: str) -> None:
    tracker = opened("past 1", generation)
    play(tracker, range(2), A, B)
    records = tracker.records[0]
    assert records.record_ids.tolist() == [1, 2]
    kind, class_id, number, *box = records.records[0].tolist()[:7]
    assert (kind, class_id, number) == (0, 0, 0)
    assert box == pytest.approx([101, *A[1:]], abs=0.01)


@pytest.mark.parametrize("generation", ["5.0", slow("6.4"), slow("8.0"), "9.1"])
def test_masks_and_places_in_space(opened: Open, generation: str) -> None:
    tracker = opened("visible 1 foot 1 hull 3 mask 1", generation)
    m = meta(0, [A, B])
    m.objects.mask_thresholds[int(m.objects.component_ids[0])] = 0.4
    tracker.update(IMAGE, m)
    assert ids(m) == [1, 2]
    if generation < "6.4":
        assert (m.objects.user, m.objects.masks) == ({}, None)
        return
    x, y, width, height = A
    place = m.objects[0].user[0]
    assert place.visibility == pytest.approx(0.75)
    assert place.foot == pytest.approx([x + width / 2, y + height], abs=0.01)
    assert place.world_foot.tolist() == [3, 4]  # not scaled: metres, or what the camera model has
    corners = [(x, y), (x + width, y), (x + width, y + height)]
    assert np.abs(place.hull - np.array(corners)).max() <= 2  # whole pixels of the library
    if generation < "8.0":
        assert (place.box_3d, m.objects.masks) == (None, None)
        return
    assert place.box_3d.tolist() == [5, *[0] * 10, 6]
    assert place.corners[7] == pytest.approx([x + width, y + height], abs=0.01)
    shown = object_mask(m.objects, 1, WIDTH, HEIGHT)
    assert shown is not None
    assert (shown.left, shown.top) == (B[0], B[1])
    assert shown.pixels[0, -1]
    assert not shown.pixels[:, : int(B[2]) // 2].any()  # the last of four columns
    assert not shown.pixels[int(B[3]) * 3 // 4 :].any()  # the first of two rows


def test_what_nobody_asked_for_is_not_there(opened: Open) -> None:
    tracker = opened()
    m = meta(0, [A])
    tracker.update(IMAGE, m)
    assert (m.objects.user, m.objects.masks) == ({}, None)


def test_a_mask_larger_than_its_memory_is_left_out(opened: Open) -> None:
    tracker = opened("mask 1 hull 3 odd 1")
    assert play(tracker, range(3), A) == [[1]] * 3
    (notice,) = (n for n in tracker.notices if n.code == "tracker-nonsense")
    assert notice.level == "warning"


@pytest.mark.parametrize("color", [1, 2, 6, 19, 20, 28])
@pytest.mark.sampled
def test_images_in_the_format_that_it_asks_for(opened: Open, color: int) -> None:
    tracker = opened(f"image {color}")
    m = meta(0, [A])
    tracker.update(IMAGE, m)
    limited = 16 + 200 * 219 / 255  # planes of luma have the range of video
    assert m.objects.tracker_confidences is not None
    value = 255 * float(m.objects.tracker_confidences[0])
    assert min(abs(value - 200), abs(value - limited)) <= 2


@pytest.mark.parametrize("word", ["crash 3", "hang 3", "fail 3"])
def test_a_fault_costs_one_frame_of_one_source(opened: Open, word: str) -> None:
    tracker = opened(word, timeout_s=1.0)
    rows = [
        (play(tracker, range(i, i + 1), A, B), play(tracker, range(9, 10), A, source_id=1))
        for i in range(6)
    ]
    first = [row[0][0] for row in rows]
    assert first[3] == [None, None]
    assert [first[0], *first[:3], *first[4:]] == [[1, 2]] * 6
    assert [row[1][0] for row in rows] == [[3]] * 6
    (notice,) = (n for n in tracker.notices if n.code == "tracker-failed")
    assert notice.level == "warning"
    assert notice.data["source"] == 0


def test_objects_that_only_the_library_has_are_added(opened: Open) -> None:
    tracker = opened("predict 1")
    play(tracker, range(3), A, B)
    m = meta(3, [(103, *A[1:])])
    tracker.update(IMAGE, m)
    assert ids(m) == [1, 2]
    assert m.objects.tracker_confidences is not None
    assert m.objects.tracker_confidences[1] == pytest.approx(0.5)
    assert m.objects[1].label == "box"


def test_objects_without_an_association_are_paired_by_overlap(opened: Open) -> None:
    tracker = opened("unset 1")
    assert play(tracker, range(2), A, B) == [[1, 2]] * 2
    assert [n.code for n in tracker.notices if n.code == "tracker-pairs"] == ["tracker-pairs"]


def test_sources_are_apart_and_forgotten(opened: Open) -> None:
    tracker = opened()
    assert play(tracker, range(2), A) == [[1]] * 2
    assert play(tracker, range(2), A, source_id=1) == [[2]] * 2
    tracker.end_of_stream(0)
    assert play(tracker, range(2, 4), A) == [[3]] * 2
    assert play(tracker, range(2, 4), A, source_id=1) == [[2]] * 2


def test_in_this_process_if_asked(opened: Open) -> None:
    tracker = opened("image 19", guard="never")
    assert play(tracker, range(2), A) == [[1]] * 2
    assert tracker._sources[0].context.generation == 0


def test_a_library_that_refuses_is_an_error(opened: Open) -> None:
    tracker = opened("refuse 1")
    with pytest.raises(CustomLibraryError, match="customConfigStatus is Invalid"):
        play(tracker, range(1), A)


@pytest.mark.parametrize(
    ("words", "reason"),
    [("empty 1", "no context"), ("mute 1 empty 1", "no batch mode and no compute configuration")],
)
def test_a_library_that_cannot_be_driven_is_not_loaded(
    opened: Open, words: str, reason: str
) -> None:
    tracker = opened(words, generation="auto", operate_on_class_ids=(0,))
    assert tracker.name == "iou"
    (notice,) = tracker.notices
    assert (notice.code, notice.level, notice.data["name"]) == ("tracker-library", "warning", "iou")
    assert reason in notice.data["error"]
    assert play(tracker, range(2), A, B)[1] == [1, 2]


def test_one_that_says_nothing_and_tracks_is_loaded(opened: Open) -> None:
    tracker = opened("mute 1", generation="auto")
    assert play(tracker, range(2), A, B) == [[1, 2]] * 2
    assert tracker.name == "nvmot"
    (notice,) = (n for n in tracker.notices if n.code == "tracker-query")
    assert notice.level == "warning"


@pytest.mark.parametrize(
    ("config", "name"),
    [("config_tracker_NvSORT.yml", "nvsort"), ("own.yml", "iou"), ("", "iou")],
)
def test_what_runs_in_place_of_a_file_that_is_no_library(
    tmp_path: Path, config: str, name: str
) -> None:
    path = tmp_path / "libtracker.so"
    path.write_text("GROUP ( libc.so.6 )\n")
    (tmp_path / "own.yml").write_text("track_thresh: [0.5\n")
    tracker = open_tracker(
        "nvmot", library=str(path), config=str(tmp_path / config) if config else ""
    )
    assert tracker.name == name
    assert [n.code for n in tracker.notices][-1] == "tracker-library"


def test_only_low_level_trackers_are_taken(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="names no library"):
        open_tracker("nvmot")
    with pytest.raises(CustomLibraryError, match="cannot be read"):
        open_tracker("nvmot", library=str(tmp_path / "none.so"))
    path = library(tmp_path_factory)
    with pytest.raises(ConfigError, match=r"generation=nine"):
        open_tracker("nvmot", library=str(path), generation="nine")
    with pytest.raises(ConfigError, match="no setting 'widht'"):
        open_tracker("nvmot", library=str(path), widht=3)


def test_a_format_that_is_not_made_is_said(opened: Open) -> None:
    with pytest.raises(CustomLibraryError, match="colour format 41"):
        play(opened("image 41"), range(1), A)


@pytest.mark.parametrize("guard", ["always", "never"])
def test_settings_change_while_it_runs(opened: Open, tmp_path: Path, guard: str) -> None:
    tracker, change = opened(guard=guard), tmp_path / "change.yml"
    assert tracker.folder == tmp_path
    assert play(tracker, range(2), A, B) == [[1, 2]] * 2
    change.write_text("fail 3 a_word_that_a_short_string_would_not_hold 1")
    assert tracker.change(change) == ()
    assert play(tracker, range(2, 5), A, B) == [[1, 2], [None, None], [1, 2]]
    change.write_text("deny 1")
    tracker.change(change)
    assert play(tracker, range(5, 7), A, B) == [[1, 2]] * 2
    refused = [n for n in tracker.notices if n.code == "tracker-settings"]
    assert ["NvMOT_UpdateParams" in n.data["error"] for n in refused] == [True]


def test_a_new_worker_and_a_new_source_get_the_changes(opened: Open, tmp_path: Path) -> None:
    tracker, change = opened("crash 3"), tmp_path / "change.yml"
    play(tracker, range(2), A, B)
    change.write_text("fail 5")
    tracker.change(change)
    assert play(tracker, range(2, 7), A, B) == [[1, 2], [None] * 2, [1, 2], [None] * 2, [1, 2]]
    other = play(tracker, range(4, 7), A, B, source_id=1)
    assert [len(set(i)) for i in other] == [2, 1, 2]


@pytest.mark.slow
def test_a_library_of_an_older_release_takes_no_changes(opened: Open, tmp_path: Path) -> None:
    tracker = opened(compiled="7.0")
    with pytest.raises(CustomLibraryError, match="takes no changes"):
        tracker.change(tmp_path / "words.txt")

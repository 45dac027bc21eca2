"""Objects that were lost keep their ids: by their looks, and by the way they went."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.media import Frame, PixelFormat
from headrace.pipeline.track import Tracker, open_tracker
from headrace.pipeline.track.original_file import preset_entries, read_original
from headrace.pipeline.track.rejoin import WayRejoin
from tests.pipeline.track.look_model import REID, colors, crossing, write_model
from tests.pipeline.track.scenes import ids, meta
from tests.pipeline.track.test_targets import HEIGHT, WIDTH, shown

RED, GREEN = colors()


def image(*patches: tuple[np.ndarray, tuple[int, int]]) -> Frame:
    pixels = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    for patch, (x, y) in patches:
        pixels[y : y + 60, x : x + 40] = patch
    return Frame.from_array(pixels, PixelFormat.RGB)


def boxes(*places: tuple[int, int]) -> list[Any]:
    return [(x, y, 40, 60) for x, y in places]


def opened(folder: Path, spec: str) -> Tracker:
    model = write_model(folder / "looks.onnx")
    return open_tracker(f"{spec},reid={model},reid_pixels=signed,reid_similarity=0.8")


@pytest.mark.parametrize("spec", ["iou:max_age=10", "nviou:probationAge=1"])
@pytest.mark.parametrize("gap", [60, 250])
def test_an_object_that_was_away_keeps_its_id(tmp_path: Path, spec: str, gap: int) -> None:
    tracker = opened(tmp_path, spec)
    seen = []
    for i in range(gap + 20):
        there = i < 10 or i >= 10 + gap
        place = (20, 30) if i < 10 else (220, 150)
        m = shown(i, boxes(place) if there else [])
        tracker.update(image((RED, place)) if there else image(), m)
        seen += [i for i in ids(m) if i]
    assert set(seen) == {1}


def test_another_object_gets_another_id(tmp_path: Path) -> None:
    tracker = opened(tmp_path, "iou:max_age=10")
    for i in range(90):
        there, patch = i < 10 or i >= 70, RED if i < 10 else GREEN
        m = shown(i, boxes((20, 30)) if there else [])
        tracker.update(image((patch, (20, 30))) if there else image(), m)
    assert ids(m) == [2]


def test_an_id_that_was_reported_never_changes(tmp_path: Path) -> None:
    """An object comes out from behind a post: at first half of it is post."""
    tracker = opened(tmp_path, "iou:max_age=5,min_hits=1")
    got: list[int | None] = []
    for i in range(80):
        x = 10 + 3 * i
        m = shown(i, boxes((x, 60)) if i < 15 or i >= 45 else [])
        pixels = np.array(image((RED, (x, 60)) if x < 270 else (RED, (270, 60))).planes[0])
        pixels[:, 60:160] = 100  # the post
        tracker.update(Frame.from_array(pixels, PixelFormat.RGB), m)
        got += ids(m)
    named = [i for i in got if i is not None]
    assert set(named) == {1}
    assert len(got) - len(named) <= 8


def test_two_that_turn_back_behind_a_post_keep_their_ids(tmp_path: Path) -> None:
    """By their boxes each seems to go on as the other."""
    tracker = opened(tmp_path, "iou:max_age=30,min_hits=1")
    for i in range(60):
        away = abs(i - 30) * 4
        places = (130 - away, 80), (150 + away, 80)
        m = shown(i, boxes(*places) if away > 40 else [])
        tracker.update(image((RED, places[0]), (GREEN, places[1])), m)
        if i == 0:
            first = ids(m)
    assert ids(m) == first


@pytest.mark.parametrize("across", [True, False])
def test_an_object_of_two_cameras_has_one_id_if_asked(tmp_path: Path, across: bool) -> None:
    tracker = opened(tmp_path, f"iou:min_hits=1,reid_across={across}")
    got = []
    for i in range(12):
        for source, patches in ((0, (RED, GREEN)), (1, (GREEN,))):
            places = [(20, 30), (150, 90)][: len(patches)]
            m = meta(i, boxes(*places), source_id=source)
            m.width, m.height = WIDTH, HEIGHT
            tracker.update(image(*zip(patches, places, strict=True)), m)
            got.append(ids(m))
    assert got[::2] == [[1, 2]] * 12
    assert got[1::2] == [[2] if across else [3]] * 12
    tracker.end_of_stream(0)


def test_nothing_is_remembered_beyond_the_gap(tmp_path: Path) -> None:
    model = write_model(tmp_path / "looks.onnx")
    tracker = open_tracker("iou:max_age=10", reid=str(model), reid_pixels="signed", reid_gap=40)
    for i in range(90):
        there = i < 10 or i >= 70
        m = shown(i, boxes((20, 30)) if there else [])
        tracker.update(image((RED, (20, 30))) if there else image(), m)
    assert ids(m) == [2]


@pytest.mark.parametrize("kind", [0, 1])
def test_looks_in_association_keep_ids_apart(tmp_path: Path, kind: int) -> None:  # T-038
    """Two objects meet and turn back: by their boxes alone they seem to pass each other."""
    write_model(tmp_path / "looks.onnx")
    path = tmp_path / "tracker.yml"
    head = "TargetManagement: {probationAge: 0, maxShadowTrackingAge: 30, minIouDiff4NewTarget: 1}"
    weights = "minMatchingScore4ReidSimilarity: 0.5, matchingScoreWeight4ReidSimilarity: 1"
    assoc = f"DataAssociator: {{usePrediction4Assoc: 1, {weights}}}"
    motion = "StateEstimator: {stateEstimatorType: 1, processNoiseVar4Loc: 0.01}"
    path.write_text("\n".join((head, assoc, motion, REID.format(kind=kind))))
    tracker = open_tracker(path)
    assert not tracker.notices
    for i in range(41):
        a, b = crossing(i)
        m = shown(i, boxes(a, b))
        tracker.update(image((RED, a), (GREEN, b)), m)
        if i == 0:
            first = ids(m)
        if kind:
            assert ids(m) == first


def test_a_gallery_forgets_its_oldest_looks(tmp_path: Path) -> None:  # T-040
    from headrace._core import _native

    read = read_original({}, "keys", {"reidHistorySize": 2, "reidType": 1, "probationAge": 0,
                                      "minMatchingScore4ReidSimilarity": 0.5})  # fmt: skip
    numbers = {k: v for k, v in read.values.items() if isinstance(v, bool | int | float)}
    core = _native.Targets(numbers)
    m = meta(0, [(100, 100, 40, 60)])
    o = m.objects
    found = _native.TrackedObjects(
        o.rects, o.component_ids, o.class_ids, o.parents, o.confidences, None, None, True
    )
    looks = np.eye(3, dtype=np.float32)
    mixed = (looks[:1] + looks[1:2]) / np.sqrt(2, dtype=np.float32)
    keys = []
    for look in (looks[:1], mixed, looks[1:2], looks[:1]):
        core.step(found, 1, (640, 384), None, np.ascontiguousarray(look, np.float32))
        keys.append(int(core.keys()[0]))
    assert keys[:3] == [1, 1, 1]  # each is alike to the one before
    assert keys[3] == 1  # the mixed one is still there: .71
    core.step(found, 1, (640, 384), None, looks[2:3])
    assert core.keys()[0] == 0  # like none of the two; the place is taken, so nothing starts


@pytest.mark.parametrize(
    ("to", "gap", "same"),
    [((360, 100), 20, True), ((260, 100), 20, False), ((510, 100), 50, False)],
)  # T-041 the line goes on, T-042 the way back, T-043 too late
def test_a_way_that_goes_on_is_one_object(to: tuple[int, int], gap: int, same: bool) -> None:
    values = read_original(preset_entries("nvdcf-accuracy"), "preset").values
    numbers = {k: float(v) for k, v in values.items() if isinstance(v, bool | int | float)}
    rejoin = WayRejoin(values, numbers)
    way = np.array([[i, 5 * i, 100, 5 * i + 40, 180] for i in range(60)], np.float64)
    rejoin.lose(7, 1, way, 60, deque())
    now = 60 + gap
    rejoin.keep(now + 2, set())
    back = -5 if to[0] == 260 else 5
    new = np.array(
        [[now + i, x := 5 * now + back * i, 100, x + 40, 180] for i in range(3)], np.float64
    )
    assert rejoin.match(2, new, None) is None  # of another class
    assert rejoin.match(1, new, None) == (7 if same else None)


def test_a_file_joins_tracks_by_its_keys(tmp_path: Path) -> None:
    keys = {
        "probationAge": 2,
        "maxShadowTrackingAge": 5,
        "stateEstimatorType": 1,
        "usePrediction4Assoc": 1,
        "minTrajectoryLength4Projection": 20,
    }
    got = {}
    for rejoins in (1, 0):
        path = tmp_path / "tracker.yml"
        lines = [f"{k}: {v}\n" for k, v in (keys | {"enableReAssoc": rejoins}).items()]
        path.write_text("".join(lines))
        tracker = open_tracker(path)
        for i in range(70):
            m = meta(i, [] if 40 <= i < 55 else [(20 + 6 * i, 100, 40, 80)])
            tracker.update(image(), m)
        got[rejoins] = ids(m)
    assert got == {1: [1], 0: [2]}


def test_vectors_go_into_the_results_when_asked(tmp_path: Path) -> None:
    model = write_model(tmp_path / "looks.onnx")
    for asked in (False, True):
        tracker = open_tracker("iou:min_hits=1", reid=str(model), reid_output=asked)
        m = shown(0, boxes((20, 30), (150, 90)))
        tracker.update(image((RED, (20, 30)), (GREEN, (150, 90))), m)
        looks = [obj.reid for obj in m.objects]
        assert [look is not None for look in looks] == [asked, asked]
        if asked:
            assert [look.shape for look in looks if look is not None] == [(24,), (24,)]
            assert len(m.objects.keep([1]) or m.objects.reids) == 1


@pytest.mark.parametrize("last", [False, True])
def test_a_sample_of_the_original_takes_any_model(tmp_path: Path, last: bool) -> None:
    """No file says what its input is: the model and `reid_pixels` do."""
    model = write_model(tmp_path / "looks.onnx", last=last)
    places = ((20, 30), (150, 90))
    looks = {}
    for spec in ("iou:min_hits=1", "nvdeepsort:probationAge=0"):
        tracker = open_tracker(spec, reid=str(model), reid_pixels="signed", reid_output=True)
        m = shown(0, boxes(*places))
        tracker.update(image((RED, places[0]), (GREEN, places[1])), m)
        looks[spec] = np.array([obj.reid for obj in m.objects])
    one, other = looks.values()
    assert other == pytest.approx(one, abs=1e-5)


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("ReID: {reidType: 2, onnxFile: none.onnx}\n")
    (notice,) = open_tracker(path).notices
    assert notice.code == "tracker-reid"
    assert "none.onnx" in notice.sentence
    (notice,) = open_tracker("nvdeepsort").notices
    assert "names no onnxFile" in notice.sentence

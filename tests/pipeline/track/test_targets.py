"""Targets of the original's tracker files: the published rules, the motion models, the look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core import _native
from headrace.media import Frame, PixelFormat
from headrace.meta import FrameMeta
from headrace.pipeline.track import Tracker, open_tracker
from headrace.pipeline.track.original_file import read_original
from tests.pipeline.track.rule_cases import CASES, GREEDY, A, B, Case, at
from tests.pipeline.track.scenes import ids, meta, track


def opened(folder: Path, keys: Mapping[str, Any]) -> Tracker:
    path = folder / "config_tracker.yml"
    path.write_text("%YAML:1.0\n" + "".join(f"{key}: {value}\n" for key, value in keys.items()))
    return open_tracker(path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"T-{case.number:03}")
def test_a_published_rule(case: Case, tmp_path: Path) -> None:
    tracker = opened(tmp_path, {**case.base, **case.keys})
    assert not tracker.notices
    labels: dict[int, str] = {}
    for number in range(1, case.last + 1):
        found = case.frames.get(number, [])
        m = meta(
            number,
            [box for box, _, _ in found],
            scores=[conf for _, conf, _ in found],
            classes=[kind for _, _, kind in found],
        )
        (got,) = track(tracker, [m])
        said = "".join(
            "-" if i is None else labels.setdefault(i, "XYZ?"[len(labels)]) for i in got
        ).rstrip("-")
        assert said == case.expected.get(number, "").rstrip("-"), f"{case.rule}: frame {number}"


def values(name: str, **keys: object) -> dict[str, float]:
    read = read_original({}, name, keys).values
    return {k: v for k, v in read.items() if isinstance(v, bool | int | float)}


def estimated(boxes: list[Any], **keys: object) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of the motion model after each detection, and squared distances from predictions."""
    corners = np.array([[x, y, x + w, y + h] for x, y, w, h in boxes], np.float64)
    states, distances = _native.estimate_boxes(corners, values("keys", **keys))
    return np.array(states), np.array(distances)


def test_a_static_box_stays() -> None:  # T-030
    states, _ = estimated([A] * 30, stateEstimatorType=1)
    assert np.abs(states - [100, 100, 140, 180]).max() < 0.01


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_a_steady_movement_is_predicted(kind: int) -> None:  # T-031
    corners = np.array([[5 * i, 100, 5 * i + 40, 180] for i in range(40)], np.float64)
    (ahead,) = _native.project_boxes(corners, values("keys", stateEstimatorType=kind), 1)
    assert np.abs(ahead - [200, 100, 240, 180]).max() < 1


def test_noise_by_height_does_not_depend_on_the_scale() -> None:  # T-032
    way = [at(100 + 5 * i + (i % 3), 100, 40, 80) for i in range(30)]
    doubled = [tuple(2 * v for v in box) for box in way]
    keys = {"noiseWeightVar4Loc": 0.05, "noiseWeightVar4Vel": 0.00625}
    small, near = estimated(way, stateEstimatorType=2, **keys)
    large, far = estimated(doubled, stateEstimatorType=2, **keys)
    assert large == pytest.approx(2 * small)
    assert far == pytest.approx(near)
    _, near = estimated(way, stateEstimatorType=1)
    _, far = estimated(doubled, stateEstimatorType=1)
    assert far == pytest.approx(4 * near)


def test_without_a_motion_model_the_last_box_holds() -> None:  # T-033
    corners = np.array([[5 * i, 100, 5 * i + 40, 180] for i in range(5)], np.float64)
    assert _native.project_boxes(corners, values("keys"), 3).tolist() == [corners[-1].tolist()] * 3


@pytest.mark.parametrize(("predicts", "same"), [(1, True), (0, False)])
def test_nvsort_predicts_for_association(predicts: int, same: bool) -> None:  # T-029
    tracker = open_tracker("nvsort", usePrediction4Assoc=predicts)
    shown = [*range(1, 21), *range(23, 30)]
    metas = [meta(i, [at(10 * i, 100, 40, 80)] if i in shown else []) for i in range(1, 30)]
    got = [i for (i,) in (g for g in track(tracker, metas) if g) if i]
    assert len(set(got)) == (1 if same else 2)


def test_a_distance_in_the_terms_of_the_motion_model() -> None:  # T-039
    keys = {"noiseWeightVar4Loc": 0.05, "noiseWeightVar4Vel": 0.00625, "useAspectRatio": 1}
    way = [A] * 30 + [at(124, 100, 40, 80)]
    _, distances = estimated(way, stateEstimatorType=2, **keys)
    assert 9.4877 < distances[-1] < 15


@pytest.mark.parametrize(("unclip", "width"), [(1, 40), (0, 30)])
def test_a_box_that_the_border_cuts_keeps_its_size(
    tmp_path: Path, unclip: int, width: float
) -> None:  # T-034
    tracker = opened(tmp_path, {**GREEDY, "enableBboxUnClipping": unclip, "probationAge": 0})
    metas = [meta(1, [at(20, 100, 40, 80)]), meta(2, [at(0, 100, 30, 80)])]
    track(tracker, metas)
    corners, _ = tracker._sources[0].follower.reported()  # type: ignore[attr-defined]
    assert corners[0, 2] - corners[0, 0] == width
    assert metas[1].objects.rects[0].tolist() == [0, 100, 30, 80]


@pytest.mark.parametrize("name", ["nvsort", "nvdcf-perf", "nvdcf-accuracy"])
def test_an_object_keeps_its_id_while_the_border_cuts_it(name: str) -> None:
    painter, tracker, got = Painter(), open_tracker(name), []
    patch = painter.patch((200, 60, 40), 80, 100)
    for i in range(58):
        left = 75 + 4 * i
        cut = min(80, WIDTH - left)
        m = shown(i, [(left, 80, cut, 100)])
        tracker.update(painter.frame([(patch[:, :cut], left, 80)]), m)
        got += ids(m)
    assert cut < 0.25 * 80
    assert set(got[6:]) == {1}


@pytest.mark.parametrize(("predicts", "last"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("name", ["nvdcf-perf", "nvdcf-accuracy"])
def test_a_target_that_turned_while_hidden_is_found(name: str, predicts: int, last: int) -> None:
    painter = Painter()
    patch, tracker = painter.patch((200, 60, 40)), open_tracker(name, usePrediction4Assoc=predicts)
    for i in range(50):
        left = 20 + 6 * min(i, 50 - i)
        hidden = left > 140
        m = shown(i, [] if hidden else [(left, 80, 40, 60)])
        tracker.update(painter.frame([] if hidden else [(patch, left, 80)]), m)
    assert ids(m) == [last]


def test_a_hidden_target_does_not_follow_what_hides_it() -> None:
    painter = Painter()
    patch = painter.patch((200, 60, 40))
    tracker: Any = open_tracker("nvdcf-perf")
    for i in range(24):
        places = [(100, 80), (160 - 4 * i, 80)][: 2 if i < 5 else 1]  # of one look
        tracker.update(
            painter.frame([(patch, *place) for place in places]),
            shown(i, [(*place, 40, 60) for place in places]),
        )
    targets = tracker._sources[0].follower.targets
    _, _, _, _, shadows, corners, _, _ = targets.states()
    assert shadows.tolist() == [0, 19]
    assert corners[1, 0] == pytest.approx(160 - 4 * 23, abs=16)


def test_ids_with_a_random_upper_half(tmp_path: Path) -> None:  # T-044
    tracker = opened(tmp_path, {**GREEDY, "useUniqueID": 1, "probationAge": 0})
    ((a, b),) = track(tracker, [meta(1, [A, B])])
    assert a is not None
    assert b is not None
    assert a >> 32 == b >> 32 > 0
    assert b - a == 1


def test_sources_have_ids_of_their_own(tmp_path: Path) -> None:  # T-045, T-046
    tracker = opened(tmp_path, {**GREEDY, "probationAge": 0})
    metas = [meta(i, [at(100 + 5 * i, 100, 40, 80)], source_id=s) for i in (1, 2) for s in (0, 1)]
    assert track(tracker, metas) == [[1], [2], [1], [2]]
    tracker.end_of_stream(0)
    again = [meta(3, [A], source_id=0), meta(3, [at(115, 100, 40, 80)], source_id=1)]
    assert track(tracker, again) == [[3], [2]]


def test_every_run_has_the_same_ids(tmp_path: Path) -> None:  # T-047
    rng = np.random.default_rng(3)
    boxes = [[at(*rng.uniform(0, 400, 2), 40, 80) for _ in range(6)] for _ in range(20)]
    keys = {**GREEDY, "preserveStreamUpdateOrder": 1}
    runs = [
        track(opened(tmp_path, keys), [meta(i, b, source_id=i % 4) for i, b in enumerate(boxes)])
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


WIDTH, HEIGHT = 320, 240


class Painter:
    """Patches of texture on a plain background, the same in every run."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.ground = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
        self.ground += self.rng.integers(0, 30, (HEIGHT, WIDTH, 1), dtype=np.uint8)

    def patch(self, color: tuple[int, int, int], width: int = 40, height: int = 60) -> np.ndarray:
        blocks = self.rng.integers(-60, 60, (height // 10, width // 10, 1))
        texture = np.kron(blocks, np.ones((10, 10, 1)))
        return np.clip(np.array(color) + texture, 0, 255).astype(np.uint8)

    def frame(self, patches: list[tuple[np.ndarray, int, int]]) -> Frame:
        image = self.ground.copy()
        for patch, x, y in patches:
            image[y : y + patch.shape[0], x : x + patch.shape[1]] = patch
        return Frame.from_array(image, PixelFormat.RGB)


def shown(number: int, boxes: list[Any] = [], *, inferred: bool = True) -> FrameMeta:  # noqa: B006
    m = meta(number, boxes, inferred=inferred)
    m.width, m.height = WIDTH, HEIGHT
    return m


@pytest.mark.parametrize("name", ["nvdcf-max-perf", "nvdcf-perf", "nvdcf-accuracy"])
def test_a_look_is_followed_without_inference(name: str) -> None:  # T-035
    painter = Painter()
    patch, tracker = painter.patch((200, 60, 40)), open_tracker(name)
    seen, errors = set(), []
    for i in range(40):
        x, inferred = 20 + 3 * i, i < 6 or i % 3 == 0
        m = shown(i, [(x, 80, 40, 60)] if inferred else [], inferred=inferred)
        tracker.update(painter.frame([(patch, x, 80)]), m)
        if i >= 6:
            seen |= set(ids(m))
            errors.append(np.abs(m.objects.rects[0] - [x, 80, 40, 60]).max())
            (confidence,) = m.objects.tracker_confidences  # type: ignore[misc]
            assert 0 < confidence <= 1
    assert seen == {1}
    assert max(errors) <= 3


def test_a_target_that_vanishes_goes_into_the_shadow() -> None:  # T-036
    painter = Painter()
    patch, tracker = painter.patch((40, 160, 60)), open_tracker("nvdcf-perf")
    for i in range(20):
        m = shown(i, [(100, 80, 40, 60)] if i < 10 else [], inferred=i < 10)
        tracker.update(painter.frame([(patch, 100, 80)] if i < 10 else []), m)
        assert ids(m) == ([1] if 2 <= i < 10 else [None] if i < 2 else [])


@pytest.mark.parametrize("layout", [PixelFormat.I420, PixelFormat.NV12, PixelFormat.BGR])
def test_ids_follow_the_look(layout: PixelFormat) -> None:  # T-037
    """Two patches change places within one frame; their boxes alone would not show it."""
    painter = Painter()
    red, blue = painter.patch((210, 40, 40)), painter.patch((40, 40, 210))
    tracker = open_tracker(
        "nvdcf-max-perf", matchingScoreWeight4Iou=0.1, matchingScoreWeight4VisualSimilarity=0.9,
        minMatchingScore4VisualSimilarity=0.3, probationAge=0, featureImgSizeLevel=3,
        searchRegionPaddingScale=2,
    )  # fmt: skip
    near = [(100, 80), (140, 80)]
    got = []
    for i in range(12):
        first, second = near if i < 8 else near[::-1]
        patches = [(red, *first), (blue, *second)]
        image = painter.frame(patches if i < 8 else patches[::-1])
        m = shown(i, [(*first, 40, 60), (*second, 40, 60)])
        tracker.update(as_layout(image, layout), m)
        got.append(ids(m))
    assert got[8] == got[7]


def as_layout(frame: Frame, layout: PixelFormat) -> Frame:
    """The same image in other planes, BT.601 of limited range."""
    rgb = frame.planes[0].astype(np.float64)
    if layout is PixelFormat.BGR:
        return Frame.from_array(np.ascontiguousarray(frame.planes[0][:, :, ::-1]), layout)
    r, g, b = np.moveaxis(rgb, 2, 0)
    luma = 16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
    u = (128 + (-37.797 * r - 74.203 * g + 112 * b) / 255)[::2, ::2]
    v = (128 + (112 * r - 93.786 * g - 18.214 * b) / 255)[::2, ::2]
    planes = [np.rint(p).clip(0, 255).astype(np.uint8) for p in (luma, u, v)]
    if layout is PixelFormat.NV12:
        planes = [planes[0], np.ascontiguousarray(np.dstack(planes[1:]))]
    return Frame(tuple(planes), layout, frame.width, frame.height)


def test_a_motion_tracker_never_reads_a_pixel() -> None:
    class Unread:
        format, width, height, on_device = PixelFormat.RGB, WIDTH, HEIGHT, None

        @property
        def planes(self) -> None:
            raise AssertionError("the planes were read")

    for name in ("nviou", "nvsort", "iou"):
        tracker = open_tracker(name)
        for i in range(6):
            tracker.update(Unread(), shown(i, [A], inferred=i != 4))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="were read"):
        open_tracker("nvdcf-perf").update(Unread(), shown(0, [A]))  # type: ignore[arg-type]


def test_the_best_total_beats_the_best_pair() -> None:
    keys = {**GREEDY, "probationAge": 0, "minMatchingScore4Iou": 0.1}
    before, after = [at(0), at(40)], [at(30), at(-35)]
    got = []
    for matcher in ("greedy", "global"):
        read = read_original({}, "keys", keys).values
        numbers = {k: v for k, v in read.items() if isinstance(v, bool | int | float)}
        core = _native.Targets(numbers | {"matcher": 2 if matcher == "global" else 0})
        for boxes in (before, after):
            m = meta(0, boxes)
            found = _native.TrackedObjects(
                m.objects.rects, m.objects.component_ids, m.objects.class_ids,
                m.objects.parents, m.objects.confidences, None, None, True,
            )  # fmt: skip
            core.step(found, 1, (640, 384), None, None)
        lefts = found.corners[:, 0].tolist()
        got.append(dict(zip(lefts, core.keys().tolist(), strict=True)))
    # by the best pair the first box goes to the second target, and -35 is new
    assert got[0][30.0] == 2
    assert got[1] == {30.0: 2, -35.0: 1}

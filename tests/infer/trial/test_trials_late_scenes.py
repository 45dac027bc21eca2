"""Advice is tried on frames in which something is to be seen, however late they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from headrace import ArraySource, Frame, explain, open_pipeline, open_sink
from headrace._core.findings import Finding
from headrace.diagnose.lint.linting import Linter
from headrace.errors import HeadraceError
from headrace.infer.inferencer import Inferencer
from headrace.meta import FrameMeta
from tests.infer.watch.detectors import config_for, frames
from tests.profiles import slow

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")

EMPTY, BUSY = 30, 12
HIGH = "[class-attrs-all]\npre-cluster-threshold=0.995\nnms-iou-threshold=0.4\n"
OWN = """from headrace import Detections
import numpy as np


def parse(layers, network, params):
    rows = layers["output"].data
    rows = (rows if rows.shape[1] < 10 else rows.T).astype(np.float32)
    scores = rows[:, 4:].max(axis=1)
    kept = scores >= params.per_class_threshold.min()
    boxes = np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, 2:4]], axis=1)
    classes = rows[:, 4:].argmax(axis=1).astype(np.int32)
    return Detections(boxes=boxes[kept], scores=scores[kept], class_ids=classes[kept])
"""


def scenes() -> list[Frame]:
    """Frames of nothing, then such with objects."""
    return [*frames("empty", count=EMPTY), *frames("objects", count=BUSY)]


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "late.mp4"
    with open_sink(str(path)) as sink:
        for number, frame in enumerate(ArraySource(scenes(), format="rgb")):
            meta = FrameMeta("late", 0, number, number * 40_000_000, frame.width, frame.height)
            sink.write(frame, meta)
    return path


def run(config: Path, video: Path) -> list[Finding]:
    with open_pipeline(config, sources=str(video)) as pipeline:
        return list(pipeline.run().notices)


def lint(config: Path, video: Path) -> list[Finding]:
    return [f.finding for f in Linter(source=video).lint([config]).findings]


def of_explain(config: Path, video: Path) -> list[Finding]:
    told = explain(config, str(video))
    (model,) = told.models
    return [*told.notices, *model.notices]


@pytest.mark.parametrize("road", [run, lint, slow(of_explain)])
@pytest.mark.parametrize("own", [False, slow(True)], ids=["built in", "own parser"])
def test_a_threshold_above_all_is_named(
    own: bool, road: Callable[[Path, Path], list[Finding]], video: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    keys = {"custom_lib_path": "own.py", "parse_bbox_func_name": "parse"} if own else {}
    config = config_for(tmp_path, text=HIGH, model={"gain": 10.0}, **keys)
    (found,) = [f for f in road(config, video) if f.code == "threshold-above-all"]
    assert found.data["set"] == {"class-attrs-all.pre-cluster-threshold": "0.25"}


@pytest.mark.parametrize("road", [run, slow(lint), slow(of_explain)])
def test_a_range_that_is_wrong_is_proved(
    road: Callable[[Path, Path], list[Finding]], video: Path, tmp_path: Path
) -> None:
    config = config_for(tmp_path, pixels="bytes", net_scale_factor=1 / 255)
    (found,) = [f for f in road(config, video) if f.code == "input-range"]
    assert found.data["set"] == {"net-scale-factor": "1"}
    assert "proves nothing" not in str(found)


def test_a_refusal_is_tried_where_objects_are(video: Path, tmp_path: Path) -> None:
    config = config_for(tmp_path, parse_bbox_func_name=None)
    with pytest.raises(HeadraceError) as caught:
        open_pipeline(config, sources=str(video))
    assert caught.value.data["set"]["parse-bbox-func-name"] == "HeadraceParseYoloV8"


def test_advice_that_found_nothing_is_tried_again(tmp_path: Path) -> None:
    metadata = {"description": "Ultralytics YOLOv8n model", "task": "detect", "stride": "8",
                "names": "{0: 'red', 1: 'green'}"}  # fmt: skip
    config = config_for(tmp_path, net_scale_factor=1, model={"metadata": metadata})
    with Inferencer.from_config(config) as model:
        tried = list[bool]()
        for number, frame in enumerate(scenes()):
            model.process([frame])
            if number in (EMPTY - 1, EMPTY + BUSY - 1):
                if number > EMPTY:
                    model.conclude()
                (found,) = [n for n in model.notices if n.code == "input-range"]
                tried.append(any(row.get("found_in") for row in found.data["advice"]))
    assert tried == [False, True]


def test_two_mistakes_at_once_point_at_the_search(video: Path, tmp_path: Path) -> None:
    config = config_for(tmp_path, pixels="bytes", net_scale_factor=1 / 255, text=HIGH)
    told = explain(config, str(video))
    assert "repair-tries" in [notice.code for notice in told.notices]
    right = config_for(tmp_path)
    assert "repair-tries" not in [n.code for n in explain(right, str(video)).notices]


def test_a_long_video_is_read_at_its_cuts(tmp_path: Path) -> None:
    from headrace.media.frame_choice import frames_for_trials

    path = tmp_path / "long.mp4"

    def images() -> Iterator[np.ndarray]:
        for number in range(700):
            image = np.full((32, 48, 3), 90, np.uint8)
            image[8:24, 8 : 8 + (16 if number >= 650 else 0)] = 255
            yield image

    with open_sink(str(path)) as sink:
        for number, frame in enumerate(ArraySource(images())):
            sink.write(frame, FrameMeta("long", 0, number, number * 40_000_000, 48, 32))
    chosen, moving = frames_for_trials(str(path), 8)
    assert moving
    assert max(frame.frame for frame in chosen) >= 500

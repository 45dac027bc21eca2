"""YOLOX-nano by the profile `modern` against OpenCV, NumPy and ONNX Runtime on real footage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import onnxruntime
import pytest

import headrace
from tests.copies import copied_example

EXAMPLE = Path(__file__).parents[2] / "examples" / "yolox"
SIDE, SCORE, OVERLAP = 416, 0.3, 0.45  # as the example's config has them


class Box(NamedTuple):
    class_id: int
    score: float
    left: float
    top: float
    right: float
    bottom: float


class Evaluation:
    """The model as its authors' demonstration runs it, written from its description."""

    def __init__(self, model: Path) -> None:
        self.session = onnxruntime.InferenceSession(str(model))
        cells, strides = [], []
        for stride in (8, 16, 32):
            y, x = np.mgrid[: SIDE // stride, : SIDE // stride]
            cells.append(np.stack([x.ravel(), y.ravel()], 1))
            strides.append(np.full(x.size, stride))
        self.cells, self.strides = np.concatenate(cells), np.concatenate(strides)[:, None]

    def __call__(self, bgr: Any) -> list[Box]:
        height, width = bgr.shape[:2]
        ratio = min(SIDE / height, SIDE / width)
        size = (int(width * ratio), int(height * ratio))
        canvas = np.full((SIDE, SIDE, 3), 114, np.uint8)
        canvas[: size[1], : size[0]] = cv2.resize(bgr, size, interpolation=cv2.INTER_LINEAR)
        tensor = canvas.transpose(2, 0, 1)[None].astype(np.float32)
        (rows,) = self.session.run(None, {"images": tensor})[0]
        centres = (rows[:, :2] + self.cells) * self.strides
        sizes = np.exp(rows[:, 2:4]) * self.strides
        boxes = np.hstack([centres - sizes / 2, sizes]) / ratio
        return list(self._kept(boxes, rows[:, 4:5] * rows[:, 5:], width, height))

    def _kept(self, boxes: Any, scores: Any, width: int, height: int) -> Iterator[Box]:
        for class_id in np.flatnonzero((scores > SCORE).any(0)).tolist():
            chosen = scores[:, class_id] > SCORE
            of_class, own = boxes[chosen], scores[chosen, class_id]
            best = cv2.dnn.NMSBoxes(of_class.tolist(), own.tolist(), SCORE, OVERLAP)
            for i in np.array(best).ravel():
                left, top, w, h = of_class[i]
                right, bottom = min(left + w, width), min(top + h, height)
                yield Box(class_id, own[i], max(left, 0), max(top, 0), right, bottom)


def overlap(a: Box, b: Box) -> float:
    width = min(a.right, b.right) - max(a.left, b.left)
    height = min(a.bottom, b.bottom) - max(a.top, b.top)
    both = max(width, 0) * max(height, 0)
    areas = [(box.right - box.left) * (box.bottom - box.top) for box in (a, b)]
    return both / (sum(areas) - both)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    folder = tmp_path_factory.mktemp("yolox_modern")
    copied_example(EXAMPLE.name, folder)
    shutil.copy(data_dir / "models" / "yolox_nano.onnx", folder)
    return folder / "config_infer_primary.txt"


@pytest.mark.parametrize(
    ("frames", "least"), [(100, 30), pytest.param(377, 120, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_every_box_agrees(config: Path, data_dir: Path, frames: int, least: int) -> None:
    video = data_dir / "videos" / "car-detection.mp4"
    evaluate, capture = (
        Evaluation(config.with_name("yolox_nano.onnx")),
        cv2.VideoCapture(str(video)),
    )
    compared = 0
    pipeline = headrace.open_pipeline(config, sources=video, profile="modern", limit=frames)
    for _, meta in pipeline:
        expected = evaluate(capture.read()[1])
        found = [
            Box(o.class_id, o.confidence, o.left, o.top, o.left + o.width, o.top + o.height)
            for o in meta.objects
        ]
        assert len(found) == len(expected), f"frame {meta.frame}"
        for box in expected:
            twin = max(found, key=lambda b: (b.class_id == box.class_id) + overlap(box, b))
            assert twin.class_id == box.class_id
            assert overlap(box, twin) >= 0.99
            assert abs(box.score - twin.score) <= 1e-3
            found.remove(twin)
            compared += 1
    assert compared >= least
    assert pipeline.report.profile == "modern"


@pytest.mark.slow
def test_nvinfer_says_what_modern_avoids(config: Path, data_dir: Path) -> None:
    """Boxes that leave the image are moved or dropped by the rules of the original."""
    video = data_dir / "videos" / "car-detection.mp4"
    report = headrace.open_pipeline(config, sources=video, limit=120).run()
    (model,) = report.models
    lost = model.results.get("edge_dropped", 0), model.results.get("edge_shifted", 0)
    said = [n for n in report.notices if "profile=modern" in n.sentence]
    assert sum(lost) > 0
    assert len(said) == 1
    assert said[0].level == "info"

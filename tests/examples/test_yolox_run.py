"""YOLOX-nano on real footage: the Python parser, its C++ twins, and an independent evaluation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest

from headrace import Frame, FrameMeta, Inferencer, ModelConfig, open_source
from tests.copies import copied_example
from tests.custom.built import library_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "yolox"
WANTED = (77, 83, 89, 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Path:
    """The example with its model, and the C++ parser compiled for both box layouts."""
    path = tmp_path_factory.mktemp("yolox")
    copied_example(EXAMPLE.name, path)
    shutil.copy(data_dir / "models" / "yolox_nano.onnx", path)  # its engine is saved beside it
    for size in (24, 28):
        source = EXAMPLE / "nvdsparsebbox_yolox.cpp"
        made = library_of(tmp_path_factory, source, f"-DHEADRACE_BOX_BYTES={size}")
        shutil.copy(made, path / f"libyolox{size}.so")
    return path


@pytest.fixture(scope="module")
def frames(data_dir: Path) -> list[Frame]:
    chosen = []
    with open_source(str(data_dir / "videos" / "car-detection.mp4")) as video:
        for frame in video:
            if frame.frame in WANTED:
                chosen.append(frame)
            if frame.frame == max(WANTED):
                break
    with open_source(str(data_dir / "images" / "bus.jpg")) as photo:
        chosen += list(photo)
    return chosen


def results(folder: Path, frames: list[Frame], **overrides: Any) -> Iterator[FrameMeta]:
    cfg = ModelConfig.load(folder / "config_infer_primary.txt").with_overrides(**overrides)
    with Inferencer.from_config(cfg, threads=2) as model:
        for frame in frames:
            yield model.process([frame])[0]


@pytest.fixture(scope="module")
def python_results(folder: Path, frames: list[Frame]) -> list[FrameMeta]:
    return list(results(folder, frames))


@pytest.mark.slow
def test_cars_and_people_are_boxed(python_results: list[FrameMeta]) -> None:
    *cars, bus = python_results
    # Seen from above, this model takes cars for phones; the boxes are what is checked here.
    assert [len(m.objects) for m in cars] == [1, 1, 1, 2]
    found = [o.label for o in bus.objects]
    assert found.count("person") >= 3
    assert "bus" in found


@pytest.mark.slow
@pytest.mark.parametrize("size", [24, 28])
@pytest.mark.sampled
def test_the_cpp_parser_gives_the_same_boxes(
    folder: Path, frames: list[Frame], python_results: list[FrameMeta], size: int
) -> None:
    library = folder / f"libyolox{size}.so"
    twins = results(folder, frames, custom_lib_path=library)
    for ours, twin in zip(python_results, twins, strict=True):
        assert len(ours.objects) == len(twin.objects) > 0
        np.testing.assert_array_equal(ours.objects.class_ids, twin.objects.class_ids)
        np.testing.assert_allclose(ours.objects.rects, twin.objects.rects, atol=0.01)
        np.testing.assert_allclose(ours.objects.confidences, twin.objects.confidences, atol=1e-5)


def test_boxes_agree_with_an_independent_evaluation(
    folder: Path, data_dir: Path, frames: list[Frame], python_results: list[FrameMeta]
) -> None:
    """OpenCV decodes and scales, ONNX Runtime runs, the grid is decoded by its definition."""
    session = onnxruntime.InferenceSession(str(folder / "yolox_nano.onnx"))
    capture = cv2.VideoCapture(str(data_dir / "videos" / "car-detection.mp4"))
    images = {}
    for i in range(max(WANTED) + 1):
        ok, image = capture.read()
        assert ok
        images[i] = image
    for frame, meta in zip(frames[:-1], python_results, strict=False):
        best = _strongest_box(session, images[frame.frame])
        thing = max(meta.objects, key=lambda o: o.confidence)
        assert _iou(best, np.array([thing.left, thing.top, thing.width, thing.height])) > 0.9


def _strongest_box(session: Any, image: Any) -> np.ndarray[Any, Any]:
    scale = 416 / image.shape[1]
    canvas = np.zeros((416, 416, 3), np.uint8)
    small = cv2.resize(image, (416, int(image.shape[0] * scale)))
    canvas[: small.shape[0]] = small
    rows = session.run(None, {"images": canvas.transpose(2, 0, 1)[None].astype(np.float32)})[0][0]
    score = rows[:, 4] * rows[:, 5:].max(1)
    best, at = int(score.argmax()), 0
    for stride in (8, 16, 32):
        side = 416 // stride
        if best < at + side * side:
            y, x = divmod(best - at, side)
            break
        at += side * side
    cx, cy = (rows[best, 0] + x) * stride, (rows[best, 1] + y) * stride
    w, h = np.exp(rows[best, 2:4]) * stride
    return np.array([max(cx - w / 2, 0), max(cy - h / 2, 0), w, h]) / scale


def _iou(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[:2] + a[2:], b[:2] + b[2:])
    shared = float(np.prod(np.clip(high - low, 0, None)))
    return shared / (float(a[2] * a[3] + b[2] * b[3]) - shared)

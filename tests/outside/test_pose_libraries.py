"""DeepStream-Yolo-Pose and -Face as published: their configs and parsers, unchanged."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headrace.custom import include_dir
from headrace.infer.inferencer import Inferencer
from headrace.media import as_frame
from headrace.media.frame import Frame
from tests.outside.conftest import checkout

SIZE = 640
CASES = {
    # folder, library, config, model, values a candidate: corners, score, points
    "pose": ("DeepStream-Yolo-Pose", "pose", "yoloV8_pose", "yolov8s-pose.onnx", 5 + 51),
    "face": ("DeepStream-Yolo-Face", "face", "yoloV8_face", "yolov8n-face.onnx", 5 + 15),
    "face-pairs": ("DeepStream-Yolo-Face", "face", "yoloV5_face", "yolov5n-face.onnx", 5 + 10),
}


def candidates(values: int) -> np.ndarray:
    """(N, values) float32: boxes that overlap, below the threshold, and with points outside."""
    rng = np.random.default_rng(0)
    rows = np.zeros((40, values), np.float32)
    corner, size = rng.uniform(0, 500, (40, 2)), rng.uniform(30, 200, (40, 2))
    rows[:, :4] = np.column_stack([corner, corner + size])
    rows[:, 4] = rng.uniform(0.05, 0.95, 40)
    rows[20:, :4] = rows[:20, :4] + 4  # twins
    rows[:, 5:] = rng.uniform(-20, 660, (40, values - 5))
    if values != 15:
        rows[:, 7::3] = rng.uniform(0, 1, rows[:, 7::3].shape)
    return rows


def expected(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (corners) and points that survive: score >= 0.25, greedy NMS at 0.45, all clipped."""
    rows = rows[rows[:, 4] >= 0.25]
    rows = rows[np.argsort(-rows[:, 4], kind="stable")]
    boxes = rows[:, :4].clip(0, SIZE)
    kept: list[int] = []
    for i, (x1, y1, x2, y2) in enumerate(boxes):
        for j in kept:
            a = boxes[j]
            w, h = min(x2, a[2]) - max(x1, a[0]), min(y2, a[3]) - max(y1, a[1])
            common = max(w, 0) * max(h, 0)
            whole = (x2 - x1) * (y2 - y1) + (a[2] - a[0]) * (a[3] - a[1]) - common
            if common / whole > 0.45:
                break
        else:
            kept.append(i)
    each = 2 if rows.shape[1] == 15 else 3
    points = rows[kept, 5:].reshape(len(kept), -1, each)
    if each == 2:
        points = np.concatenate([points, np.ones_like(points[..., :1])], axis=2)
    points[..., :2] = points[..., :2].clip(0, SIZE)
    return boxes[kept], points


def write_model(path: Path, rows: np.ndarray, layouts: int) -> None:
    """Write a network that finds the same candidates in every image.

    In one output with corners, or in three: centre boxes, scores, points.
    """
    size = rows[:, 2:4] - rows[:, :2]
    centres = np.column_stack([rows[:, :2] + size / 2, size])
    parts = [rows] if layouts == 1 else [centres, rows[:, 4:5], rows[:, 5:]]
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    nodes = [helper.make_node("ReduceMin", ["images"], ["low"], keepdims=0)]
    nodes += [helper.make_node("Mul", ["low", "none"], ["zero"])]
    constants = [numpy_helper.from_array(np.zeros((), np.float32), "none")]
    outputs = []
    for i, part in enumerate(parts):
        constants.append(numpy_helper.from_array(part[None], f"c{i}"))
        nodes.append(helper.make_node("Add", [f"c{i}", "zero"], [f"output{i}"]))
        outputs.append(
            helper.make_tensor_value_info(f"output{i}", TensorProto.FLOAT, [1, *part.shape])
        )
    graph = helper.make_graph(nodes, "g", [image], outputs, constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


@pytest.mark.parametrize("case", CASES)
def test_the_published_library_and_config(outside: Path, tmp_path: Path, case: str) -> None:
    name, kind, config, model, values = CASES[case]
    folder = tmp_path / name
    shutil.copytree(checkout(outside, name), folder)
    sources = folder / f"nvdsinfer_custom_impl_Yolo_{kind}"
    library = sources / f"libnvdsinfer_custom_impl_Yolo_{kind}.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-O1", f"-I{include_dir()}", "-o", library,
         *sources.glob("*.cpp")],
        check=True,
    )  # fmt: skip
    file = folder / f"config_infer_primary_{config}.txt"
    rows = candidates(values)
    write_model(folder / model, rows, layouts_of(file, sources))
    image: Frame = as_frame(np.full((720, 1280, 3), 90, np.uint8))
    with Inferencer.from_config(file) as detector:
        (meta,) = detector.process([image])
        said = [str(notice) for notice in detector.notices]
    boxes, points = expected(rows)
    # symmetric letterbox: half the size, 140 rows of padding above
    corners = meta.objects.rects[:, :2]
    inside = [i for i, box in enumerate(boxes) if box[1] >= 140 and box[3] <= 500]
    assert inside
    for i in inside:
        x1, y1, x2, y2 = boxes[i]
        distance = np.abs(corners - ((x1 * 2), (y1 - 140) * 2)).max(axis=1)
        assert distance.min() < 1e-3
        one = meta.objects[int(distance.argmin())]
        np.testing.assert_allclose(
            (one.width, one.height), ((x2 - x1) * 2, (y2 - y1) * 2), rtol=1e-4
        )
        mapped = points[i].copy()
        mapped[:, :2] = (mapped[:, :2] - (0, 140)) * 2
        assert one.keypoints is not None
        np.testing.assert_allclose(one.keypoints, mapped, atol=1e-3)
    assert any(f"{points.shape[1]} keypoints in the place of a mask" in text for text in said)


def layouts_of(config: Path, sources: Path) -> int:
    """How many outputs the published parser reads."""
    text = "".join(path.read_text() for path in sources.glob("*.cpp"))
    return 3 if "outputLayersInfo[2]" in text else 1

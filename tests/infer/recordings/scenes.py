"""Models whose boxes are the pixels of the image, with parsers of every kind, and recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.diagnose.recordings import record_frames
from headrace.infer.inferencer import Inferencer
from headrace.infer.recordings import Recording, load_recording
from headrace.media import ArraySource
from tests.infer.models import node, write_config, write_model

WIDTH, HEIGHT = 16, 42  # times 3 planes: 336 rows of 6, 288 rows of 7
PARSER = """
from headrace import Detections

def parse(layers, network, params):
    rows = layers["rows"].data
    rows = rows[rows[:, 5] >= params.min_threshold]
    return Detections(rows[:, 1:5], rows[:, 5], rows[:, 0].astype(int))
"""


def rows_config(folder: Path, **keys: Any) -> Path:
    """A detector whose image is its table of boxes; `builtin` reads it as YOLOv5 does."""
    folder.mkdir(exist_ok=True)
    builtin = "custom_lib_path" not in keys
    columns = [0.06, 0.16, 0.03, 0.06, 1 / 255, 1 / 255, 1 / 255]
    if not builtin:  # class 0 to 2, left, top, width, height, score
        columns = [2.9 / 255, 0.03, 0.1, 0.03, 0.06, 1 / 255]
    constants = {
        "shape": np.array([-1, 3 * WIDTH * HEIGHT // len(columns), len(columns)]),
        "scale": np.array(columns, np.float32),
    }
    nodes = [node("Reshape", ["image", "shape"], ["r"]), node("Mul", ["r", "scale"], ["rows"])]
    outputs = {"rows": ["n", *constants["shape"][1:].tolist()]}
    shape: list[int | str] = ["n", 3, HEIGHT, WIDTH]
    write_model(folder / "rows.onnx", nodes, {"image": shape}, outputs, constants)
    (folder / "labels.txt").write_text("car\nperson\nbike\n"[: 11 if builtin else None])
    (folder / "parser.py").write_text(PARSER)
    settings: dict[str, Any] = {
        "onnx_file": "rows.onnx",
        "labelfile_path": "labels.txt",
        "num_detected_classes": 2 if builtin else 3,
        "cluster_mode": 2,
        "parse_bbox_func_name": "HeadraceParseYoloV5" if builtin else "parse",
        "custom_lib_abi": None if builtin else keys.pop("abi", None),
    } | keys
    text = "[class-attrs-all]\npre-cluster-threshold=0.6\nnms-iou-threshold=0.5\n"
    return write_config(folder, text, **settings)


def noise(seed: int) -> npt.NDArray[np.uint8]:
    """An image."""
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def recorded(model: Inferencer, out: Path, *seeds: int) -> Recording:
    """A recording of noise."""
    record_frames([model], ArraySource([noise(seed) for seed in seeds]), out)
    return load_recording(out)

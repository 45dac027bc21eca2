"""The example's two parsers: C++ in both layouts and Python find the same boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.errors import ParserError
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo
from tests.custom.conftest import Compile

EXAMPLE = Path(__file__).parents[2] / "examples" / "yolox"
NAME = "NvDsInferParseYoloX"
LAYOUTS = {24: ("-DHEADRACE_BOX_BYTES=24",), 28: ()}


def tensor(seed: int, cells: int = 3549, classes: int = 80) -> np.ndarray:
    """Like the model's output: most cells empty, scores 0..1, sizes as logarithms."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(0, 1, (cells, 5 + classes)).astype(np.float32)
    rows[:, 4:] = rng.uniform(0, 1, (cells, 1 + classes)) ** 2
    return rows


def rows_of(detections: Detections) -> np.ndarray:
    return np.column_stack((detections.class_ids, detections.scores, detections.boxes))


@pytest.mark.parametrize("layout", [24, 28])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled
def test_cpp_and_python_agree(compile_parser: Compile, layout: int, seed: int) -> None:
    source = EXAMPLE / "nvdsparsebbox_yolox.cpp"
    cpp = open_library(compile_parser(source, *LAYOUTS[layout])).bbox_parser(NAME)
    python = open_library(EXAMPLE / "yolox_parser.py").bbox_parser(NAME)
    thresholds = np.linspace(0.3, 0.9, 80, dtype=np.float32)
    arguments = (
        {"output": Layer("output", tensor(seed))},
        NetworkInfo(416, 416, 3),
        DetectionParams(80, thresholds),
    )
    expected = rows_of(python(*arguments))
    assert 100 < len(expected) < 3000
    np.testing.assert_allclose(rows_of(cpp(*arguments)), expected, rtol=2e-5, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpp", "python"])
def test_a_wrong_tensor_is_refused(compile_parser: Compile, kind: str) -> None:
    path = EXAMPLE / "yolox_parser.py"
    if kind == "cpp":
        path = compile_parser(EXAMPLE / "nvdsparsebbox_yolox.cpp")
    layers = {"output": Layer("output", np.zeros((100, 85), np.float32))}
    params = DetectionParams(80, np.zeros(80, np.float32))
    with pytest.raises(ParserError):
        open_library(path).bbox_parser(NAME)(layers, NetworkInfo(416, 416, 3), params)


def test_label_file_has_a_name_for_every_class() -> None:
    assert len((EXAMPLE / "labels.txt").read_text().split("\n")) == 80 + 1

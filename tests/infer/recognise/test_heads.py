"""Whatever a model's outputs are: a reading, or an error that helps, never a crash."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import HeadraceError
from headrace.infer.recognise.recognise import recognise, recognise_for_init
from headrace.infer.starters.writing import files_for
from tests.infer.recognise.models import pixel_rows, rows_of
from tests.profiles import examples

NAMES = ["output0", "boxes", "scores", "dets", "labels", "detection_boxes", "detection_scores",
         "detection_classes", "num_detections", "pred_logits", "pred_boxes", "537", "x",
         "output_cov/Sigmoid", "output_bbox/BiasAdd"]  # fmt: skip
TASKS = ["detect", "segment", "classify", "obb"]
METADATA = st.sampled_from(
    [{}, {"names": "['a']", "stride": "32"}, {"character": "a\nb"}, {"mean": "[0]", "std": "[0]"},
     *({"author": "Ultralytics", "task": task, "names": "{0: 'a'}"} for task in TASKS)]
)  # fmt: skip
SHAPES = st.lists(st.sampled_from([0, 1, 2, 4, 5, 6, 7, 21, 84, 85, 100]), max_size=3)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shapes=st.lists(SHAPES, min_size=1, max_size=4),
    names=st.permutations(NAMES),
    scale=st.sampled_from([1.0, 64.0, -3.0, float("nan")]),
    whole=st.booleans(),
    metadata=METADATA,
    producer=st.sampled_from(["pytorch", "PaddlePaddle", "tf2onnx", ""]),
)
def test_any_outputs(
    shapes: list[list[int]], names: list[str], scale: float, whole: bool, **more: Any
) -> None:
    tables = []
    for shape in shapes:
        table = np.random.default_rng(0).random((1, *shape), np.float32) * np.float32(scale)
        tables.append(np.nan_to_num(table).astype(np.int64) if whole else table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        with suppress(HeadraceError):
            rows_of(path, tables, names=names[: len(tables)], doc="RGB / 255", **more)
            assert files_for(recognise_for_init(path, {}), path.parent)
            assert len(recognise(path).lines) == 3


def test_rows_of_centres_in_pixels(tmp_path: Path) -> None:
    rows = pixel_rows(3 * 84, 8)
    path = rows_of(tmp_path / "m.onnx", rows, doc="RGB / 255", metadata={"classes": "a,b,c"})
    found = recognise(path)
    assert found.config.parse_bbox_func_name == "HeadraceParseYoloV5"
    assert found.reading is not None
    assert "centres reach" in found.reading.why

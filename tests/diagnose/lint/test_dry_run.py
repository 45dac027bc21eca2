"""What is found about a config before it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.diagnose.lint.dry_run import dry_run
from tests.infer.models import node, write_config, write_model


def grid_model(folder: Path, shape: list[int | str]) -> None:
    """Columns (n, 84, cells) of an image of any size; the reshape asks for the batch at hand."""
    nodes = [
        node("Conv", ["image", "w"], ["c"], strides=[8, 8], kernel_shape=[8, 8]),
        node("Shape", ["c"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["batch"]),
        node("Concat", ["batch", "rest"], ["shape"], axis=0),
        node("Reshape", ["c", "shape"], ["out"]),
    ]
    constants = {
        "w": np.zeros((84, 3, 8, 8), np.float32),
        "zero": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "rest": np.array([84, -1], np.int64),
    }
    write_model(folder / "m.onnx", nodes, {"image": ["n", 3, "h", "w"]}, {"out": shape}, constants)


@pytest.mark.parametrize("shape", [["n", 84, "cells"], ["Concatout_dim_0", "unk__3", "floor(h/8)"]])
@pytest.mark.parametrize(
    ("parser", "fits"), [("NvDsInferParseYoloV11", True), ("NvDsInferParseCustomYoloV8", False)]
)
def test_free_axes_have_the_length_that_infer_dims_gives(
    tmp_path: Path, shape: list[int | str], parser: str, fits: bool
) -> None:
    grid_model(tmp_path, shape)
    config = write_config(
        tmp_path,
        onnx_file="m.onnx",
        infer_dims="3;160;160",
        num_detected_classes=80,
        parse_bbox_func_name=parser,
    )
    done = dry_run(ModelConfig.load(config))
    assert done.problems == []
    assert [spec.shape[1:] for spec in done.outputs] == [(84, 400)]
    told = [n.sentence for n in done.notices if "does not fit the model's outputs" in n.sentence]
    assert len(told) == (not fits)
    assert "3, h, w" in str(done.network and done.network.inputs[0])


def test_without_a_size_the_axes_stay_free(tmp_path: Path) -> None:
    grid_model(tmp_path, ["n", 84, "cells"])
    done = dry_run(ModelConfig.load(write_config(tmp_path, onnx_file="m.onnx")))
    assert [str(spec) for spec in done.outputs] == ["out float32[n, 84, cells]"]
    assert "set infer-dims" in str(done.problems[0])

"""How a tensor is named in messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.engine import BuildOptions, build
from headrace.network import network_from_onnx
from headrace.network.tensor_spec import TensorSpec, axis_name
from tests.network.onnx_models import image_model, save


@pytest.mark.parametrize(
    ("axis", "shown"),
    [
        (4, "4"),
        (None, "?"),
        ("batch_size", "batch_size"),
        ("N", "N"),
        ("num_boxes", "num_boxes"),
        ("", "?"),
        ("?", "?"),
        ("unk__123", "?"),
        ("Concatoutput0_dim_2", "?"),
        ("floor(height/32 - 1/32) + 1", "?"),
        ("p2o.DynamicDimension.0", "?"),
    ],
)
def test_only_names_that_a_person_chose_are_shown(axis: int | str | None, shown: str) -> None:
    spec = TensorSpec("out", np.dtype(np.float32), ("n", axis))
    assert str(spec) == f"out float32[n, {shown}]"
    assert spec.shape == ("n", axis)


@pytest.mark.parametrize("text", ["", "?", "None", "-1", None])
def test_placeholders_are_no_names(text: str | None) -> None:
    assert axis_name(text) is None
    assert axis_name("height") == "height"


@pytest.mark.parametrize("text", ["?", "None"])
def test_axes_that_have_one_placeholder_are_unrelated(text: str, tmp_path: Path) -> None:
    network = network_from_onnx(save(image_model((text, 3, text, text)), tmp_path / "m.onnx"))
    assert network.inputs[0].shape == (None, 3, None, None)
    x = np.ones((2, 3, 4, 6), np.float32)
    with build(network, BuildOptions(batched=False)).open_session() as session:
        assert session.run({"x": x})["doubled"].shape == x.shape
    options = BuildOptions(max_batch=2, infer_dims=(3, 4, 6))
    with build(network, options).open_session() as session:
        assert session.run({"x": x})["doubled"].shape == x.shape

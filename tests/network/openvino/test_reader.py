"""Layers, edges and texts of an OpenVINO model, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import ModelError
from headrace.network.openvino.reader import read_openvino
from tests.network.openvino.models import TEXT, written
from tests.profiles import examples


def test_tensors_layers_and_texts(tmp_path: Path) -> None:
    model = read_openvino(written(tmp_path))
    (image,) = model.inputs
    assert (image.name, image.dtype.name, image.shape) == ("images", "float32", (None, 3, 8, 8))
    (scores,) = model.outputs
    assert (scores.name, scores.shape) == ("b,c", (None, 4, 8, 8))
    assert [layer.kind for layer in model.layers.values()] == [
        "Parameter", "Const", "Convolution", "Result"
    ]  # fmt: skip
    assert model.layers["2"].inputs == [("0", "0"), ("1", "0")]
    assert model.info["model_info/labels"] == "cat dog"
    assert model.info["model_info/pre/mean"] == "1"
    assert model.weights == tmp_path / "net.bin"


def test_a_tensor_without_a_name_has_that_of_its_layer(tmp_path: Path) -> None:
    model = read_openvino(written(tmp_path, TEXT.replace(' names="images"', "")))
    assert model.inputs[0].name == "images"
    model = read_openvino(written(tmp_path, TEXT.replace(' names="b\\,c,scores"', "")))
    assert model.outputs[0].name == "conv"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('version="11"', 'version="7"', "of version 7"),
        ("<net ", "<nest ", "<nest>"),
        ('from-layer="1"', 'from-layer="9"', "which are not there"),
        ('from-port="2"', 'from-port="5"', "which are not there"),
        ('to-port="1"', 'to-port="x"', "which are not there"),
        ('type="Result"', 'type="Abs"', "no inputs or no outputs"),
        ('type="Parameter"', 'type="Abs"', "no inputs or no outputs"),
        ('"FP32" names="images"', '"U4" names="images"', "a tensor of U4"),
        ("</layers>", "", "damaged"),
        ("<net ", "<!DOCTYPE x [<!ENTITY a 'b'>]><net ", "declares entities"),
        ('<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />', "", "of nothing"),
    ],
)
def test_what_is_wrong_with_a_model(tmp_path: Path, old: str, new: str, problem: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    if old == "<net ":
        text = text.replace("</net>", "</nest>") if "nest" in new else text
    path = written(tmp_path, text)
    with pytest.raises(ModelError, match=problem) as caught:
        assert read_openvino(path).outputs  # those of the model are read when they are asked for
    assert str(path) in str(caught.value)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_text_is_refused_or_read(tmp_path: Path, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TEXT)))
    end = data.draw(st.integers(start, min(len(TEXT), start + 80)))
    text = TEXT[:start] + data.draw(st.sampled_from(["", "0", "-1", '"', "<a/>", "9" * 40]))
    path = written(tmp_path, text + TEXT[end:])
    try:
        model = read_openvino(path)
    except ModelError:
        return
    assert model.inputs
    assert model.outputs

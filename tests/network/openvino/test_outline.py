"""A bare OpenVINO model is recognised as the ONNX model that it was made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from headrace.infer.recognise.images import UndecidedError
from headrace.infer.recognise.recognise import recognise
from headrace.network.openvino.outline import outline_of
from headrace.network.openvino.reader import read_openvino
from tests.infer.recognise.models import rows_of
from tests.network.openvino.models import TEXT, converted, written
from tests.profiles import slow

KEYS = ("net_scale_factor", "offsets", "model_color_format", "maintain_aspect_ratio",
        "symmetric_padding", "num_detected_classes", "infer_dims")  # fmt: skip


def test_operators_have_the_names_of_onnx(tmp_path: Path) -> None:
    proto = outline_of(read_openvino(written(tmp_path)))
    (conv,) = proto.graph.node
    assert (conv.op_type, list(conv.input)) == ("Conv", ["images", "w"])
    (weights,) = proto.graph.initializer
    assert (weights.name, list(weights.dims)) == ("w", [4, 3, 1, 1])
    assert {e.key: e.value for e in weights.external_data} == {
        "location": "net.bin", "offset": "0", "length": "48"
    }  # fmt: skip


def test_layers_of_one_name_stay_apart(tmp_path: Path) -> None:
    text = TEXT.replace('name="w" type="Const"', 'name="conv" type="Const"')
    text = text.replace(' names="b\\,c,scores"', "")
    proto = outline_of(read_openvino(written(tmp_path, text)))
    (conv,) = proto.graph.node
    assert conv.input[1] != conv.output[0]
    assert conv.input[1] == proto.graph.initializer[0].name


def head(path: Path, spread: float) -> Path:
    rows = np.zeros((1, 84, 2100), np.float32)
    rows[0, :4] = np.random.default_rng(0).uniform(20, 300, (4, 2100))
    rows[0, 4:] = np.random.default_rng(1).uniform(0, 1, (80, 2100))
    return rows_of(path, rows, size=(320, 320), spread=spread)


@pytest.mark.parametrize("half", [slow(False), True])
def test_a_head_and_the_scaling_of_its_first_layer(tmp_path: Path, half: bool) -> None:
    same_in_both(head(tmp_path / "net.onnx", 2.0), half)


def test_what_is_undecided_is_asked_of_both(tmp_path: Path) -> None:
    onnx = head(tmp_path / "net.onnx", 500.0)
    texts = []
    for path in (onnx, converted(onnx)):
        with pytest.raises(UndecidedError) as caught:
            recognise(path)
        texts.append(str(caught.value).replace(str(path), "MODEL"))
    assert texts[0] == texts[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "half"),
    [
        slow("yolox_nano.onnx", False),
        slow("yolox_nano.onnx", True),
        slow("version-RFB-320.onnx", False),
        ("version-RFB-320.onnx", True),
    ],
)
def test_real_models(tmp_path: Path, data_dir: Path, half: bool, name: str) -> None:
    same_in_both(Path(shutil.copy(data_dir / "models" / name, tmp_path)), half)


def same_in_both(onnx: Path, half: bool) -> None:
    xml = converted(onnx, half=half)
    first, second = recognise(onnx), recognise(xml)
    assert first.names == second.names
    assert first.reading is not None
    assert second.reading is not None
    assert first.reading.parser == second.reading.parser
    for key in KEYS:
        value, other = getattr(first.config, key), getattr(second.config, key)
        assert other == (pytest.approx(value, rel=1e-3) if value else value), key

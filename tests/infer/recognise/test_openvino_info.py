"""Names, scaling and fit that an OpenVINO model says of itself, or the file beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.infer.recognise.openvino_info import openvino_texts
from headrace.network.openvino.reader import read_openvino
from tests.network.openvino.models import TEXT, written


def texts(folder: Path, **info: str) -> dict[str, str]:
    lines = "".join(f'<{key} value="{value}" />' for key, value in info.items())
    text = TEXT.replace('<labels value="cat dog" />', lines)
    return openvino_texts(read_openvino(written(folder, text)))


def test_labels_are_names_of_classes(tmp_path: Path) -> None:
    assert json.loads(texts(tmp_path, labels="traffic_light dog")["names"]) == [
        "traffic light", "dog"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("info", "mean", "deviation"),
    [
        ({"mean_values": "[127.5, 127.5, 127.5]"}, [0.5] * 3, [1 / 255] * 3),
        ({"scale_values": "255 255 255"}, [0.0] * 3, [1.0] * 3),
        ({"mean_values": "0", "scale_values": "255"}, [0.0], [1.0]),
        ({"mean_values": "1 2 3", "scale_values": "255"}, None, None),
        ({"mean_values": "1 2 3", "embedded_processing": "True"}, None, None),
        ({}, None, None),
    ],
)
def test_mean_and_deviation(tmp_path: Path, info, mean, deviation) -> None:
    found = texts(tmp_path, **info)
    assert json.loads(found.get("mean", "null")) == (mean and pytest.approx(mean))
    assert json.loads(found.get("std", "null")) == (deviation and pytest.approx(deviation))


def test_the_file_of_ultralytics_beside_goes_first(tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_text("task: detect\nnames:\n  0: hat\nimgsz:\n- 8\n- 8\n")
    found = texts(tmp_path, labels="cat dog")
    assert found["task"] == "detect"
    assert found["names"] == "{0: 'hat'}"


@pytest.mark.parametrize("text", ["- a list", "{", "a: [", "x" * ((1 << 22) + 1), "\0"])
def test_another_file_beside_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.yaml").write_text(text)
    assert json.loads(texts(tmp_path, labels="cat dog")["names"]) == ["cat", "dog"]

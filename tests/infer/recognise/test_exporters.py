"""Programs are known by what they leave in a file, and by nothing less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from headrace.infer.recognise import exporters
from headrace.infer.recognise.evidence import FileEvidence
from headrace.infer.recognise.exporters import Exporter, exporter_of
from headrace.infer.recognise.first_layers import weigh
from tests.infer.recognise.models import rows_of


def known(path: Path) -> Exporter | None:
    evidence = FileEvidence.read(path)
    found = exporter_of(evidence, weigh(evidence.stem))
    assert found is None or found[1]
    return found and found[0]


def test_a_plain_model_is_nobody_s(tmp_path: Path) -> None:
    assert known(rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]))) is None


@pytest.mark.parametrize(("metadata", "exporter"), [
    ({"author": "Ultralytics"}, exporters.ULTRALYTICS),
    ({"docs": "https://docs.ultralytics.com"}, exporters.ULTRALYTICS),
    ({"names": "['a']", "stride": "32"}, exporters.YOLOV5),
    ({"names": "['a']"}, None),
])  # fmt: skip
def test_metadata(tmp_path: Path, metadata: dict[str, str], exporter: Exporter | None) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]), metadata=metadata)
    assert known(path) is exporter


@pytest.mark.parametrize(("name", "exporter"), [
    ("torchvision.models.resnet.ResNet", exporters.TORCHVISION),
    ("timm.models.mobilenetv3.MobileNetV3", exporters.TIMM),
    ("timm.models.vision_transformer.VisionTransformer", exporters.PATCHES),
    ("ultralytics.nn.tasks.DetectionModel", exporters.ULTRALYTICS),
    ("my.own.Net", None),
])  # fmt: skip
def test_classes_of_pytorch_s_modules(tmp_path: Path, name: str, exporter: Exporter) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]))
    model = onnx.load(path)
    text = f"['{name}', 'torch.nn.modules.conv.Conv2d']"
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value=text)
    onnx.save(model, path)
    assert known(path) is exporter


def test_names_of_torchvision_s_modules(tmp_path: Path) -> None:
    path = rows_of(tmp_path / "m.onnx", np.float32([[0.5, 0.5]]))
    model: Any = onnx.load(path)
    for node, name in zip(model.graph.node, ("/features/0/Conv", "/avgpool/x", "/classifier/y"),
                          strict=False):  # fmt: skip
        node.name = name
    onnx.save(model, path)
    assert known(path) is exporters.TORCHVISION


@pytest.mark.parametrize(("names", "shapes", "exporter"), [
    (["dets", "labels"], [(1, 9, 5), (1, 9)], exporters.MMDET),
    (["pred_logits", "pred_boxes"], [(1, 9, 5), (1, 9, 4)], None),
    (["scores", "boxes"], [(1, 4420, 2), (1, 4420, 4)], exporters.ULTRAFACE),
    (["scores", "boxes"], [(1, 100, 2), (1, 100, 4)], None),
])  # fmt: skip
def test_names_and_shapes_of_outputs(
    tmp_path: Path, names: list[str], shapes: list[tuple[int, ...]], exporter: Exporter | None
) -> None:
    tables = [np.zeros(shape, np.float32) for shape in shapes]
    assert known(rows_of(tmp_path / "m.onnx", tables, names=names)) is exporter

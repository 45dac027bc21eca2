"""OpenVINO models: of OpenVINO itself where it is installed, else of text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WEIGHTS = np.arange(1, 13, dtype=np.float32).reshape(4, 3, 1, 1) / 12

TEXT = """<?xml version="1.0"?>
<net name="net" version="11">
 <layers>
  <layer id="0" name="images" type="Parameter" version="opset1">
   <data shape="?,3,8,8" element_type="f32" />
   <output><port id="0" precision="FP32" names="images">
    <dim>-1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port></output>
  </layer>
  <layer id="1" name="w" type="Const" version="opset1">
   <data element_type="f32" shape="4, 3, 1, 1" offset="0" size="48" />
   <output><port id="0" precision="FP32">
    <dim>4</dim><dim>3</dim><dim>1</dim><dim>1</dim></port></output>
  </layer>
  <layer id="2" name="conv" type="Convolution" version="opset1">
   <data strides="1, 1" dilations="1, 1" pads_begin="0, 0" pads_end="0, 0" auto_pad="explicit" />
   <input>
    <port id="0" precision="FP32"><dim>-1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>
    <port id="1" precision="FP32"><dim>4</dim><dim>3</dim><dim>1</dim><dim>1</dim></port>
   </input>
   <output><port id="2" precision="FP32" names="b\\,c,scores">
    <dim>-1</dim><dim>4</dim><dim>8</dim><dim>8</dim></port></output>
  </layer>
  <layer id="3" name="scores/sink" type="Result" version="opset1">
   <input><port id="0" precision="FP32">
    <dim>-1</dim><dim>4</dim><dim>8</dim><dim>8</dim></port></input>
  </layer>
 </layers>
 <edges>
  <edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
  <edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
  <edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
 </edges>
 <rt_info>
  <Runtime_version value="2026.4.1-22982-releases/2026/4" />
  <info name="model_info"><labels value="cat dog" />
   <info name="pre"><mean value="1" /></info></info>
 </rt_info>
</net>
"""


def written(folder: Path, text: str = TEXT, weights: bytes = WEIGHTS.tobytes()) -> Path:
    """Write the two files of a model."""
    folder.mkdir(exist_ok=True)
    path = folder / "net.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(weights)
    return path


def converted(onnx: Path, *, half: bool = False, info: dict[str, Any] | None = None) -> Path:
    """Convert an ONNX model with OpenVINO; skip the test where it is not installed."""
    ov = pytest.importorskip("openvino")
    model = ov.convert_model(onnx)
    for key, value in (info or {}).items():
        model.set_rt_info(value, ["model_info", key])
    path = onnx.with_suffix(".xml")
    ov.save_model(model, path, compress_to_fp16=half)
    return path


def answers(path: Path, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of the model as OpenVINO itself computes them."""
    ov = pytest.importorskip("openvino")
    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(list(feeds))
    return [np.array(results[port]) for port in results]

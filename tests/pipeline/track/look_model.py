"""A made ReID model, and images of objects that it can tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper


def write_model(path: Path, *, last: bool = False) -> Path:
    """Colours of 4 x 2 parts of a crop of 32 x 16 pixels, as 24 numbers."""
    nodes = [
        helper.make_node("AveragePool", ["planar"], ["means"], kernel_shape=[8, 8], strides=[8, 8]),
        helper.make_node("Flatten", ["means"], ["look"], axis=1),
    ]
    shape: list[str | int] = ["n", 3, 32, 16]
    if last:
        shape = ["n", 32, 16, 3]
        nodes.insert(0, helper.make_node("Transpose", ["image"], ["planar"], perm=[0, 3, 1, 2]))
    else:
        nodes.insert(0, helper.make_node("Identity", ["image"], ["planar"]))
    graph = helper.make_graph(
        nodes,
        "looks",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("look", TensorProto.FLOAT, ["n", 24])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


REID = """ReID:
  reidType: {kind}
  onnxFile: looks.onnx
  batchSize: 3
  reidFeatureSize: 24
  inferDims: [3, 32, 16]
  inputOrder: 0
  netScaleFactor: 0.00784
  offsets: [127.5, 127.5, 127.5]
  addFeatureNormalization: 1
  keepAspc: 0
"""


def crossing(step: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Places of two objects that meet in the middle and turn back."""
    away = abs(step - 20) * 5
    return (140 - away, 80), (140 + away, 115)


def colors() -> tuple[np.ndarray, np.ndarray]:
    """Patches of 60 x 40 pixels, of which each half has a colour."""
    patches = []
    for top, bottom in (((220, 40, 40), (40, 40, 220)), ((40, 200, 60), (230, 220, 40))):
        patch = np.empty((60, 40, 3), np.uint8)
        patch[:30], patch[30:] = top, bottom
        patches.append(patch)
    return patches[0], patches[1]

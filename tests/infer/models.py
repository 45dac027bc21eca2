"""Small ONNX models, written by the tests that run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import NodeProto, TensorProto, helper

Shapes = Mapping[str, Sequence[int | str]]
node = helper.make_node


def write_model(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: Mapping[str, Any] | None = None,
) -> Path:
    """A graph of float32 inputs and outputs; constants are NumPy arrays."""
    graph = helper.make_graph(
        list(nodes),
        path.stem,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in outputs.items()],
        [onnx.numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def write_config(folder: Path, text: str = "", **keys: Any) -> Path:
    """A config file; keyword `a_b=1` is the key `a-b=1`, None leaves one out."""
    values = {"gie_unique_id": 1, "net_scale_factor": 1} | keys
    lines = [f"{k.replace('_', '-')}={v}" for k, v in values.items() if v is not None]
    path = folder / "config.txt"
    path.write_text("[property]\n" + "\n".join(lines) + "\n" + text)
    return path

"""Copies of models for images of another size than they were written with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from headrace._core.errors import ModelError
from headrace.network import network_from_onnx


def resized(path: Path, width: int, height: int) -> bytes:
    """Copy a model, as bytes, for images of this size in its first input.

    Only models of layers that slide over an image can be changed so: one that joins cells to
    fixed vectors stays as it is.

    Args:
        path: the model; its first input has planes of fixed size.
        width, height: in pixels.

    Raises:
        ModelError: the graph has numbers in it that fit the old size only.
    """
    network = network_from_onnx(path)
    proto = network.to_proto()
    first = network.inputs[0].name
    first_input = next(value for value in proto.graph.input if value.name == first)
    axes = first_input.type.tensor_type.shape.dim
    planes = axes[1].dim_value in (1, 3)
    rows, columns = (2, 3) if planes else (1, 2)
    axes[0].dim_param = "batch"
    axes[rows].dim_value, axes[columns].dim_value = height, width
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return _checked(proto, path, width, height)


def _checked(proto: Any, path: Path, width: int, height: int) -> bytes:
    """The bytes if shapes can be inferred all the way to the outputs."""
    try:
        done = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    except Exception as error:  # shape inference meets the files of other programs
        text = next(iter(str(error).splitlines()), "")[:200]
        raise _stiff(path, width, height, text) from error
    if not all(o.type.tensor_type.HasField("shape") for o in done.graph.output):
        raise _stiff(path, width, height, "shapes of the outputs stay unknown")
    return bytes(done.SerializeToString())


def _stiff(path: Path, width: int, height: int, why: str) -> ModelError:
    return ModelError(
        f"it cannot be changed to images of {width}x{height}: {why}",
        where=str(path),
        fix="export the model with free height and width, or for this size",
    )

"""Small ONNX models, each with what one exporter leaves in its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

node = helper.make_node
SPREAD = 0.27 * 255  # of natural images, as the recognition takes them


def save(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str]],
    *,
    constants: Mapping[str, Any] | None = None,
    metadata: Mapping[str, str] | None = None,
    producer: str = "pytorch",
    graph: str = "main_graph",
    doc: str = "",
    dtypes: Mapping[str, int] | None = None,
) -> Path:
    """Write a graph; constants are NumPy arrays, everything is float32 unless `dtypes` says so."""
    kinds = dtypes or {}

    def info(name: str, shape: Sequence[int | str]) -> Any:
        return helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), list(shape))

    made = helper.make_graph(
        list(nodes),
        graph,
        [info(n, s) for n, s in inputs.items()],
        [info(n, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(
        made, opset_imports=opset, ir_version=8, producer_name=producer, doc_string=doc
    )
    helper.set_model_props(model, dict(metadata or {}))
    onnx.save(model, path)
    return path


def filters(channels: int, spread: float, count: int = 8) -> Any:
    """(count, channels, 3, 3) weights that answer images in 0..255 with about this spread."""
    rng = np.random.default_rng(1)
    weights = np.ones((count, channels, 3, 3), np.float32)
    weights *= rng.choice([-1, 1], (count, 1, 1, 1))
    return (weights * np.float32(spread / (channels * 9 * SPREAD))).astype(np.float32)


def rows_of(
    path: Path,
    rows: Any,
    *,
    size: tuple[int | str, int | str] = (64, 64),
    spread: float = 500.0,
    names: Sequence[str] = ("output0",),
    image: str = "images",
    focus: bool = False,
    **more: Any,
) -> Path:
    """A model that answers every image with the same numbers, whatever it sees.

    Args:
        path: to write to.
        rows: an array for each output, with its batch axis of 1; or one array.
        size: height and width of the input.
        spread: see `filters`.
        names: of the outputs.
        image: name of the input.
        focus: begin with strided slices.
        more: for `save`.
    """
    tables = [rows] if isinstance(rows, np.ndarray) else list(rows)
    channels = 12 if focus else 3
    nodes, source = [], image
    constants: dict[str, Any] = {"w": filters(channels, spread)}
    if focus:
        constants |= {"axes": np.int64([2, 3]), "ends": np.int64([9999, 9999]),
                      "steps": np.int64([2, 2])}  # fmt: skip
        for k, start in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
            constants[f"start{k}"] = np.int64(start)
            slots = [image, f"start{k}", "ends", "axes", "steps"]
            nodes.append(node("Slice", slots, [f"part{k}"]))
        nodes.append(node("Concat", [f"part{k}" for k in range(4)], ["parts"], axis=1))
        source = "parts"
    nodes += [
        node("Conv", [source, "w"], ["seen"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("ReduceMean", ["seen"], ["mean"], axes=[1, 2, 3], keepdims=0),
        node("Mul", ["mean", "zero"], ["nothing"]),
        node("ReduceSum", ["nothing"], ["none"], keepdims=0),
    ]
    constants["zero"] = np.float32(0)
    outputs = {}
    kinds = dict(more.pop("dtypes", {}))
    for name, table in zip(names, tables, strict=True):
        constants[f"{name}_values"] = table
        if table.dtype.kind == "i":
            kinds[name] = TensorProto.INT64
            nodes += [node("Cast", ["none"], [f"{name}_none"], to=TensorProto.INT64)]
        else:
            nodes += [node("Identity", ["none"], [f"{name}_none"])]
        nodes.append(node("Add", [f"{name}_values", f"{name}_none"], [name]))
        outputs[name] = table.shape
    return save(path, nodes, {image: [1, 3, *size]}, outputs, constants=constants, dtypes=kinds,
                **more)  # fmt: skip


def pixel_rows(count: int, width: int, *, size: int = 64, seed: int = 0) -> Any:
    """(1, count, width) rows of centre boxes in pixels, and scores within 0..1."""
    rng = np.random.default_rng(seed)
    rows = rng.random((1, count, width), np.float32)
    rows[..., :4] *= size
    rows[..., 4:] *= np.float32(0.2)
    return rows


def cells(size: int = 64) -> int:
    """How many cells the usual three grids have."""
    return sum((size // s) ** 2 for s in (8, 16, 32))

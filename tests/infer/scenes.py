"""Frames with coloured patches, and metadata that says where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.losses import InferenceLosses
from headrace.media import Frame, PixelFormat
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, Space

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "dark": (0, 0, 0)}
Patch = tuple[str, tuple[int, int, int, int]]
Config = Callable[..., Path]


def image(
    patches: Sequence[Patch],
    *,
    number: int = 0,
    source: int = 0,
    size: tuple[int, int] = (160, 120),
) -> Frame:
    """A grey RGB frame with rectangles (left, top, width, height) of plain colours."""
    width, height = size
    pixels = np.full((height, width, 3), 60, np.uint8)
    for color, (left, top, w, h) in patches:
        pixels[top : top + h, left : left + w] = COLORS[color]
    name = f"test{source}"
    return Frame.from_array(
        pixels, PixelFormat.RGB, frame=number, source=name, source_id=source, pts_ns=number * 10**9
    )


def batch_of(
    scenes: Sequence[Sequence[Patch]],
    *,
    number: int = 0,
    ids: Sequence[int] | None = None,
    component: int = 1,
    class_id: int = 0,
) -> Batch:
    """One frame of each source with its patches as objects of a detector."""
    batch = Batch.of(
        [image(p, number=number, source=i) for i, p in enumerate(scenes)], buffer=number
    )
    for meta, patches in zip(batch.metas, scenes, strict=True):
        boxes = np.array([box for _, box in patches], np.float32).reshape(-1, 4)
        count = len(boxes)
        found = Detections(
            boxes, np.ones(count), np.full(count, class_id), space=Space.FRAME
        )  # fmt: skip
        meta.objects.append(found, component, labels=["thing"])
        if ids is not None:
            meta.objects.object_ids[:] = ids[:count]
        else:
            meta.objects.object_ids[:] = UNTRACKED_OBJECT_ID
    return batch


def classifier(mean_config: Config, **keys: Any) -> Path:
    """A secondary config whose model says which of red, green, blue a crop is."""
    settings: dict[str, Any] = {
        "gie_unique_id": 2,
        "process_mode": 2,
        "network_type": 1,
        "classifier_threshold": 0.5,
        "num_detected_classes": None,
        "cluster_mode": None,
        "custom_lib_path": None,
        "parse_bbox_func_name": None,
    } | keys
    path = mean_config(**settings)
    if "labelfile_path" not in keys:
        (path.parent / "labels.txt").write_text("red;green;blue\n")
    return path


def texts(batch: Batch) -> list[list[str]]:
    """The display text of every object of every frame."""
    return [[m.objects.display_text(i) for i in range(len(m.objects))] for m in batch.metas]


def ran(model: Inferencer, batch: Batch) -> int:
    """Process a batch; how many items went through the engine."""
    before = model.inferred_items
    model.process(batch)
    return model.inferred_items - before


def looked_at(model: Inferencer, frames: int = 1) -> InferenceLosses:
    """The losses of a model after frames of 64x64 pixels."""
    for number in range(frames):
        model.process([image([], number=number, size=(64, 64))])
    return model.losses


def write_identity(
    path: Path, *, batch: int | str = "n", size: int = 8, width: int | None = None
) -> None:
    """An ONNX model whose output (batch, 3, size, width or size) is its input."""
    shape = [batch, 3, size, size if width is None else width]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["image"], ["out"])],
        "identity",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)

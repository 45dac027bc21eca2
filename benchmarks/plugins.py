"""Standard plugins on one core, against NumPy with OpenCV's NMS where there is one; what tensors in
other formats cost beside a copy of the same bytes, and what the checks of each run do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np

from benchmarks.common import Row, compare, in_turns
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import (
    DataType,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginFieldCollection,
    TensorFormat,
    array_at,
)
from headrace.plugins.drivers import add_layer
from headrace.plugins.forms import TensorForm
from headrace.plugins.layer import Ranges
from headrace.plugins.standard import standard_layers
from headrace.plugins.standard.fields import Given

BOXES, CLASSES, KEEP = 8400, 80, 100
THRESHOLD, IOU = 0.25, 0.45


def rows() -> Iterable[Row]:
    cv2.setNumThreads(1)
    for name, fields in (("EfficientNMS_TRT", EFFICIENT), ("BatchedNMS_TRT", BATCHED)):
        for hot in (500, 5000, 50_000):
            yield _nms(name, fields, hot)
    for kind, order in PACKED:
        yield from _repacked(TensorForm(DataType[kind], TensorFormat[order]))
    yield _checks()


PACKED = (("HALF", "CHW2"), ("HALF", "HWC8"), ("FLOAT", "CHW32"), ("INT8", "CHW4"),
          ("INT8", "CHW32"), ("FLOAT", "HWC"))  # fmt: skip
TENSOR = (1, 64, 208, 208)


EFFICIENT = {
    "score_threshold": THRESHOLD,
    "iou_threshold": IOU,
    "max_output_boxes": KEEP,
    "background_class": -1,
    "score_activation": 0,
    "box_coding": 0,
    "class_agnostic": 0,
}
BATCHED = {
    "shareLocation": 1,
    "backgroundLabelId": -1,
    "numClasses": CLASSES,
    "topK": 1000,
    "keepTopK": KEEP,
    "scoreThreshold": THRESHOLD,
    "iouThreshold": IOU,
    "isNormalized": 1,
    "clipBoxes": 0,
    "scoreBits": 16,
    "caffeSemantics": 1,
}


def _nms(name: str, fields: dict[str, Any], hot: int) -> Row:
    """`hot` of the 672,000 scores are over the threshold."""
    rng = np.random.default_rng(0)
    corners = np.empty((1, BOXES, 1, 4), np.float32)
    corners[..., :2] = rng.uniform(0, 560, (1, BOXES, 1, 2))
    corners[..., 2:] = corners[..., :2] + rng.uniform(10, 80, (1, BOXES, 1, 2))
    scores = rng.uniform(0, 0.2, (1, BOXES, CLASSES)).astype(np.float32)
    some = rng.choice(BOXES * CLASSES, hot, replace=False)
    scores.reshape(-1)[some] = rng.uniform(0.3, 1, hot)
    layer = _layer(name, fields)
    outputs = [
        np.empty(shape, np.int32 if k in layer.integer_outputs else np.float32)
        for k, shape in enumerate(layer.shapes([corners.shape, scores.shape]))
    ]

    def opencv() -> Any:
        box, label = np.nonzero(scores[0] >= THRESHOLD)
        left_top, right_bottom = corners[0, box, 0, :2], corners[0, box, 0, 2:]
        rects = np.concatenate([left_top, right_bottom - left_top], axis=1)
        found = scores[0, box, label]
        return cv2.dnn.NMSBoxesBatched(rects, found, label, THRESHOLD, IOU, 1.0, 5000)[:KEEP]

    return compare(
        f"{name} 8400 x 80, {KEEP} out, {hot:,} candidates; NumPy + cv2.dnn.NMSBoxesBatched",
        lambda: layer.run([corners, scores], outputs),
        opencv,
        repeat=31 if hot == 500 else 7,
    )


def _layer(name: str, fields: dict[str, Any]) -> Any:
    kind = next(layer for layer in standard_layers() if layer.name == name)
    return kind(Given(fields), name)


def _repacked(form: TensorForm) -> Iterable[Row]:
    """Both ways of a format, against copies of as many bytes."""
    x = np.random.default_rng(0).integers(-99, 99, TENSOR).astype(form.storage)
    packed = form.pack(x)
    megabytes = x.nbytes / 1e6
    yield in_turns(f"{form}, {megabytes:.1f} MB; a copy", lambda: form.pack(x), x.copy, repeat=41)
    yield in_turns(
        f"{form} back; a copy", lambda: form.unpack(packed, TENSOR), packed.copy, repeat=41
    )


def _checks() -> Row:
    """Runs of a plugin of 1 MB in memory that is asked for, with the checks of each run; without"""
    layer = add_layer(Doubled(), layer="doubled", input_types=[DataType.FLOAT])
    shape = (1, 16, 128, 128)
    ranges = Ranges((shape,), (shape,), (shape,))
    plugin = layer.build(
        [TensorSpec("x", np.dtype(np.float32), shape)], [np.dtype(np.float32)], [ranges]
    )
    plugin.finish()
    context = plugin.context()
    x, y = np.ones(shape, np.float32), np.empty(shape, np.float32)
    inputs = [(x.ctypes.data, shape)]

    place = y.ctypes.data

    def asked(index: int, shape: tuple[int, ...]) -> int:
        return place

    def checked() -> None:
        context.run_at(inputs, asked)

    checked()
    now, _ = context.prepared([x])

    def alone() -> None:
        context.enqueue_at(now, [at for at, _ in inputs], [asked(0, shape)], 0)

    return in_turns("checks of each run, a plugin of 1 MB; the plugin", checked, alone, repeat=201)


class Doubled(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    """y = 2 x"""

    def __init__(self) -> None:
        IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = "Doubled", "1", ""
        self.num_outputs = 1

    def clone(self) -> Doubled:
        return Doubled()

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, expr_builder: Any) -> Any:
        return [inputs[0]]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return bool(in_out[pos].desc.type == DataType.FLOAT)

    def attach_to_context(self, context: Any) -> Doubled:
        return self.clone()

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        return PluginFieldCollection([])

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        x = array_at(inputs[0], ins[0].dims, np.float32)
        np.multiply(x, 2, out=array_at(outputs[0], ins[0].dims, np.float32, writable=True))

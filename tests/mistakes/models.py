"""Small models that find the painted squares, each exported as the tools of the field do.

All share one body: a 1x1 convolution that answers to each of three colours, and a mean over 32x32
pixels at every eighth, so that a square of 32 pixels on the grid has the score 1 and its
neighbours have less. They differ in what comes before (the range, order and layout of the input)
and after (the head), and in the metadata that the exporters leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper

from tests.mistakes.scene import NAMES

Array = npt.NDArray[Any]
WIDTH, HEIGHT = 160, 128
CELLS = WIDTH // 8 * HEIGHT // 8
STRIDES = (8, 16, 32)
ROWS = sum(WIDTH // s * HEIGHT // s for s in STRIDES)


@dataclass
class Graph:
    """An ONNX graph under construction."""

    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def add(self, kind: str, *inputs: str | Array, out: str | None = None, **attrs: Any) -> str:
        """Append a node of one output; arrays become constants. Returns the output's name."""
        name = out or f"{kind.lower()}_{len(self.nodes)}"
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(kind, names, [name], name=f"/{name}", **attrs))
        return name

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def save(
        self,
        path: Path,
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Mapping[str, Sequence[int | str]],
        *,
        producer: str = "pytorch",
        meta: Mapping[str, str] | None = None,
        integers: Sequence[str] = (),
    ) -> None:
        """Write the model; values are float32, those in `integers` int32."""

        def infos(values: Mapping[str, Sequence[int | str]]) -> list[Any]:
            kinds = {n: TensorProto.INT32 if n in integers else TensorProto.FLOAT for n in values}
            return [helper.make_tensor_value_info(n, kinds[n], list(s)) for n, s in values.items()]

        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            infos(inputs),
            infos(outputs),
            [onnx.numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
            producer_name=producer,
        )
        helper.set_model_props(model, dict(meta or {}))
        onnx.save(model, path)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _colors(
    graph: Graph, image: str, *, scale: float = 1.0, bgr: bool = False, mean: float = 0.0,
    norm: bool = False,
) -> str:  # fmt: skip
    """How much each pixel has of each colour, about 1 on a square and 0 beside it.

    Args:
        graph: to append to.
        image: the input.
        scale: factor from the input's values to 0..1.
        bgr: blue comes first.
        mean: the input's value where the image is black, in units of 0..1.
        norm: a BatchNormalization with the statistics of such images follows.
    """
    mix = _f([[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]]) * 1.75
    if bgr:
        mix = mix[:, ::-1].copy()
    bias = -mix.sum(1) * mean - 0.1
    weights = (mix * scale).reshape(3, 3, 1, 1)
    if not norm:
        return graph.add("Relu", graph.add("Conv", image, weights, _f(bias)))
    # a fourth channel is how bright it is; what is brighter than any square is none
    weights = np.concatenate([weights, np.full((1, 3, 1, 1), scale / 3, np.float32)])
    found = graph.add("Conv", image, weights)
    # after it: (x - mean) / deviation * gain + shift is x + bias again
    means, variances = _f([*(0.02 - bias - 0.1), 0.41 - mean]), _f([0.06, 0.06, 0.06, 0.02])
    gains = np.sqrt(variances + 1e-5)
    shifts = means + _f([*bias, mean - 0.75])
    found = graph.add("BatchNormalization", found, gains, _f(shifts), means, variances)
    gate = np.concatenate([np.eye(3), np.full((3, 1), -5.0)], axis=1)
    found = graph.add("Conv", graph.add("Relu", found), _f(gate).reshape(3, 4, 1, 1))
    return graph.add("Relu", found)


def _mean(graph: Graph, colors: str) -> str:
    """How much of each colour (n, 3, HEIGHT/8, WIDTH/8) is in the square around each cell."""
    weights = _f(np.eye(3)[:, :, None, None] * np.ones((1, 1, 32, 32)) / 1024)
    return graph.add("Conv", colors, weights, strides=[8, 8], pads=[12, 12, 12, 12])


def _logits(graph: Graph, mean: str) -> str:
    return graph.add("Add", graph.add("Mul", mean, _f(16)), _f(-10.4))


def _shift(graph: Graph, mean: str) -> str:
    """Pixels (n, 2, HEIGHT/8, WIDTH/8) from a cell's centre to that of the square it is on."""
    to_right = np.zeros((3, 3, 3), np.float32)
    to_right[:, 1, 0], to_right[:, 1, 2] = -16, 16
    weights = np.stack([to_right, to_right.transpose(0, 2, 1)])
    return graph.add("Conv", mean, weights, pads=[1, 1, 1, 1])


def _flat(graph: Graph, value: str, channels: int) -> str:
    return graph.add("Reshape", value, np.array([0, channels, -1]))


def _grid() -> tuple[Array, Array, Array]:
    parts = []
    for stride in STRIDES:
        y, x = np.mgrid[: HEIGHT // stride, : WIDTH // stride]
        parts.append(np.stack([x.ravel(), y.ravel(), np.full(x.size, stride)]))
    x, y, stride = np.concatenate(parts, 1).astype(np.float32)
    return x, y, stride


def _scores(graph: Graph, mean: str) -> str:
    """Logits (n, 3, ROWS): the cells of stride 8, and coarser ones that find nothing."""
    fine = _logits(graph, mean)
    parts = [_flat(graph, fine, 3)]
    for stride in STRIDES[1:]:
        size = stride // 8
        coarse = graph.add("AveragePool", fine, kernel_shape=[size, size], strides=[size, size])
        coarse = graph.add("Sub", graph.add("Mul", coarse, _f(0.1)), _f(8))
        parts.append(_flat(graph, coarse, 3))
    return graph.add("Concat", *parts, axis=2)


def _boxes(graph: Graph, mean: str, values: Array, gains: Sequence[float]) -> str:
    """Boxes (n, 4, ROWS): constant `values`, moved by the shift across and down times `gains`."""
    shift = _flat(graph, _shift(graph, mean), 2)
    shift = graph.add("Pad", shift, np.array([0, 0, 0, 0, 0, ROWS - CELLS]))
    shift = graph.add("Concat", shift, shift, axis=1)
    return graph.add("Add", graph.add("Mul", shift, _f(gains).reshape(1, 4, 1)), _f(values)[None])


def _centres(unit: bool = False, corners: bool = False) -> tuple[Array, Array]:
    """Values and gains of `_boxes`: centre and size or corners, in pixels or 0..1."""
    x, y, stride = _grid()
    cx, cy = (x + 0.5) * stride, (y + 0.5) * stride
    side = np.where(stride == 8, 4, 1) * stride
    values, gains = np.stack([cx, cy, side, side]), _f([1, 1, 0, 0])
    if corners:
        half = side / 2
        values, gains = np.stack([cx - half, cy - half, cx + half, cy + half]), _f([1, 1, 1, 1])
    size = _f([WIDTH, HEIGHT, WIDTH, HEIGHT]) if unit else _f([1, 1, 1, 1])
    return values / size[:, None], gains / size


def ultralytics(names: Sequence[str] = NAMES, task: str = "detect") -> dict[str, str]:
    """Metadata as Ultralytics writes it."""
    return {
        "description": "Ultralytics YOLOv8n model trained on data.yaml",
        "author": "Ultralytics",
        "version": "8.3.40",
        "task": task,
        "stride": "32",
        "batch": "1",
        "imgsz": str([HEIGHT, WIDTH]),
        "names": str(dict(enumerate(names))),
    }


IMAGE = {"images": (1, 3, HEIGHT, WIDTH)}


def yolov8(
    path: Path, *, logits: bool = False, unit: bool = False, corners: bool = False,
    names: Sequence[str] = NAMES, meta: bool = True,
) -> None:  # fmt: skip
    """Ultralytics: RGB in 0..1, `output0` [4+3, N] of centre boxes in pixels and scores.

    `logits`, `unit`, `corners`: exports that leave out the sigmoid, give boxes in 0..1, or corners.
    """
    graph = Graph()
    mean = _mean(graph, _colors(graph, "images"))
    scores = _scores(graph, mean)
    if not logits:
        scores = graph.add("Sigmoid", scores)
    boxes = _boxes(graph, mean, *_centres(unit, corners))
    graph.add("Concat", boxes, scores, axis=1, out="output0")
    props = ultralytics(names) if meta else {}
    graph.save(path, IMAGE, {"output0": (1, 7, ROWS)}, meta=props)


def yolov5(path: Path) -> None:
    """Ultralytics: RGB in 0..1, `output0` [N, 5+3] with objectness."""
    graph = Graph()
    mean = _mean(graph, _colors(graph, "images"))
    scores = graph.add("Sigmoid", _scores(graph, mean))
    best = graph.add("ReduceMax", scores, axes=[1], keepdims=1)
    rows = graph.add("Concat", _boxes(graph, mean, *_centres()), best, scores, axis=1)
    graph.add("Transpose", rows, perm=[0, 2, 1], out="output0")
    meta = {"stride": "32", "names": str(dict(enumerate(NAMES)))}
    graph.save(path, IMAGE, {"output0": (1, ROWS, 8)}, meta=meta)


def yolox(path: Path) -> None:
    """YOLOX: BGR in 0..255, `output` [N, 5+3] of offsets in the grid."""
    graph = Graph()
    mean = _mean(graph, _colors(graph, "images", scale=1 / 255, bgr=True))
    scores = graph.add("Sigmoid", _scores(graph, mean))
    best = graph.add("ReduceMax", scores, axes=[1], keepdims=1)
    ones = np.ones(ROWS)
    offsets = np.stack([ones / 2, ones / 2, ones * np.log(4), ones * np.log(4)])
    rows = graph.add(
        "Concat", _boxes(graph, mean, offsets, [1 / 8, 1 / 8, 0, 0]), best, scores, axis=1
    )
    graph.add("Transpose", rows, perm=[0, 2, 1], out="output")
    graph.save(path, IMAGE, {"output": (1, ROWS, 8)})


def ssd(path: Path) -> None:
    """SSD, RFB: RGB in -1..1 (mean 127.5), `boxes` [N, 4] corners in 0..1, `scores` [N, 4].

    The first score is the background's. BatchNormalization is not folded.
    """
    graph = Graph()
    mean = _mean(graph, _colors(graph, "input", scale=0.5, mean=0.5, norm=True))
    logits = _scores(graph, mean)
    none = graph.add("Mul", graph.add("ReduceMax", logits, axes=[1], keepdims=1), _f(-1))
    scores = graph.add("Softmax", graph.add("Concat", none, logits, axis=1), axis=1)
    boxes = _boxes(graph, mean, *_centres(unit=True, corners=True))
    graph.add("Transpose", scores, perm=[0, 2, 1], out="scores")
    graph.add("Transpose", boxes, perm=[0, 2, 1], out="boxes")
    outputs = {"scores": (1, ROWS, 4), "boxes": (1, ROWS, 4)}
    graph.save(path, {"input": (1, 3, HEIGHT, WIDTH)}, outputs)


def detectnet(path: Path) -> None:
    """TAO DetectNet_v2: RGB in 0..1, coverage and box grids of 8 pixels."""
    graph = Graph()
    mean = _mean(graph, _colors(graph, "input_1"))
    graph.add("Sigmoid", _logits(graph, mean), out="output_cov/Sigmoid")
    # distances from half a pixel inside each cell
    sides = _f(np.tile([12.5, 12.5, 19.5, 19.5], 3).reshape(1, 12, 1, 1) / 35)
    shift = graph.add("Mul", _shift(graph, mean), _f(1 / 35))
    shift = graph.add("Concat", *[graph.add("Neg", shift), shift] * 3, axis=1)
    graph.add("Add", shift, sides, out="output_bbox/BiasAdd")
    h, w = HEIGHT // 8, WIDTH // 8
    outputs = {"output_cov/Sigmoid": (1, 3, h, w), "output_bbox/BiasAdd": (1, 12, h, w)}
    graph.save(path, {"input_1": (1, 3, HEIGHT, WIDTH)}, outputs, producer="keras2onnx")


def with_nms(path: Path) -> None:
    """Ultralytics with `nms=True` after it, as EfficientNMS gives it: corners in pixels."""
    graph = Graph()
    mean = _mean(graph, _colors(graph, "images"))
    scores = graph.add("Sigmoid", _scores(graph, mean))
    boxes = _boxes(graph, mean, *_centres(corners=True))
    boxes = graph.add("Transpose", boxes, perm=[0, 2, 1])
    chosen = graph.add(
        "NonMaxSuppression", boxes, scores, np.array([20]), _f([0.45]), _f([0.25])
    )  # rows of image, class, box
    count = graph.add("Shape", chosen)
    count = graph.add("Gather", count, np.array([0]))
    room = np.concatenate([np.zeros((20, 2)), np.full((20, 1), ROWS - 1)], 1).astype(np.int64)
    padded = graph.add("Concat", chosen, graph.constant(room), axis=0)
    padded = graph.add("Slice", padded, np.array([0]), np.array([20]), np.array([0]))
    kinds = graph.add("Gather", padded, np.array(1), axis=1)
    places = graph.add("Gather", padded, np.array(2), axis=1)
    both = graph.add("Slice", padded, np.array([0]), np.array([3]), np.array([1]))
    flat = graph.add("GatherND", scores, both)
    graph.add("Reshape", flat, np.array([1, 20]), out="det_scores")
    graph.add("Gather", boxes, places, axis=1, out="det_boxes")
    cast = graph.add("Cast", kinds, to=TensorProto.INT32)
    graph.add("Reshape", cast, np.array([1, 20]), out="det_classes")
    cast = graph.add("Cast", count, to=TensorProto.INT32)
    graph.add("Reshape", cast, np.array([1, 1]), out="num_dets")
    outputs = {
        "num_dets": (1, 1), "det_boxes": (1, 20, 4), "det_scores": (1, 20), "det_classes": (1, 20)
    }  # fmt: skip
    graph.save(path, IMAGE, outputs, integers=("num_dets", "det_classes"))


def channels_last(path: Path) -> None:
    """The YOLOv8 of a TensorFlow export: the input is [HEIGHT, WIDTH, 3]."""
    graph = Graph()
    image = graph.add("Transpose", "images", perm=[0, 3, 1, 2])
    mean = _mean(graph, _colors(graph, image))
    scores = graph.add("Sigmoid", _scores(graph, mean))
    boxes = _boxes(graph, mean, *_centres())
    graph.add("Concat", boxes, scores, axis=1, out="output0")
    shape = {"images": (1, HEIGHT, WIDTH, 3)}
    graph.save(path, shape, {"output0": (1, 7, ROWS)}, producer="tf2onnx")


def classifier(path: Path) -> None:
    """torchvision: RGB, mean and deviation of ImageNet, `prob` [3] after a soft-max."""
    graph = Graph()
    means, deviations = _f([0.485, 0.456, 0.406]), _f([0.229, 0.224, 0.225])
    identity = _f(np.eye(3)).reshape(3, 3, 1, 1) * 1
    image = graph.add("Conv", "input", identity)
    # statistics of images that were normalised: about 0 and 1
    norm = [_f(deviations), _f(means), _f([0, 0, 0]), _f([1, 1, 1])]
    image = graph.add("BatchNormalization", image, *norm, epsilon=1e-6)
    pooled = graph.add("Flatten", graph.add("GlobalAveragePool", image))
    mix = _f([[1, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]]) * 12
    logits = graph.add("Gemm", pooled, mix.T.copy(), _f([-2, -2, -2]))
    graph.add("Softmax", logits, axis=1, out="prob")
    graph.save(path, {"input": ("N", 3, 32, 32)}, {"prob": ("N", 3)})


def segmenter(path: Path) -> None:
    """A map of classes: background and three colours, `logits` [4, H, W]; RGB in 0..1."""
    graph = Graph()
    colors = _colors(graph, "input")
    wide = graph.add("AveragePool", colors, kernel_shape=[5, 5], pads=[2, 2, 2, 2])
    none = graph.add("ReduceMax", wide, axes=[1], keepdims=1)
    none = graph.add("Sub", _f(0.6), none)
    graph.add("Concat", none, wide, axis=1, out="logits")
    shape = (1, 4, HEIGHT, WIDTH)
    graph.save(path, {"input": (1, 3, HEIGHT, WIDTH)}, {"logits": shape})


MODELS: dict[str, Callable[[Path], None]] = {
    "yolov8.onnx": yolov8,
    "yolov5.onnx": yolov5,
    "yolox.onnx": yolox,
    "ssd.onnx": ssd,
    "detectnet.onnx": detectnet,
    "nms.onnx": with_nms,
    "channels_last.onnx": channels_last,
    "classifier.onnx": classifier,
    "segmenter.onnx": segmenter,
    "logits.onnx": lambda path: yolov8(path, logits=True),
    "unit.onnx": lambda path: yolov8(path, unit=True),
    "corners.onnx": lambda path: yolov8(path, corners=True),
    "plain.onnx": lambda path: yolov8(path, meta=False),
}

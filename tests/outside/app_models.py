"""Models for applications that want other outputs than the demo scene's detector has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
COLORS = {
    "background": (45, 45, 48),
    "cardboard": (190, 150, 95),
    "blue": (30, 80, 170),
    "white": (215, 212, 212),
}

SUPPRESSED = '''
import numpy as np
from headrace.meta import Detections


def suppressed(found, limit=0.5):
    """Rows that no better one overlaps; instance parsers do this themselves."""
    kept = []
    for row in np.argsort(-found.scores):
        left, top, width, height = found.boxes[row]
        for other in kept:
            x, y, w, h = found.boxes[other]
            across = min(left + width, x + w) - max(left, x)
            down = min(top + height, y + h) - max(top, y)
            both = max(0, across) * max(0, down)
            if both > limit * (width * height + w * h - both):
                break
        else:
            kept.append(row)
    return np.array(kept, int)
'''
# The detector's grid of scores is a coarse mask of what it found.
MASKS = f'''{SUPPRESSED}

def parse_masks(layers, network, params):
    """Boxes of the conveyor's detector, each with the scores of the cells that it covers."""
    from conveyor_parser import parse_conveyor
    found = parse_conveyor(layers, network, params)
    found = found.select(suppressed(found))
    logits = layers["scores"].data
    rows, columns = logits.shape[1:]
    cell = np.array([network.width / columns, network.height / rows])
    masks = []
    for (left, top, width, height), kind in zip(found.boxes, found.class_ids):
        x0, y0 = np.floor(np.array([left, top]) / cell).astype(int)
        x1, y1 = np.ceil(np.array([left + width, top + height]) / cell).astype(int)
        part = logits[kind, y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]
        masks.append((1 / (1 + np.exp(-part))).astype(np.float32))
    return Detections(found.boxes, found.scores, found.class_ids, masks=masks)
'''


def _constant(name: str, values: object, kind: type) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, kind), name)


def _floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save_color_classes(path: Path, width: int = 512, height: int = 512) -> None:
    """Write a network that gives each pixel the class of the nearest colour.

    The squared distance to colour c is |x|² - 2cx + |c|²; the class with the largest 2cx - |c|²
    wins. Pixels are 0 to 1 and are averaged over 9 x 9 first.
    """
    colors = np.array(list(COLORS.values()), np.float32) / 255
    weight = 60 * 2 * colors[:, :, None, None]
    nodes = [
        helper.make_node("AveragePool", ["image"], ["smooth"], kernel_shape=[9, 9], pads=[4] * 4),
        helper.make_node("Conv", ["smooth", "weight", "bias"], ["nearness"]),
        helper.make_node("Softmax", ["nearness"], ["classes"], axis=1),
    ]
    graph = helper.make_graph(
        nodes, "colors",
        [_floats("image", "batch", 3, height, width)],
        [_floats("classes", "batch", len(COLORS), height, width)],
        [
            _constant("weight", weight, np.float32),
            _constant("bias", -60 * (colors**2).sum(axis=1), np.float32),
        ],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def save_ssd_detector(path: Path, most: int = 100) -> None:
    """Write the conveyor's detector with the outputs of TensorFlow's SSD models.

    The outputs are `num_detections` (1), `detection_classes` and `detection_scores` (100),
    `detection_boxes` (100, 4) as top, left, bottom, right from 0 to 1. Input pixels are 0 to 255.
    """
    model = onnx.load(SCENE / "detector.onnx")
    graph = model.graph
    _, classes, rows, columns = (d.dim_value for d in graph.output[0].type.tensor_type.shape.dim)
    cells = rows * columns
    ys, xs = np.divmod(np.arange(cells), columns)
    centres = np.stack([(ys + 0.5) / rows, (xs + 0.5) / columns], axis=1)[None]
    node = helper.make_node
    image, graph.input[0].name = graph.input[0].name, "pixels"
    added = [
        node("Reshape", ["scores", "flat"], ["by_class"]),
        node("Sigmoid", ["by_class"], ["chances"]),
        node("ReduceMax", ["chances"], ["best"], axes=[1], keepdims=0),
        node("ArgMax", ["chances"], ["kind"], axis=1, keepdims=0),
        node("TopK", ["best", "most"], ["detection_scores", "places"], axis=1),
        node("Cast", ["kind"], ["kind_float"], to=TensorProto.FLOAT),
        node("GatherElements", ["kind_float", "places"], ["kinds"], axis=1),
        node("Add", ["kinds", "one"], ["detection_classes"]),
        node("Reshape", ["distances", "flat4"], ["by_side"]),
        node("Exp", ["by_side"], ["reach"]),
        node("Transpose", ["reach"], ["sides"], perm=[0, 2, 1]),  # left, top, right, bottom
        node("Gather", ["sides", "order"], ["ordered"], axis=2),
        node("Mul", ["ordered", "signs"], ["offsets"]),
        node("Add", ["offsets", "centres"], ["corners"]),
        node("Clip", ["corners", "zero", "unit"], ["boxes"]),
        node("Unsqueeze", ["places", "last"], ["place"]),
        node("Expand", ["place", "box_shape"], ["four_places"]),
        node("GatherElements", ["boxes", "four_places"], ["detection_boxes"], axis=1),
        node("Greater", ["detection_scores", "floor"], ["good"]),
        node("Cast", ["good"], ["good_float"], to=TensorProto.FLOAT),
        node("ReduceSum", ["good_float", "axis1"], ["num_detections"], keepdims=1),
    ]
    scaled = node("Div", ["pixels", "levels"], [image])
    nodes = [scaled, *graph.node, *added]
    del graph.node[:]
    graph.node.extend(nodes)
    step = [1 / rows, 1 / columns]
    graph.initializer.extend([
        _constant("levels", 255, np.float32),
        _constant("flat", [0, classes, cells], np.int64),
        _constant("flat4", [0, 4, cells], np.int64),
        _constant("most", [most], np.int64),
        _constant("one", 1, np.float32),
        _constant("order", [1, 0, 3, 2], np.int64),
        _constant("signs", [-step[0], -step[1], *step], np.float32),
        _constant("centres", np.concatenate([centres, centres], axis=2), np.float32),
        _constant("zero", 0, np.float32),
        _constant("unit", 1, np.float32),
        _constant("last", [2], np.int64),
        _constant("box_shape", [1, 1, 4], np.int64),
        _constant("floor", 0.3, np.float32),
        _constant("axis1", [1], np.int64),
    ])  # fmt: skip
    del graph.output[:]
    graph.output.extend([
        _floats("num_detections", "batch", 1), _floats("detection_classes", "batch", most),
        _floats("detection_scores", "batch", most), _floats("detection_boxes", "batch", most, 4),
    ])  # fmt: skip
    del graph.value_info[:]
    onnx.checker.check_model(model)
    onnx.save(model, path)

"""Networks with the shapes of well-known ones and random weights: speed depends on shapes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["resnet50", "yolo11n"]


class _Graph:
    """Nodes one after the other; a layer is the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.channels: dict[str, int] = {}
        self._rng = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, channels: int, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        self.channels[name] = channels
        return name

    def const(self, array: np.ndarray[Any, Any]) -> str:
        name = f"w_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, x: str, out: int, k: int, stride: int = 1, groups: int = 1) -> str:
        into = self.channels[x] // groups
        scale = np.float32(1 / np.sqrt(into * k * k))
        weight = self._rng.standard_normal((out, into, k, k), np.float32) * scale
        bias = self.const(np.zeros(out, np.float32))
        return self.op("Conv", x, self.const(weight), bias, channels=out, kernel_shape=[k, k],
                       strides=[stride, stride], pads=[k // 2] * 4, group=groups)  # fmt: skip

    def silu(self, x: str) -> str:
        c = self.channels[x]
        return self.op("Mul", x, self.op("Sigmoid", x, channels=c), channels=c)

    def cbs(self, x: str, out: int, k: int = 1, stride: int = 1, groups: int = 1) -> str:
        return self.silu(self.conv(x, out, k, stride, groups))

    def add(self, a: str, b: str) -> str:
        return self.op("Add", a, b, channels=self.channels[a])

    def concat(self, *xs: str) -> str:
        return self.op("Concat", *xs, channels=sum(self.channels[x] for x in xs), axis=1)

    def halves(self, x: str) -> tuple[str, str]:
        c = self.channels[x] // 2
        name = f"split_{len(self.nodes)}"
        outs = [f"{name}_a", f"{name}_b"]
        self.nodes.append(helper.make_node("Split", [x], outs, name, axis=1, num_outputs=2))
        self.channels |= dict.fromkeys(outs, c)
        return outs[0], outs[1]

    def pool(self, x: str, k: int, stride: int) -> str:
        return self.op("MaxPool", x, channels=self.channels[x], kernel_shape=[k, k],
                       strides=[stride, stride], pads=[k // 2] * 4)  # fmt: skip

    def up(self, x: str) -> str:
        scales = self.const(np.array([1, 1, 2, 2], np.float32))
        return self.op("Resize", x, "", scales, channels=self.channels[x], mode="nearest")

    def reshape(self, x: str, shape: list[int]) -> str:
        return self.op("Reshape", x, self.const(np.array(shape, np.int64)), channels=0)

    def save(self, path: Path, size: int, outputs: dict[str, list[int | str]]) -> Path:
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, size, size])],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            self.weights,
        )
        opset = [helper.make_opsetid("", 18)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
        return path


def resnet50(path: Path) -> Path:
    """(n, 3, 224, 224) -> (n, 1000): stages of 3, 4, 6, 3 bottlenecks, 25.5 M parameters."""
    g = _Graph()
    g.channels["images"] = 3
    x = g.op("Relu", g.conv("images", 64, 7, 2), channels=64)
    x = g.pool(x, 3, 2)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = g.op("Relu", g.conv(x, width, 1), channels=width)
            y = g.op("Relu", g.conv(y, width, 3, stride), channels=width)
            y = g.conv(y, width * 4, 1)
            short = x if block else g.conv(x, width * 4, 1, stride)
            x = g.op("Relu", g.add(y, short), channels=width * 4)
    x = g.op("Flatten", g.op("GlobalAveragePool", x, channels=2048), channels=2048)
    weight = g.const(np.random.default_rng(1).standard_normal((2048, 1000), np.float32) / 45)
    x = g.op("MatMul", x, weight, channels=1000)
    return g.save(path, 224, {x: ["n", 1000]})


def yolo11n(path: Path, size: int = 640, classes: int = 80) -> Path:
    """(n, 3, size, size) -> (n, 4 + classes, anchors): backbone, neck and head of YOLO11n."""
    g = _Graph()
    g.channels["images"] = 3
    x = g.cbs(g.cbs("images", 16, 3, 2), 32, 3, 2)
    x = _c3k2(g, x, 64, 16, nested=False)
    p3 = _c3k2(g, g.cbs(x, 64, 3, 2), 128, 32, nested=False)
    p4 = _c3k2(g, g.cbs(p3, 128, 3, 2), 128, 64, nested=True)
    x = _c3k2(g, g.cbs(p4, 256, 3, 2), 256, 128, nested=True)
    p5 = _attention_block(g, _sppf(g, x, 256), size // 32)
    n4 = _c3k2(g, g.concat(g.up(p5), p4), 128, 64, nested=False)
    n3 = _c3k2(g, g.concat(g.up(n4), p3), 64, 32, nested=False)
    n4 = _c3k2(g, g.concat(g.cbs(n3, 64, 3, 2), n4), 128, 64, nested=False)
    n5 = _c3k2(g, g.concat(g.cbs(n4, 128, 3, 2), p5), 256, 128, nested=True)
    return _head(g, (n3, n4, n5), size, classes, path)


def _bottleneck(g: _Graph, x: str, hidden: int) -> str:
    return g.add(x, g.cbs(g.cbs(x, hidden, 3), g.channels[x], 3))


def _c3k2(g: _Graph, x: str, out: int, width: int, *, nested: bool) -> str:
    a, b = g.halves(g.cbs(x, 2 * width))
    if nested:
        half = width // 2
        inner = g.cbs(b, half)
        for _ in range(2):
            inner = _bottleneck(g, inner, half)
        last = g.cbs(g.concat(inner, g.cbs(b, half)), width)
    else:
        last = _bottleneck(g, b, width // 2)
    return g.cbs(g.concat(a, b, last), out)


def _sppf(g: _Graph, x: str, out: int) -> str:
    parts = [g.cbs(x, out // 2)]
    for _ in range(3):
        parts.append(g.pool(parts[-1], 5, 1))
    return g.cbs(g.concat(*parts), out)


def _attention_block(g: _Graph, x: str, side: int) -> str:
    """Half of the channels through attention with two heads, and a feed-forward."""
    a, b = g.halves(g.cbs(x, g.channels[x]))
    c, heads, key, cells = g.channels[b], 2, 32, side * side
    head = c // heads
    qkv = g.reshape(g.conv(b, c + 2 * heads * key, 1), [-1, heads, 2 * key + head, cells])
    ends = {"q": (0, key), "k": (key, 2 * key), "v": (2 * key, 2 * key + head)}
    parts = {}
    for name, (start, end) in ends.items():
        bounds = [g.const(np.array([n], np.int64)) for n in (start, end, 2)]
        parts[name] = g.op("Slice", qkv, *bounds, channels=0)
    scores = g.op(
        "MatMul", g.op("Transpose", parts["q"], channels=0, perm=[0, 1, 3, 2]), parts["k"],
        channels=0,
    )  # fmt: skip
    scores = g.op("Mul", scores, g.const(np.array(key**-0.5, np.float32)), channels=0)
    weights = g.op("Softmax", scores, channels=0, axis=-1)
    mixed = g.op(
        "MatMul", parts["v"], g.op("Transpose", weights, channels=0, perm=[0, 1, 3, 2]), channels=0
    )
    shape = [-1, c, side, side]
    value, mixed = g.reshape(parts["v"], shape), g.reshape(mixed, shape)
    g.channels |= {value: c, mixed: c}
    b = g.add(b, g.conv(g.add(mixed, g.conv(value, c, 3, groups=c)), c, 1))
    b = g.add(b, g.conv(g.cbs(b, 2 * c), c, 1))
    return g.cbs(g.concat(a, b), 2 * c)


def _head(g: _Graph, levels: tuple[str, ...], size: int, classes: int, path: Path) -> Path:
    boxes, scores, cells = [], [], 0
    bins = 16
    for level, x in enumerate(levels):
        box = g.conv(g.cbs(g.cbs(x, 64, 3), 64, 3), 4 * bins, 1)
        c = g.channels[x]
        y = g.cbs(g.cbs(x, c, 3, groups=c), classes)
        y = g.cbs(g.cbs(y, classes, 3, groups=classes), classes)
        count = (size // (8 << level)) ** 2
        cells += count
        boxes.append(g.reshape(box, [-1, 4 * bins, count]))
        scores.append(g.reshape(g.conv(y, classes, 1), [-1, classes, count]))
    box = g.op("Concat", *boxes, channels=0, axis=2)
    box = g.op("Transpose", g.reshape(box, [-1, 4, bins, cells]), channels=0, perm=[0, 2, 1, 3])
    box = g.op("Softmax", box, channels=bins, axis=1)
    steps = g.const(np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1))
    box = g.reshape(g.op("Conv", box, steps, channels=1, kernel_shape=[1, 1]), [-1, 4, cells])
    score = g.op("Sigmoid", g.op("Concat", *scores, channels=0, axis=2), channels=0)
    out = g.op("Concat", box, score, channels=0, axis=1)
    return g.save(path, size, {out: ["n", 4 + classes, cells]})

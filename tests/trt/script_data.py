"""Small models and images that stand in for what the scripts download."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

rng = np.random.default_rng(3)


def model(path, nodes, inputs, outputs, weights=None, opset=13):
    """Write an ONNX model; inputs and outputs are (name, shape[, type])."""
    values = [
        [helper.make_tensor_value_info(v[0], v[2] if len(v) > 2 else TensorProto.FLOAT, v[1])
         for v in group]
        for group in (inputs, outputs)
    ]  # fmt: skip
    initializers = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "made-up", *values, initializers)
    imports = [helper.make_opsetid("", opset)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def image(path, width=64, height=48):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 255, (height, width, 3), np.uint8)).save(path)


def resnet(folder: Path) -> None:
    """A classifier 3 x 224 x 224 -> 1000 under the name of ResNet-50, and its images."""
    nodes = [
        helper.make_node("Conv", ["gpu_0/data_0", "w"], ["c"], strides=[16, 16]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["l"]),
        helper.make_node("Softmax", ["l"], ["gpu_0/softmax_1"], axis=1),
    ]
    model(
        folder / "ResNet50.onnx", nodes, [("gpu_0/data_0", (1, 3, 224, 224))],
        [("gpu_0/softmax_1", (1, 1000))], {"w": floats(8, 3, 16, 16), "g": floats(8, 1000)},
    )  # fmt: skip
    for name in ("binoculars.jpeg", "reflex_camera.jpeg", "tabby_tiger_cat.jpg"):
        image(folder / name)
    (folder / "class_labels.txt").write_text("\n".join(f"thing {i}" for i in range(1000)))


MNIST_MODEL = """
import numpy as np
class Tensor(np.ndarray):
    def cpu(self):
        return self
    def numpy(self):
        return np.ascontiguousarray(self.view(np.ndarray))
def made(*shape):
    return (np.random.default_rng(1).standard_normal(shape) / 50).astype(np.float32).view(Tensor)
class MnistModel:
    def learn(self, *a, **k): pass
    def get_weights(self):
        return {"conv1.weight": made(20, 1, 5, 5), "conv1.bias": made(20),
                "conv2.weight": made(50, 20, 5, 5), "conv2.bias": made(50),
                "fc1.weight": made(500, 800), "fc1.bias": made(500),
                "fc2.weight": made(10, 500), "fc2.bias": made(10)}
    def get_random_testcase(self):
        return np.random.default_rng(2).random(784).astype(np.float32), 7
"""
"""Weights where the sample trains with PyTorch."""


def yolov3(path: Path) -> None:
    """Three heads at strides 32, 16, 8; a batch of 64, which the script sets to 1."""
    nodes = [
        helper.make_node("AveragePool", ["000_net", ], ["a"], kernel_shape=[8, 8], strides=[8, 8]),
        helper.make_node("AveragePool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("AveragePool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        *(helper.make_node("Conv", [x, "w"], [y])
          for x, y in (("c", "082_convolutional"), ("b", "094_convolutional"),
                       ("a", "106_convolutional"))),
    ]  # fmt: skip
    names = (("082", 19), ("094", 38), ("106", 76))
    model(
        path, nodes, [("000_net", (64, 3, 608, 608))],
        [(f"{n}_convolutional", (64, 255, s, s)) for n, s in names], {"w": floats(255, 3, 1, 1)},
    )  # fmt: skip


def efficientdet(path: Path, batch: int | str = "N") -> None:
    """An image NHWC -> boxes and scores -> EfficientNMS_TRT."""
    nodes = [
        helper.make_node("Transpose", ["input"], ["x"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["x", "w"], ["stem"], name="model/stem/conv", strides=[8, 8]),
        helper.make_node("Relu", ["stem"], ["r"]),
        helper.make_node("Conv", ["r", "wb"], ["cb"], name="boxes"),
        helper.make_node("Reshape", ["cb", "sb"], ["rb"]),
        helper.make_node("Conv", ["r", "ws"], ["cs"], name="scores"),
        helper.make_node("Sigmoid", ["cs"], ["gs"]),
        helper.make_node("Reshape", ["gs", "ss"], ["rs"]),
        helper.make_node(
            "EfficientNMS_TRT", ["rb", "rs"],
            ["num_detections", "detection_boxes", "detection_scores", "detection_classes"],
            name="nms", plugin_version="1", background_class=-1, max_output_boxes=10,
            score_threshold=0.4, iou_threshold=0.5, score_activation=0, box_coding=0,
        ),
    ]  # fmt: skip
    weights = {
        "w": floats(4, 3, 8, 8), "wb": floats(4, 4, 1, 1), "ws": floats(5, 4, 1, 1),
        "sb": np.array([0, 64, 4], np.int64), "ss": np.array([0, 64, 5], np.int64),
    }  # fmt: skip
    outputs = [
        ("num_detections", (batch, 1), TensorProto.INT32), ("detection_boxes", (batch, 10, 4)),
        ("detection_scores", (batch, 10)), ("detection_classes", (batch, 10), TensorProto.INT32),
    ]  # fmt: skip
    model(path, nodes, [("input", (batch, 64, 64, 3))], outputs, weights)


def _words_and_letters() -> tuple[list[Any], list[Any]]:
    """Names and shapes of the inputs, and nodes that make floats f0 to f3, and z, which is 0."""
    inputs = [
        ("CategoryMapper_4", ("c", 1)), ("CategoryMapper_5", ("c", 1, 1, 16)),
        ("CategoryMapper_6", ("q", 1)), ("CategoryMapper_7", ("q", 1, 1, 16)),
    ]  # fmt: skip
    nodes = []
    for i, (name, _) in enumerate(inputs):
        nodes += [
            helper.make_node("Cast", [name], [f"f{i}"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", [f"f{i}"], [f"s{i}"], keepdims=0),
        ]
    nodes += [
        helper.make_node("Sum", [f"s{i}" for i in range(4)], ["s"]),
        helper.make_node("Mul", ["s", "zero"], ["z"]),
    ]
    return inputs, nodes


def bidaf(folder: Path) -> None:
    """Four inputs of words and letters -> start and end; two named weights."""
    weights = {"Parameter576_B_0": floats(1), "W_0": floats(1, 1)}
    inputs, nodes = _words_and_letters()
    nodes += [
        helper.make_node("Add", ["z", "Parameter576_B_0"], ["a"]),
        helper.make_node("Add", ["z", "W_0"], ["b2"]),
        helper.make_node("Reshape", ["b2", "one"], ["b"]),
        helper.make_node("Cast", ["a"], ["start_pos"], to=TensorProto.INT32),
        helper.make_node("Cast", ["b"], ["end_pos"], to=TensorProto.INT32),
    ]
    # as made up as it is, the answer is the word that the sample waits for: "brown", word 2
    weights["Parameter576_B_0"][:] = weights["W_0"][:] = 2
    weights |= {"zero": np.zeros((), np.float32), "one": np.array([1], np.int64)}
    typed = [(n, s, TensorProto.INT32) for n, s in inputs]
    outputs = [("start_pos", (1,), TensorProto.INT32), ("end_pos", (1,), TensorProto.INT32)]
    model(folder / "bidaf-modified.onnx", nodes, typed, outputs, weights)
    for name in ("Parameter576_B_0", "W_0"):
        np.save(folder / f"{name}.npy", weights[name])


def bidaf_hardmax(path: Path) -> None:
    """The four inputs -> end and start, both the third word, by a layer that ONNX has not."""
    inputs, nodes = _words_and_letters()
    nodes += [
        helper.make_node("Mul", ["f0", "zero"], ["f"]),
        helper.make_node("Add", ["f", "one"], ["ones"]),
        helper.make_node("CumSum", ["ones", "axis"], ["place"]),  # 1, 2, 3 …
        helper.make_node("Sub", ["place", "three"], ["off"]),
        helper.make_node("Mul", ["off", "off"], ["square"]),
        helper.make_node("Neg", ["square"], ["scores"]),
        helper.make_node("CustomHardmax", ["scores"], ["hot"], name="Hardmax_30", axis=0),
        helper.make_node("Einsum", ["hot", "place"], ["third"], equation="ij,ij->j"),
        helper.make_node("Sub", ["third", "one"], ["word"]),
        helper.make_node("Add", ["word", "z"], ["found"]),
        helper.make_node("Cast", ["found"], ["end_pos"], to=TensorProto.INT32),
        helper.make_node("Cast", ["found"], ["start_pos"], to=TensorProto.INT32),
    ]
    weights = {
        "zero": np.zeros((), np.float32), "one": np.ones((), np.float32),
        "three": np.full((), 3, np.float32), "axis": np.zeros((), np.int64),
    }  # fmt: skip
    typed = [(n, s, TensorProto.INT32) for n, s in inputs]
    outputs = [("end_pos", (1,), TensorProto.INT32), ("start_pos", (1,), TensorProto.INT32)]
    path.parent.mkdir(parents=True, exist_ok=True)
    model(path, nodes, typed, outputs, weights)


CPU_TORCH = """
import sys
from types import ModuleType
import numpy as np

class Tensor: pass
class dtype: pass

def as_tensor(a, device=None): return np.asarray(a)
def nonzero(a): return np.stack(np.nonzero(a), 1)

class cuda:
    @staticmethod
    def init(): pass

class nn:
    class functional:
        @staticmethod
        def pad(t, pads, mode):
            widths = [(0, 0)] * t.ndim
            for i in range(len(pads) // 2):
                widths[t.ndim - 1 - i] = (pads[2 * i], pads[2 * i + 1])
            return np.pad(t, widths, mode={"circular": "wrap"}[mode])
"""
"""The few functions of PyTorch that samples of plugins compute with."""


HARDMAX = """
import numpy as np
from headrace.plugins import (
    DataType, IPluginCreator, IPluginV2DynamicExt, PluginField, PluginFieldCollection,
    PluginFieldType, array_at,
)


class Hardmax(IPluginV2DynamicExt):
    def __init__(self, axis):
        IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace = "CustomHardmax", "1", ""
        self.num_outputs, self.axis = 1, axis

    def clone(self):
        return Hardmax(self.axis)

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, index, inputs, make):
        return inputs[0]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].type == DataType.FLOAT

    def configure_plugin(self, inputs, outputs):
        pass

    def enqueue(self, ins, outs, inputs, outputs, workspace, stream):
        x = array_at(inputs[0], ins[0].dims, np.float32)
        y = array_at(outputs[0], outs[0].dims, np.float32, writable=True)
        y[...] = 0
        best = np.expand_dims(np.argmax(x, self.axis), self.axis)
        np.put_along_axis(y, best, 1, axis=self.axis)

    def serialize(self):
        return np.int32(self.axis).tobytes()


class HardmaxCreator(IPluginCreator):
    def __init__(self):
        IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "CustomHardmax", "1", ""
        self.field_names = PluginFieldCollection(
            [PluginField("axis", None, PluginFieldType.INT32)]
        )

    def create_plugin(self, name, field_collection):
        return Hardmax(int(field_collection[0].data[0]))

    def deserialize_plugin(self, name, data):
        return Hardmax(int(np.frombuffer(data, np.int32)[0]))
"""


def yolo_head(path: Path, boxes: int = 84, classes: int = 5) -> None:
    """(1, 3, 64, 64) -> (1, 84, 10): boxes, objectness, classes, as YOLOv5 and v7 export them."""
    nodes = [
        helper.make_node("AveragePool", ["images"], ["p"], kernel_shape=[8, 8], strides=[8, 8]),
        helper.make_node("Conv", ["p", "w"], ["c"], name="conv"),
        helper.make_node("Sigmoid", ["c"], ["g"]),
        helper.make_node("Reshape", ["g", "s"], ["r"]),
        helper.make_node("Transpose", ["r"], ["output"], perm=[0, 2, 1]),
    ]
    weights = {"w": floats(5 + classes, 3, 1, 1), "s": np.array([1, 5 + classes, 64], np.int64)}
    model(path, nodes, [("images", (1, 3, 64, 64))], [("output", (1, 64, 5 + classes))], weights)


def yolov8_weights(path: Path) -> None:
    """The pickle of weights that the script reads, of a network a tenth as wide."""
    # channels of YOLOv8n, which the script works out from these two factors
    made: OrderedDict[str, object] = OrderedDict(
        GD=0.33, GW=0.25, strides=np.array([8.0, 16.0, 32.0], np.float32), reg_max=16
    )

    def conv(name, cin, cout, k):
        made[f"{name}.conv.weight"] = floats(cout, cin, k, k) * np.float32(0.1)
        made[f"{name}.conv.bias"] = floats(cout) * np.float32(0.1)

    def plain(name, cin, cout):
        made[f"{name}.weight"] = floats(cout, cin, 1, 1) * np.float32(0.1)
        made[f"{name}.bias"] = floats(cout) * np.float32(0.1)

    def c2f(name, cin, cout, n):
        half = cout // 2
        conv(f"{name}.cv1", cin, cout, 1)
        conv(f"{name}.cv2", (2 + n) * half, cout, 1)
        for i in range(n):
            conv(f"{name}.m.{i}.cv1", half, half, 3)
            conv(f"{name}.m.{i}.cv2", half, half, 3)

    conv("Conv.0", 3, 16, 3)
    conv("Conv.1", 16, 32, 3)
    c2f("C2f.2", 32, 32, 1)
    conv("Conv.3", 32, 64, 3)
    c2f("C2f.4", 64, 64, 2)
    conv("Conv.5", 64, 128, 3)
    c2f("C2f.6", 128, 128, 2)
    conv("Conv.7", 128, 256, 3)
    c2f("C2f.8", 256, 256, 1)
    conv("SPPF.9.cv1", 256, 128, 1)
    conv("SPPF.9.cv2", 512, 256, 1)
    c2f("C2f.12", 384, 128, 1)
    c2f("C2f.15", 192, 64, 1)
    conv("Conv.16", 64, 64, 3)
    c2f("C2f.18", 192, 128, 1)
    conv("Conv.19", 128, 128, 3)
    c2f("C2f.21", 384, 256, 1)
    for i, cin in enumerate((64, 128, 256)):
        for branch, mid, out in (("cv2", 64, 64), ("cv3", 80, 80)):
            conv(f"Detect.22.{branch}.{i}.0", cin, mid, 3)
            conv(f"Detect.22.{branch}.{i}.1", mid, mid, 3)
            plain(f"Detect.22.{branch}.{i}.2", mid, out)
    made["Detect.22.dfl.conv.weight"] = np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)
    with open(path, "wb") as file:
        pickle.dump(made, file)


TORCH = """
class _Any:
    def __init__(self, *a, **k): pass
    def __getattr__(self, name): return _Any()
    def __call__(self, *a, **k): return _Any()
class device(_Any): pass
class Tensor(_Any): pass
class nn:
    class Module: pass
class jit:
    class TracerWarning(Warning): pass
    class ScriptWarning(Warning): pass
class cuda:
    @staticmethod
    def current_device(): return 0
    class _P: total_memory = 2**33
    @staticmethod
    def get_device_properties(d): return cuda._P
float16 = float32 = int32 = int8 = bool = None
"""
"""So much of PyTorch as a script needs to be imported where it is not installed."""

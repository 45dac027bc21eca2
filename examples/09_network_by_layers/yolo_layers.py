"""A tiny YOLO network, made layer by layer from a Darknet .cfg and .weights.

The config calls `create_engine` (`engine-create-func-name`). [yolo] sections become a plugin,
`YoloBoxes`, whose rows `parse` turns into detections (`parse-bbox-func-name`).
"""

import struct
from pathlib import Path

import numpy as np

import headrace.trt as trt
from headrace import Detections


def sections(path):
    """The sections of a .cfg: dictionaries with their "type"."""
    found = []
    for line in Path(path).read_text().splitlines():
        line = line.split("#")[0].replace(" ", "")
        if line.startswith("["):
            found.append({"type": line.strip("[]")})
        elif line:
            key, value = line.split("=")
            found[-1][key] = value
    return found


class Weights:
    """Takes the numbers of a .weights file in order."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        major, minor, _ = struct.unpack_from("<iii", data)
        head = 20 if major * 10 + minor >= 2 else 16
        self.numbers = np.frombuffer(data, "<f4", offset=head)
        self.at = 0

    def take(self, *shape):
        count = int(np.prod(shape))
        if self.at + count > len(self.numbers):
            raise ValueError(f"the weights end after {len(self.numbers)} numbers")
        self.at += count
        return np.ascontiguousarray(self.numbers[self.at - count : self.at].reshape(shape))


def convolution(network, tensor, section, weights):
    maps, size = int(section["filters"]), int(section["size"])
    normed = int(section.get("batch_normalize", 0))
    bias = weights.take(maps)
    gamma, mean, variance = (weights.take(maps) for _ in range(3)) if normed else (1, 0, 1)
    kernel = weights.take(maps, tensor.shape[1], size, size)
    layer = network.add_convolution_nd(tensor, maps, (size, size), kernel, None if normed else bias)
    layer.stride_nd = (int(section["stride"]),) * 2
    layer.padding_nd = (size // 2 if int(section.get("pad", 0)) else 0,) * 2
    if normed:
        scale = gamma / np.sqrt(variance + 1e-5)
        layer = network.add_scale(
            layer.get_output(0), trt.ScaleMode.CHANNEL, bias - mean * scale, scale
        )
    if section["activation"] == "leaky":
        layer = network.add_activation(layer.get_output(0), trt.ActivationType.LEAKY_RELU)
        layer.alpha = 0.1
    return layer.get_output(0)


def pooling(network, tensor, section):
    size, stride = int(section["size"]), int(section["stride"])
    layer = network.add_pooling_nd(tensor, trt.PoolingType.MAX, (size, size))
    layer.stride_nd = (stride, stride)
    layer.padding_mode = trt.PaddingMode.SAME_UPPER
    return layer.get_output(0)


def upsampling(network, tensor, section):
    stride = int(section["stride"])
    layer = network.add_resize(tensor)
    layer.scales = [1, 1, stride, stride]
    return layer.get_output(0)


def route(network, outputs, section):
    wanted = [int(i) for i in section["layers"].split(",")]
    tensors = [outputs[i if i >= 0 else len(outputs) + i] for i in wanted]
    if len(tensors) == 1:
        return tensors[0]
    layer = network.add_concatenation(tensors)
    layer.axis = 1
    return layer.get_output(0)


def yolo(network, tensor, section, width, height):
    mask = [int(i) for i in section["mask"].split(",")]
    numbers = [float(a) for a in section["anchors"].split(",")]
    anchors = [numbers[2 * i : 2 * i + 2] for i in mask]
    plugin = YoloBoxes(int(section["classes"]), anchors, width, height)
    return network.add_plugin_v2([tensor], plugin).get_output(0)


def create_engine(builder, config, initParams, dataType):
    """What `engine-create-func-name` names."""
    net, *layers = sections(initParams.customNetworkConfigFilePath)
    weights = Weights(initParams.modelFilePath)
    width, height = int(net["width"]), int(net["height"])
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    tensor = network.add_input("data", trt.float32, (-1, int(net["channels"]), height, width))
    outputs, heads = [], []
    for section in layers:
        kind = section["type"]
        if kind == "convolutional":
            tensor = convolution(network, tensor, section, weights)
        elif kind == "maxpool":
            tensor = pooling(network, tensor, section)
        elif kind == "upsample":
            tensor = upsampling(network, tensor, section)
        elif kind == "route":
            tensor = route(network, outputs, section)
        elif kind == "yolo":
            heads.append(yolo(network, tensor, section, width, height))
        else:
            raise ValueError(f"[{kind}] is not made here")
        outputs.append(tensor)
    boxes = network.add_concatenation(heads)
    boxes.axis = 1
    boxes.get_output(0).name = "boxes"
    network.mark_output(boxes.get_output(0))
    profile = builder.create_optimization_profile()
    one, most = (1, 3, height, width), (initParams.maxBatchSize, 3, height, width)
    profile.set_shape("data", one, most, most)
    config.add_optimization_profile(profile)
    return builder.build_engine(network, config)


class YoloBoxes(trt.IPluginV2DynamicExt):
    """(N, A * (5 + C), H, W) -> rows (N, A * H * W, 5 + C): centre, size in pixels, scores."""

    def __init__(self, classes, anchors, width, height):
        trt.IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace = "YoloBoxes", "1", ""
        self.num_outputs = 1
        self.classes, self.size = classes, (width, height)
        self.anchors = np.array(anchors, np.float32)

    def get_output_datatype(self, index, input_types):
        return trt.float32

    def get_output_dimensions(self, index, inputs, make):
        batch, _, rows, columns = inputs[0]
        cells = make.operation(trt.DimensionOperation.PROD, rows, columns)
        many = make.constant(len(self.anchors))
        cells = make.operation(trt.DimensionOperation.PROD, cells, many)
        return trt.DimsExprs([batch, cells, make.constant(5 + self.classes)])

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].type == trt.float32 and in_out[pos].format == trt.TensorFormat.LINEAR

    def configure_plugin(self, inputs, outputs):
        pass

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        raw = trt.array_at(inputs[0], input_desc[0].dims, np.float32)
        rows = trt.array_at(outputs[0], output_desc[0].dims, np.float32, writable=True)
        batch, _, height, width = raw.shape
        raw = raw.reshape(batch, len(self.anchors), 5 + self.classes, height, width)
        made = 1 / (1 + np.exp(-raw))
        grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)))
        step = np.array(self.size, np.float32).reshape(1, 1, 2, 1, 1) / [[[[[width]], [[height]]]]]
        made[:, :, :2] = (made[:, :, :2] + grid) * step
        made[:, :, 2:4] = np.exp(raw[:, :, 2:4]) * self.anchors[None, :, :, None, None]
        rows[...] = made.transpose(0, 1, 3, 4, 2).reshape(rows.shape)

    def serialize(self):
        head = np.array([self.classes, *self.size], "<i4").tobytes()
        return head + self.anchors.astype("<f4").tobytes()

    def clone(self):
        made = YoloBoxes(self.classes, self.anchors, *self.size)
        made.__dict__.update(self.__dict__)
        return made


class YoloBoxesCreator(trt.IPluginCreator):
    def __init__(self):
        trt.IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "YoloBoxes", "1", ""
        self.field_names = trt.PluginFieldCollection([])

    def deserialize_plugin(self, name, data):
        classes, width, height = np.frombuffer(data, "<i4", 3)
        anchors = np.frombuffer(data, "<f4", offset=12).reshape(-1, 2)
        return YoloBoxes(int(classes), anchors, int(width), int(height))


def parse(layers, network, params):
    """Rows of the plugin as detections."""
    rows = layers["boxes"].data
    scores = rows[:, 4:5] * rows[:, 5:]
    best = scores.argmax(1)
    top = scores[np.arange(len(rows)), best]
    keep = top > 0.3
    centre, size = rows[keep, :2], rows[keep, 2:4]
    boxes = np.concatenate([centre - size / 2, size], 1)
    return Detections(boxes, top[keep], best[keep])

"""Darknet models for tests, and Darknet itself, slowly: an interpreter of .cfg in NumPy."""

import struct
from pathlib import Path

import numpy as np

from headrace.engine import BuildOptions, build
from headrace.network.darknet.importer import network_from_darknet_bytes

CFG, WEIGHTS = Path("net.cfg"), Path("net.weights")


def header(major=0, minor=2, revision=5, seen=64):
    return struct.pack("<iii", major, minor, revision) + struct.pack(
        "<q" if major * 10 + minor >= 2 and major < 1000 and minor < 1000 else "<i", seen
    )


def network_of(text, numbers=(), *, head=None, **more):
    data = (header() if head is None else head) + np.asarray(numbers, "<f4").tobytes()
    return network_from_darknet_bytes(text.encode(), data, CFG, WEIGHTS, **more)


def run(text, numbers, x, *, head=None, **more):
    network = network_of(text, numbers, head=head, **more)
    network.path = None
    with build(network, BuildOptions(max_batch=8)).open_session() as session:
        return session.run({"input": np.asarray(x, np.float32)})


def net(layers, channels=3, height=8, width=12):
    return f"[net]\nbatch=64\nchannels={channels}\nheight={height}\nwidth={width}\n{layers}"


def sections(text):
    found = []
    for line in text.splitlines():
        line = line.split("#")[0].replace(" ", "")
        if line.startswith("["):
            found.append({"type": line.strip("[]")})
        elif line:
            key, value = line.split("=")
            found[-1][key] = value
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "linear": lambda x: x,
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "relu": lambda x: np.maximum(x, 0),
    "logistic": sigmoid,
    "tanh": np.tanh,
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "relu6": lambda x: np.clip(x, 0, 6),
}


class Darknet:
    """Runs a network layer by layer, taking random weights as it needs them (`numbers`)."""

    def __init__(self, text, seed=0):
        self.net, *self.layers = sections(text)
        self.rng = np.random.default_rng(seed)
        self.numbers = []

    def take(self, *shape, positive=False, scale=0.3):
        values = (self.rng.normal(size=shape) * scale).astype(np.float32)
        values = np.abs(values) + np.float32(0.2) if positive else values
        self.numbers.append(values.ravel())
        return values

    def run(self, x):
        """The output of every layer; decoded rows of heads in `self.rows`."""
        self.size, self.rows, outputs = x.shape[2:], [], []
        for layer in self.layers:
            x = getattr(self, "do_" + layer["type"])(layer, x, outputs)
            outputs.append(x)
        return outputs

    def flat_numbers(self):
        return np.concatenate(self.numbers) if self.numbers else np.empty(0, np.float32)

    def activate(self, layer, x, default="linear"):
        return ACTIVATIONS[layer.get("activation", default)](x)

    def other(self, layer, outputs, key="from"):
        return [outputs[int(v)] for v in layer[key].split(",")]

    def do_convolutional(self, layer, x, outputs):
        n, k = int(layer["filters"]), int(layer.get("size", 1))
        s, g = int(layer.get("stride", 1)), int(layer.get("groups", 1))
        p = k // 2 if layer.get("pad") == "1" else int(layer.get("padding", 0))
        bias = self.take(n)
        if layer.get("batch_normalize") == "1":
            scale, mean, variance = self.take(n), self.take(n), self.take(n, positive=True)
        w = self.take(n, x.shape[1] // g, k, k)
        padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (p, p), (p, p)])
        h, wd = ((d - k) // s + 1 for d in padded.shape[2:])
        y = np.zeros((len(x), n, h, wd))
        for f in range(n):
            first = f // (n // g) * w.shape[1]
            for i in range(h):
                for j in range(wd):
                    window = padded[:, first : first + w.shape[1], i * s : i * s + k,
                                    j * s : j * s + k]  # fmt: skip
                    y[:, f, i, j] = (window * w[f]).sum((1, 2, 3))
        c = (1, n, 1, 1)
        if layer.get("batch_normalize") == "1":
            y = (y - mean.reshape(c)) / np.sqrt(variance.reshape(c) + 1e-5) * scale.reshape(c)
        return self.activate(layer, y + bias.reshape(c), "logistic")

    def do_connected(self, layer, x, outputs):
        n = int(layer["output"])
        x = x.reshape(len(x), -1)
        bias, w = self.take(n), self.take(n, x.shape[1])
        y = x @ w.T.astype(np.float64)
        if layer.get("batch_normalize") == "1":
            scale, mean, variance = self.take(n), self.take(n), self.take(n, positive=True)
            y = (y - mean) / np.sqrt(variance + 1e-5) * scale
        return self.activate(layer, y + bias, "logistic")

    def pool(self, layer, x, function):
        stride = int(layer.get("stride", 1))
        k = int(layer.get("size", stride))
        p = int(layer.get("padding", k - 1))
        h, w = ((d + p - k) // stride + 1 for d in x.shape[2:])
        y = np.empty((*x.shape[:2], h, w))
        for i in range(h):
            for j in range(w):
                a, b = i * stride - p // 2, j * stride - p // 2
                y[:, :, i, j] = function(x[:, :, max(a, 0) : a + k, max(b, 0) : b + k], (2, 3))
        return y

    def do_maxpool(self, layer, x, outputs):
        return self.pool(layer, x, np.max)

    def do_local_avgpool(self, layer, x, outputs):
        return self.pool(layer, x, np.mean)

    def do_avgpool(self, layer, x, outputs):
        return x.mean((2, 3), keepdims=True)

    def do_upsample(self, layer, x, outputs):
        s = int(layer.get("stride", 2))
        return x.repeat(s, 2).repeat(s, 3) * float(layer.get("scale", 1))

    def do_route(self, layer, x, outputs):
        parts = self.other(layer, outputs, "layers")
        groups, group = int(layer.get("groups", 1)), int(layer.get("group_id", 0))
        return np.concatenate([np.split(p, groups, 1)[group] for p in parts], 1)

    def do_shortcut(self, layer, x, outputs):
        for other in self.other(layer, outputs):
            x = x + other
        return self.activate(layer, x)

    def do_scale_channels(self, layer, x, outputs):
        return self.activate(layer, self.other(layer, outputs)[0] * x)

    def do_sam(self, layer, x, outputs):
        return self.activate(layer, x * self.other(layer, outputs)[0])

    def do_implicit_add(self, layer, x, outputs):
        return self.take(1, int(layer["filters"]), 1, 1)

    do_implicit_mul = do_implicit_add

    def do_shift_channels(self, layer, x, outputs):
        return x + self.other(layer, outputs)[0]

    def do_control_channels(self, layer, x, outputs):
        return x * self.other(layer, outputs)[0]

    def do_dropout(self, layer, x, outputs):
        return x

    def do_softmax(self, layer, x, outputs):
        x = x.reshape(len(x), int(layer.get("groups", 1)), -1) / float(layer.get("temperature", 1))
        e = np.exp(x - x.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True)).reshape(len(x), -1)

    def do_reorg(self, layer, x, outputs):
        """Index by index, as Darknet of YOLO v2 does it."""
        s = int(layer["stride"])
        n, c, h, w = x.shape
        y = np.empty((n, c * h * w))
        flat = x.reshape(n, -1)
        for k in range(c):
            for j in range(h):
                for i in range(w):
                    offset, c2 = divmod(k, c // (s * s))
                    w2, h2 = i * s + offset % s, j * s + offset // s
                    y[:, i + w * (j + h * k)] = flat[:, w2 + w * s * (h2 + h * s * c2)]
        return y.reshape(n, c * s * s, h // s, w // s)

    def do_reorg3d(self, layer, x, outputs):
        s = int(layer["stride"])
        return np.concatenate([x[:, :, i::s, j::s] for i in range(s) for j in range(s)], 1)

    def cells(self, layer, x, count):
        classes = int(layer["classes"])
        cells = x.reshape(len(x), count, 5 + classes, *x.shape[2:])
        for a in range(count):
            for row in range(x.shape[2]):
                for column in range(x.shape[3]):
                    yield a, row, column, cells[:, a, :, row, column]

    def add_row(self, rows, cx, cy, w, h, score, label):
        rows.append(np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, label], 1))

    def do_yolo(self, layer, x, outputs):
        anchors = [float(v) for v in layer["anchors"].split(",")]
        mask = [int(m) for m in layer["mask"].split(",")]
        scale = float(layer.get("scale_x_y", 1))
        cell_h, cell_w = self.size[0] / x.shape[2], self.size[1] / x.shape[3]
        rows = []
        for a, row, column, t in self.cells(layer, x, len(mask)):
            aw, ah = anchors[2 * mask[a]], anchors[2 * mask[a] + 1]
            if layer.get("new_coords") == "1":
                s, w, h = t, (2 * t[:, 2]) ** 2 * aw, (2 * t[:, 3]) ** 2 * ah
            else:
                s, w, h = sigmoid(t), np.exp(t[:, 2]) * aw, np.exp(t[:, 3]) * ah
            cx = (s[:, 0] * scale - (scale - 1) / 2 + column) * cell_w
            cy = (s[:, 1] * scale - (scale - 1) / 2 + row) * cell_h
            self.add_row(rows, cx, cy, w, h, s[:, 4] * s[:, 5:].max(1), s[:, 5:].argmax(1))
        self.rows.append(np.stack(rows, 1))

    def do_region(self, layer, x, outputs):
        anchors = [float(v) for v in layer["anchors"].split(",")]
        cell_h, cell_w = self.size[0] / x.shape[2], self.size[1] / x.shape[3]
        rows = []
        for a, row, column, t in self.cells(layer, x, int(layer["num"])):
            e = np.exp(t[:, 5:] - t[:, 5:].max(1, keepdims=True))
            classes = e / e.sum(1, keepdims=True)
            w, h = np.exp(t[:, 2]) * anchors[2 * a], np.exp(t[:, 3]) * anchors[2 * a + 1]
            cx, cy = sigmoid(t[:, 0]) + column, sigmoid(t[:, 1]) + row
            self.add_row(rows, cx * cell_w, cy * cell_h, w * cell_w, h * cell_h,
                         sigmoid(t[:, 4]) * classes.max(1), classes.argmax(1))  # fmt: skip
        self.rows.append(np.stack(rows, 1))

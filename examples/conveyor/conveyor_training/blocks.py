"""Network blocks that can train themselves (PyTorch) and write themselves (ONNX, opset 17).

Batch normalisation is folded into the convolution when written, so a model file holds plain
Conv, Relu, Add, Resize nodes with short names and nothing of the tool that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

__all__ = ["Block", "Conv", "Graph", "Linear", "Separable", "upsample"]


class Graph:
    """An ONNX graph under construction; every method adds a node and returns its output's name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def add(self, kind: str, inputs: Sequence[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def upsample(self, x: str, name: str) -> str:
        if not any(weight.name == "twice" for weight in self.weights):
            self.weight("twice", np.array([1, 1, 2, 2], np.float32))
        style = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
        return self.add("Resize", [x, "", "twice"], name, nearest_mode="floor", **style)

    def save(
        self,
        path: Path,
        inputs: dict[str, tuple[int, ...]],
        outputs: dict[str, tuple[int, ...]],
        about: str,
    ) -> None:
        """Check and write the model; shapes are without the batch axis, which stays dynamic."""

        def value(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])

        graph = helper.make_graph(
            self.nodes,
            self.name,
            [value(*item) for item in inputs.items()],
            [value(*item) for item in outputs.items()],
            self.weights,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 17)],
            producer_name="headrace examples/conveyor",
            doc_string=about,
        )
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


class Conv(nn.Module):
    """Convolution without bias, batch normalisation, and ReLU unless `linear`."""

    def __init__(
        self, cin: int, cout: int, size: int, stride: int = 1, groups: int = 1, linear: bool = False
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, size, stride, size // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(cout)
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return x if self.linear else torch.relu(x)

    def write(self, graph: Graph, x: str, name: str) -> str:
        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        weight = self.conv.weight * scale[:, None, None, None]
        bias = self.norm.bias - self.norm.running_mean * scale
        return _write_conv(graph, x, name, self.conv, weight, bias, relu=not self.linear)


class Linear(nn.Module):
    """1x1 convolution with bias and nothing after it: a head."""

    def __init__(self, cin: int, cout: int, bias: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 1)
        nn.init.normal_(self.conv.weight, std=0.01)
        nn.init.constant_(self.conv.bias, bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)

    def write(self, graph: Graph, x: str, name: str) -> str:
        assert self.conv.bias is not None
        return _write_conv(graph, x, name, self.conv, self.conv.weight, self.conv.bias, relu=False)


class Separable(nn.Module):
    """Depthwise 3x3 then pointwise 1x1; adds its input where shapes allow."""

    def __init__(self, cin: int, cout: int, stride: int = 1, size: int = 3) -> None:
        super().__init__()
        self.deep = Conv(cin, cin, size, stride, groups=cin)
        self.point = Conv(cin, cout, 1)
        self.residual = stride == 1 and cin == cout

    def forward(self, x: Tensor) -> Tensor:
        y = self.point(self.deep(x))
        return x + y if self.residual else y

    def write(self, graph: Graph, x: str, name: str) -> str:
        y = self.point.write(graph, self.deep.write(graph, x, f"{name}.deep"), f"{name}.point")
        return graph.add("Add", [x, y], f"{name}.sum") if self.residual else y


class Block(nn.Sequential):
    """Several of the above, one after the other."""

    def write(self, graph: Graph, x: str, name: str) -> str:
        for i, part in enumerate(self):
            x = part.write(graph, x, f"{name}.{i}")
        return x


def upsample(x: Tensor) -> Tensor:
    """Twice the height and width, nearest neighbour."""
    return nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")


def _write_conv(
    graph: Graph,
    x: str,
    name: str,
    conv: nn.Conv2d,
    weight: Tensor,
    bias: Tensor,
    *,
    relu: bool,
) -> str:
    w = graph.weight(f"{name}.weight", weight.detach().cpu().numpy().astype(np.float32))
    b = graph.weight(f"{name}.bias", bias.detach().cpu().numpy().astype(np.float32))
    pad = [int(p) for p in conv.padding]
    y = graph.add(
        "Conv",
        [x, w, b],
        f"{name}.conv" if relu else name,
        kernel_shape=list(conv.kernel_size),
        strides=list(conv.stride),
        pads=[*pad, *pad],
        group=conv.groups,
    )
    return graph.add("Relu", [y], name) if relu else y

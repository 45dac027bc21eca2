"""Small ONNX models with plugin nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from headrace.network import Network, network_from_onnx
from headrace.plugins import PluginRegistry
from tests.plugins.samples import PLUGINS, creator_for

__all__ = ["FLOAT", "conv_plugin_conv", "model", "network", "registry", "save"]

FLOAT = TensorProto.FLOAT
RNG = np.random.default_rng(3)


def model(
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    weights: dict[str, Any] | None = None,
    opset: int = 17,
) -> Any:
    """A ModelProto."""
    graph = helper.make_graph(
        nodes, "graph", inputs, outputs,
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def save(made: Any, folder: Path, name: str = "m.onnx") -> Path:
    """Write it."""
    path = folder / name
    onnx.save(made, path)
    return path


def network(made: Any, folder: Path) -> Network:
    """Read it as users do."""
    return network_from_onnx(save(made, folder))


def registry(*kinds: str) -> PluginRegistry:
    """The creators of sample plugins; all of them if none are named."""
    found = PluginRegistry()
    for kind in kinds or PLUGINS:
        assert found.register_creator(creator_for(PLUGINS[kind]))
    return found


def conv_plugin_conv(
    op: str = "ScaleDynamic", batch: Any = "N", **attributes: Any
) -> tuple[Any, Any]:
    """x (N, 3, 8, 8) -> Conv -> plugin -> Conv -> y; and the same without the plugin."""
    weights = {
        "w1": RNG.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "w2": RNG.standard_normal((2, 4, 3, 3)).astype(np.float32),
    }
    x = helper.make_tensor_value_info("x", FLOAT, [batch, 3, 8, 8])
    y = helper.make_tensor_value_info("y", FLOAT, [batch, 2, 8, 8])
    first = helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4)
    middle = helper.make_node(op, ["a"], ["b"], name="scale", **attributes)
    last = helper.make_node("Conv", ["b", "w2"], ["y"], pads=[1] * 4)
    direct = helper.make_node("Conv", ["a", "w2"], ["y"], pads=[1] * 4)
    return model([first, middle, last], [x], [y], weights), model(
        [first, direct], [x], [y], weights
    )

"""Networks: a graph with weights, read from files or built by layers. Names load on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noria.network.caffe import network_from_caffe
    from noria.network.darknet import network_from_darknet
    from noria.network.network import Network, NetworkSummary, UnknownOperator
    from noria.network.onnx_file import network_from_onnx
    from noria.network.tensor_spec import TensorSpec
    from noria.network.uff import network_from_uff

_LAZY = {
    "Network": "network",
    "NetworkSummary": "network",
    "TensorSpec": "tensor_spec",
    "UnknownOperator": "network",
    "network_from_caffe": "caffe",
    "network_from_darknet": "darknet",
    "network_from_onnx": "onnx_file",
    "network_from_uff": "uff",
}

__all__ = [
    "Network",
    "NetworkSummary",
    "TensorSpec",
    "UnknownOperator",
    "network_from_caffe",
    "network_from_darknet",
    "network_from_onnx",
    "network_from_uff",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'noria.network' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"noria.network.{_LAZY[name]}"), name)
    globals()[name] = value
    return value

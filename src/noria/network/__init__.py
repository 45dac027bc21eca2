"""Networks: a graph with weights, read from files or built by layers."""

from __future__ import annotations

from noria.network.caffe import network_from_caffe
from noria.network.network import Network, NetworkSummary, UnknownOperator
from noria.network.onnx_file import network_from_onnx
from noria.network.tensor_spec import TensorSpec

__all__ = [
    "Network",
    "NetworkSummary",
    "TensorSpec",
    "UnknownOperator",
    "network_from_caffe",
    "network_from_onnx",
]

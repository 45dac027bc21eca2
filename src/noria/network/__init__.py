"""Networks: a graph with weights, read from files or built by layers."""

from __future__ import annotations

from noria.network.caffe import network_from_caffe
from noria.network.darknet import network_from_darknet
from noria.network.network import Network, NetworkSummary, UnknownOperator
from noria.network.onnx_file import network_from_onnx
from noria.network.tensor_spec import TensorSpec
from noria.network.uff import network_from_uff

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

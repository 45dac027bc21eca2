"""Networks: a graph with weights, read from files or built by layers. Names load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.network.caffe.importer import network_from_caffe
    from headrace.network.darknet.importer import network_from_darknet
    from headrace.network.network import Network, NetworkSummary, UnknownOperator
    from headrace.network.onnx_file import network_from_onnx
    from headrace.network.tensor_spec import TensorSpec
    from headrace.network.uff.importer import network_from_uff
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".caffe.importer": "network_from_caffe",
            ".darknet.importer": "network_from_darknet",
            ".network": "Network NetworkSummary UnknownOperator",
            ".onnx_file": "network_from_onnx",
            ".tensor_spec": "TensorSpec",
            ".uff.importer": "network_from_uff",
        },
    )

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

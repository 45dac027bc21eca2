"""Layers as ONNX nodes, with TensorRT's maths; one file per family of layers.

A function marked `@lowers("CONVOLUTION")` appends the nodes of one layer to a `Fragment` and
returns the names of the outputs. Shapes are known at each step, so it may look at them.
"""

from __future__ import annotations

from noria.trt.lowering.fragment import Fragment, lowering_of, lowers

__all__ = ["Fragment", "lowering_of", "lowers"]

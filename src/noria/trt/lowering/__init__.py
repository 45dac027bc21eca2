"""Layers as ONNX nodes, with TensorRT's maths; one file per family of layers.

A function marked `@lowers("CONVOLUTION")` appends the nodes of one layer to a `Fragment` and
returns the names of the outputs. Shapes are known at each step, so it may look at them.
"""

from __future__ import annotations

from noria.trt.lowering import arithmetic as arithmetic
from noria.trt.lowering import control as control
from noria.trt.lowering import convolution as convolution
from noria.trt.lowering import detection as detection
from noria.trt.lowering import gather as gather
from noria.trt.lowering import normalize as normalize
from noria.trt.lowering import plugins as plugins
from noria.trt.lowering import quantize as quantize
from noria.trt.lowering import resize as resize
from noria.trt.lowering import shape as shape
from noria.trt.lowering import slice as slice
from noria.trt.lowering import sums as sums

"""How each layer becomes ONNX operators; one file per family."""

from __future__ import annotations

from noria.network.darknet.layers import combine, convolution, pooling
from noria.network.darknet.layers.heads import HEADS
from noria.network.darknet.lowering import Lower

__all__ = ["HEADS", "LOWERINGS"]

LOWERINGS: dict[str, Lower] = {
    **combine.LOWERINGS,
    **convolution.LOWERINGS,
    **pooling.LOWERINGS,
    **HEADS,
}
"""Name of a section -> the function that makes its nodes."""

"""How each UFF operation becomes ONNX operators; one file per family."""

from __future__ import annotations

from noria.network.uff.lowering import Lower
from noria.network.uff.ops import arithmetic, shapes, spatial

__all__ = ["LOWERINGS"]

LOWERINGS: dict[str, Lower] = {**arithmetic.LOWERINGS, **shapes.LOWERINGS, **spatial.LOWERINGS}
"""Operation -> the function that makes its nodes."""

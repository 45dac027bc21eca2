"""INT64 outputs as INT32, for C++ parsers of the time when TensorRT had no INT64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.custom.user_calls import Checked
from headrace.meta.layers import Layer, NetworkInfo

_LIMITS = np.iinfo(np.int32)


class NarrowedOutputs:
    """A parser that gets INT64 outputs as INT32; values beyond become the nearest.

    Attributes:
        where: library and function.
        notices: repairs of results, the parser's own.
    """

    def __init__(self, parser: Checked[Any, Any]) -> None:
        self._parser = parser
        self.where, self.notices = parser.where, parser.notices

    def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: Any) -> Any:
        """Parse one item.

        Raises:
            ParserError: as of the parser.
        """
        narrowed = {name: _narrowed(layer) for name, layer in layers.items()}
        return self._parser(narrowed, network, params)


def _narrowed(layer: Layer) -> Layer:
    if layer.data.dtype != np.int64:
        return layer
    return replace(layer, data=layer.data.clip(_LIMITS.min, _LIMITS.max).astype(np.int32))

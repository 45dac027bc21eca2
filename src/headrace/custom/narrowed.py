"""INT64 outputs as INT32, for C++ parsers of the time when TensorRT had no INT64."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headrace.binary.elf import ElfError, ElfFile
from headrace.custom.user_calls import Checked
from headrace.meta.layers import Layer, NetworkInfo

_LIMITS = np.iinfo(np.int32)
_OF_TENSORRT = re.compile(r"libnv(?:infer|infer_plugin|onnxparser|parsers)\.so\.(\d+)")
_FIRST_WITH_INT64 = 10


def older_tensorrt(path: Path) -> str | None:
    """Name the library of a TensorRT without INT64 that a C++ library is linked against, if any."""
    try:
        needed = ElfFile.read(path).needed
    except (ElfError, OSError):
        return None
    for name in needed:
        version = _OF_TENSORRT.match(name)
        if version is not None and int(version[1]) < _FIRST_WITH_INT64:
            return name
    return None


class NarrowedOutputs:
    """A parser that gets INT64 outputs as INT32; values beyond become the nearest.

    Attributes:
        reason: what tells that the library is of that time.
        where: library and function.
        notices: repairs of results, the parser's own.
    """

    def __init__(self, parser: Checked[Any, Any], reason: str) -> None:
        self._parser, self.reason = parser, reason
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

"""What a parser is given: output layers, network size, thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.meta.detections import Detections, FloatArray

__all__ = ["BoxParser", "DetectionParams", "Layer", "NetworkInfo"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One output tensor of one batch item.

    `data` has the batch axis removed (a tensor that is only batch has shape (1,)), and is valid
    during the call of the parser only.
    """

    name: str
    data: npt.NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    def __repr__(self) -> str:
        return f"Layer({self.name!r}, {self.dtype}, {'x'.join(map(str, self.shape))})"


@dataclass(frozen=True, slots=True)
class NetworkInfo:
    """Size of the network input in pixels."""

    width: int
    height: int
    channels: int


@dataclass(frozen=True, slots=True)
class DetectionParams:
    """The detector settings of the config that a parser may use.

    Attributes:
        num_classes: `num-detected-classes`.
        per_class_threshold: (C,) float32, `pre-cluster-threshold` of each class; boxes with a
            score below it are dropped after the parser, so skipping them early is only faster.
        per_class_post_threshold: (C,) float32, `post-cluster-threshold` of each class.
        labels: names of the classes, possibly fewer than `num_classes`.
    """

    num_classes: int
    per_class_threshold: FloatArray
    per_class_post_threshold: FloatArray = field(default_factory=lambda: np.empty(0, np.float32))
    labels: Sequence[str] = ()

    @property
    def min_threshold(self) -> float:
        """The lowest pre-cluster threshold of any class: below it no box can survive."""
        return float(self.per_class_threshold.min()) if len(self.per_class_threshold) else 0.0


BoxParser = Callable[[Mapping[str, Layer], NetworkInfo, DetectionParams], Detections]
"""A detector parser: (layers in binding order, network, params) -> Detections in network space."""

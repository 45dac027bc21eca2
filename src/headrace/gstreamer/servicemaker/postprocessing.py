"""Base of an application's own decoders of raw outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headrace.gstreamer.servicemaker.tensor import Tensor


class PostProcessing(ABC):
    """Decodes the raw outputs of any network in an operator."""

    @abstractmethod
    def __call__(self, output_layers: dict[str, Tensor]) -> Any:
        """Decode the outputs for one frame or object.

        Args:
            output_layers: outputs by name, without the axis of the batch.
        """


class ObjectDetectorOutputConverter(PostProcessing):
    """Decodes the raw outputs of a detector in an operator.

    It sees `TensorOutputUserMetadata.get_layers`. The same function in a file that
    `custom-lib-path` names runs before clustering, and in `headrace run` too.
    """

    @abstractmethod
    def __call__(self, output_layers: dict[str, Tensor]) -> list[Any]:
        """Decode the outputs for one frame.

        Args:
            output_layers: outputs by name, without the axis of the batch.

        Returns:
            A row for each object: class, score, x1, y1, x2, y2 in network pixels.
        """


class ObjectClassifierOutputConverter(PostProcessing):
    """Decodes the raw outputs of a classifier in an operator."""

    @abstractmethod
    def __call__(self, output_layers: dict[str, Tensor]) -> list[Any]:
        """Decode the outputs for one frame or object.

        Args:
            output_layers: outputs by name, without the axis of the batch.

        Returns:
            A row for each attribute.
        """

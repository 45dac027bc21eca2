"""The base class of model parsers that are written in Python."""

from __future__ import annotations

from typing import Any


class IModelParser:
    """Makes a network from a model of one's own format.

    `NvDsInferCreateModelParser(initParams)` of the custom library gives one. Its methods are called
    in this order: `hasFullDimsSupported`, `parseModel`, `getModelName`.
    Source: custom-library spec 2.3.
    """

    def hasFullDimsSupported(self) -> bool:
        """Whether the network's shapes include the batch; otherwise they leave it out."""
        return True

    def parseModel(self, network: Any) -> int | None:
        """Add layers to `network`, a `noria.trt.INetworkDefinition`, and mark its outputs.

        Returns:
            0 or None if all went well, else a status of NvDsInferStatus.
        """
        raise NotImplementedError("parseModel")

    def getModelName(self) -> str:
        """Name of the model, for messages."""
        return type(self).__name__

"""nvinferserver: nvinfer with another configuration, over ONNX models of a Triton repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace.config import ModelConfig
from headrace.config.reading import read_bytes
from headrace.config.server_config import is_server_config
from headrace.gstreamer.elements.element import NVMM, through
from headrace.gstreamer.elements.infer import PROPERTIES as OF_NVINFER
from headrace.gstreamer.elements.infer import NvInfer
from headrace.gstreamer.elements.properties import Property

# 0 stands for what the file says.
PROPERTIES = OF_NVINFER | {
    "unique-id": Property("uint", 0, "number of the model; 0: of the file"),
    "process-mode": Property("uint", 0, "1: whole frames, 2: objects; 0: of the file", 0, 2),
    "batch-size": Property(
        "uint", 0, "most items the engine takes at once; 0: of the file", 0, 1024
    ),
}


class NvInferServer(NvInfer):
    """Runs a model of a Triton repository in this process; no server is asked."""

    __gtype_name__ = "GstNvInferServer"
    ABOUT = ("NvInferServer plugin", "NvInferServer", "Runs a model on batches")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def read_config(self, path: Path) -> ModelConfig:
        """Read the text of a protocol buffer."""
        if not is_server_config(read_bytes(path)):
            raise ConfigError("the file has no infer_config { … }", where=str(path))
        return ModelConfig.load(path)

    def asked(self) -> dict[str, Any]:
        """Return the config's fields that the application set; 0 is the file's."""
        overrides, void = super().asked(), ("gie_unique_id", "process_mode", "batch_size")
        return {field: value for field, value in overrides.items() if value or field not in void}

"""`EngineInspector`: the layers of an engine in words or JSON. Source: tensorrt-api spec 4.4."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headrace._core.json_record import finite_data
from headrace.trt.api.record import LayerRecord
from headrace.trt.types.enums import LayerInformationFormat
from headrace.trt.types.strict import Strict, kept

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.api.engine import ICudaEngine
    from headrace.trt.types.reporting import IErrorRecorder


class EngineInspector(Strict):
    """Describes layers; made by `ICudaEngine.create_engine_inspector`.

    With detailed verbosity layers have inputs, outputs and precision, else only a name.
    """

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._context: Any = None
        self._recorder: IErrorRecorder | None = None

    execution_context = kept("_context", "A context that gives the shapes.")
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")

    def get_layer_information(self, layer_index: int, format: NumberedEnum) -> str:
        """One layer."""
        layers = self._engine._record.layers
        if not 0 <= layer_index < len(layers):
            self._engine._report(f"there is no layer {layer_index}", recorder=self._recorder)
            return ""
        description = self._layer(layers[layer_index])
        if LayerInformationFormat(format).name == "JSON":
            return json.dumps(finite_data(description), indent=1)
        return f"{self._line(layers[layer_index])}\n"

    def get_engine_information(self, format: NumberedEnum) -> str:
        """All layers, and the bindings."""
        layers = self._engine._record.layers
        bindings = [b.name for b in self._engine._bindings]
        if LayerInformationFormat(format).name == "JSON":
            data = {"Layers": [self._layer(layer) for layer in layers], "Bindings": bindings}
            return json.dumps(finite_data(data), indent=1)
        lines = "\n".join(self._line(layer) for layer in layers)
        return f"Layers:\n{lines}\n\nBindings:\n" + "\n".join(bindings) + "\n"

    @property
    def _detailed(self) -> bool:
        return self._engine._record.verbosity == "DETAILED"

    def _layer(self, layer: LayerRecord) -> Any:
        if not self._detailed:
            return layer.name
        shapes = {}
        if self._context is not None:
            names = [b.name for b in self._engine._bindings]
            shapes = {n: list(self._context.get_tensor_shape(n)) for n in names}
        return {
            "Name": layer.name,
            "LayerType": layer.kind,
            "Inputs": [self._tensor(name, shapes, layer) for name in layer.inputs],
            "Outputs": [self._tensor(name, shapes, layer) for name in layer.outputs],
            "ParameterType": layer.kind.title().replace("_", ""),
            "Precision": layer.precision,
            "TacticValue": "",
            "Metadata": layer.metadata,
        }

    def _tensor(self, name: str, shapes: dict[str, list[int]], layer: LayerRecord) -> Any:
        binding = self._engine._by_name.get(name)
        kind = layer.precision if binding is None else binding.dtype.name
        return {"Name": name, "Dimensions": shapes.get(name, []), "Format/Datatype": linear(kind)}

    def _line(self, layer: LayerRecord) -> str:
        if not self._detailed:
            return layer.name
        return (
            f"{layer.name} [{layer.kind}]: {', '.join(layer.inputs)} -> {', '.join(layer.outputs)}"
        )


def linear(kind: str) -> str:
    """Word the format of a tensor as TensorRT does: every one here is linear."""
    return f"Row major linear {_KINDS.get(kind, kind)}"


_KINDS = {"FLOAT": "FP32", "HALF": "FP16"}

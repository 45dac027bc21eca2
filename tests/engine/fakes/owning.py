"""A runtime that compiles, and computes some plugins itself, as TensorRT does: `P` doubles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx

from headrace.engine.backends import PluginKey, RunnerOptions
from headrace.engine.backends.onnxruntime import backend as onnxruntime
from headrace.errors import EngineError


class Owning:
    """See module.

    Attributes:
        has: plugins that it computes.
        refuses: it compiles no model with plugins after all.
        compiled: operators of each model that was compiled.
    """

    name = "owning"

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.has = {("P", "1", "")}
        self.refuses = False
        self.compiled: list[list[str]] = []

    def version(self) -> str:
        return "1"

    def why_not(self) -> str | None:
        return None

    def lacks(self, plugins: Iterable[PluginKey]) -> list[PluginKey]:
        return [key for key in plugins if key not in self.has]

    def compile(self, model: bytes, options: RunnerOptions) -> bytes:
        proto = onnx.ModelProto.FromString(model)
        self.compiled.append([node.op_type for node in proto.graph.node])
        for node in proto.graph.node:
            if node.op_type == "P":
                if self.refuses:
                    raise EngineError("P takes other fields here")
                node.op_type, node.domain = "Add", ""
                node.input.append(node.input[0])
                del node.attribute[:]
        return proto.SerializeToString()

    def open(self, model: bytes, options: RunnerOptions, compiled: bytes | None = None) -> Any:
        return onnxruntime.open(compiled or self.compile(model, options), options)


backend = Owning()

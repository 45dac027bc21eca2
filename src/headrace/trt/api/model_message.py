"""An ONNX message that a script gives in parts: the graph first, then its initialisers.

So weights need not be copied into one message. Source: TensorRT's Python bindings since 10.13.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, helper

from headrace._core.errors import ModelError
from headrace.network.network import Network
from headrace.network.onnx_file import network_from_onnx_bytes
from headrace.plugins.memory import array_at

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Buffer


Fail = Callable[[list[str]], bool]
"""Keeps the faults of a parser, and gives False."""


class ModelMessage:
    """The message, until it is parsed."""

    def __init__(self) -> None:
        self._proto: ModelProto | None = None
        self._path = Path("model.onnx")

    def load(self, model: Buffer, path: str | None, fail: Fail) -> bool:
        """Read a message; its initialisers may lack their data.

        Args:
            model: the bytes.
            path: its file, beside which external data is looked for.
            fail: called with the faults.
        """
        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(bytes(memoryview(model)))
        except DecodeError as error:
            return fail([f"the bytes are no ONNX message: {error}"])
        self._proto, self._path = proto, Path(path or "model.onnx")
        return True

    def set_initializer(self, name: str, data: int, size: int, fail: Fail) -> bool:
        """Give an initialiser its data.

        Args:
            name: of the initialiser.
            data: address of its elements, in the order of ONNX's raw data.
            size: bytes there.
            fail: called with the faults.
        """
        if self._proto is None:
            return fail(["load_initializer is called before load_model_proto"])
        tensor = next((t for t in self._proto.graph.initializer if t.name == name), None)
        if tensor is None:
            return fail([f"the model has no initialiser {name!r}"])
        kind = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        need = int(np.prod(tensor.dims)) * kind.itemsize
        if int(size) != need:
            return fail([f"{size} bytes for initialiser {name!r}, which has {need}"])
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DEFAULT
        tensor.raw_data = array_at(int(data), (need,), np.dtype(np.uint8)).tobytes()
        return True

    def network(self) -> Network:
        """The whole model.

        Raises:
            HeadraceError: no message was loaded, or it is no model.
        """
        if self._proto is None:
            raise ModelError("no message was loaded", fix="call load_model_proto first")
        return network_from_onnx_bytes(
            self._proto.SerializeToString(), self._path, needs_inputs=False
        )

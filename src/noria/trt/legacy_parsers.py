"""Parsers of Caffe and UFF models, up to 9.x.

Both make networks with an implicit batch, unless the network was made with an explicit one.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from noria.errors import NoriaError
from noria.network.network import Network
from noria.plugins.dims import Dims
from noria.trt.enums import UffInputOrder
from noria.trt.network import INetworkDefinition
from noria.trt.onnx_parser import OnnxParser
from noria.trt.reporting import Severity, report
from noria.trt.strict import Closable, Strict
from noria.trt.tensor import ITensor

__all__ = ["CaffeParser", "IBlobNameToTensor", "UffParser"]

_TOP = re.compile(r'\btop\s*:\s*"([^"]*)"')
_ORDERS: dict[str, Literal["NCHW", "NHWC", "NC"]] = {"NCHW": "NCHW", "NHWC": "NHWC", "NC": "NC"}


def _add(network: INetworkDefinition, read: Network, logger: Any) -> dict[str, ITensor] | None:
    """Append the layers of a model; its outputs by name, which are not marked."""
    if "EXPLICIT_BATCH" not in network._flags and not network._layers:
        network._implicit = True
    before = len(network._outputs)
    if not OnnxParser(network, logger)._add(read):
        return None
    made = {t._name: t for t in network._outputs[before:]}
    del network._outputs[before:]
    return made


class IBlobNameToTensor(Strict):
    """Finds the tensors of a parsed Caffe model."""

    def __init__(self, tensors: dict[str, ITensor]) -> None:
        self._tensors = tensors

    def find(self, name: str) -> ITensor | None:
        """The tensor of a blob; None if there is no such blob."""
        return self._tensors.get(name)


class CaffeParser(Closable):
    """Reads a prototxt and a caffemodel."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._logger: Any = None

    def _setting(self, name: str, value: Any) -> None:
        self._settings[name] = value

    @property
    def plugin_factory_v2(self) -> Any:
        """Factories are not asked: plugins come from the registry."""
        return self._settings.get("plugin_factory_v2")

    @plugin_factory_v2.setter
    def plugin_factory_v2(self, value: Any) -> None:
        self._setting("plugin_factory_v2", value)

    @property
    def plugin_namespace(self) -> str:
        """Recorded."""
        return str(self._settings.get("plugin_namespace", ""))

    @plugin_namespace.setter
    def plugin_namespace(self, value: str) -> None:
        self._setting("plugin_namespace", str(value))

    @property
    def protobuf_buffer_size(self) -> int:
        """Recorded."""
        return int(self._settings.get("protobuf_buffer_size", 2**30))

    @protobuf_buffer_size.setter
    def protobuf_buffer_size(self, value: int) -> None:
        self._setting("protobuf_buffer_size", int(value))

    def parse(
        self, deploy: str, model: str, network: INetworkDefinition, dtype: Any
    ) -> IBlobNameToTensor | None:
        """Add the layers; None if they cannot be read, and the logger says why.

        Args:
            dtype: of the weights; they are kept as they are.
        """
        from noria.network.caffe import network_from_caffe

        try:
            text = Path(deploy).read_text(errors="replace")
        except OSError as error:
            report(network._logger, Severity.ERROR, f"{deploy}: {error.strerror or error}")
            return None
        tops = tuple(dict.fromkeys(_TOP.findall(text)))
        read: Network | None = None
        problem = ""
        for outputs in (tops, ()):  # every blob if that can be, else those that nothing takes
            try:
                read = network_from_caffe(Path(deploy), Path(model), outputs=outputs)
                break
            except NoriaError as error:
                problem = str(error)
        if read is None:
            report(network._logger, Severity.ERROR, problem)
            return None
        tensors = _add(network, read, network._logger)
        if tensors is None:
            return None
        tensors |= {t._name: t for t in network._inputs if t._name not in tensors}
        return IBlobNameToTensor(tensors)

    def parse_buffer(
        self, deploy_buffer: bytes, model_buffer: bytes, network: INetworkDefinition, dtype: Any
    ) -> IBlobNameToTensor | None:
        """`parse` for bytes."""
        with tempfile.TemporaryDirectory() as folder:
            deploy, model = Path(folder, "deploy.prototxt"), Path(folder, "model.caffemodel")
            deploy.write_bytes(bytes(deploy_buffer))
            model.write_bytes(bytes(model_buffer))
            return self.parse(str(deploy), str(model), network, dtype)


class UffParser(Closable):
    """Reads a UFF model; inputs and outputs are told before."""

    def __init__(self) -> None:
        self._input: tuple[str, tuple[int, ...], str] | None = None
        self._outputs: list[str] = []
        self._namespace = ""

    @property
    def plugin_namespace(self) -> str:
        """Recorded."""
        return self._namespace

    @plugin_namespace.setter
    def plugin_namespace(self, value: str) -> None:
        self._namespace = str(value)

    @property
    def uff_required_version_major(self) -> int:
        """Version of the format."""
        return 0

    @property
    def uff_required_version_minor(self) -> int:
        """Version of the format."""
        return 6

    def register_input(self, name: str, shape: Sequence[int], order: Any = None) -> bool:
        """The input, its shape without the batch, and the order of its axes. There is one."""
        kind = "NCHW" if order is None else UffInputOrder(order).name
        self._input = (str(name), tuple(Dims(shape)), kind)
        return True

    def register_output(self, name: str) -> bool:
        """An output."""
        self._outputs.append(str(name))
        return True

    def parse(self, file: str, network: INetworkDefinition, weights_type: Any = None) -> bool:
        """Add the layers and mark the outputs; False if they cannot be, and the logger says why."""
        from noria.network.uff import network_from_uff
        from noria.plugins.imported import ImportedPlugins
        from noria.plugins.known import known_plugins

        name, shape, order = self._input or (None, None, "NCHW")
        try:
            read = network_from_uff(
                Path(file), input_name=name, input_dims=cast(Any, shape),
                input_order=_ORDERS[order], outputs=tuple(self._outputs),
                plugins=ImportedPlugins(known_plugins()),
            )  # fmt: skip
        except NoriaError as error:
            report(network._logger, Severity.ERROR, str(error))
            return False
        made = _add(network, read, network._logger)
        if made is None:
            return False
        for tensor in made.values():
            network.mark_output(tensor)
        return True

    def parse_buffer(
        self, buffer: bytes, network: INetworkDefinition, weights_type: Any = None
    ) -> bool:
        """`parse` for bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.uff")
            path.write_bytes(bytes(buffer))
            return self.parse(str(path), network, weights_type)

"""Parsers of Caffe and UFF models, up to 9.x.

Both make networks with an implicit batch, unless the network was made with an explicit one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headrace._core.errors import HeadraceError
from headrace._core.files import os_reason
from headrace.network.network import Network
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.fields import field_of_value
from headrace.plugins.types import Dims
from headrace.trt.api.network import INetworkDefinition
from headrace.trt.api.onnx_parser import OnnxParser
from headrace.trt.types.enums import UffInputOrder
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Closable, Stored, Strict, always, kept
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import Weights

if TYPE_CHECKING:
    from headrace.plugins.types import DataType, NumberedEnum
    from headrace.trt.types.reporting import IErrorRecorder, ILogger


def _add(
    network: INetworkDefinition, read: Network, logger: ILogger | None
) -> dict[str, ITensor] | None:
    """Append the layers of a model; its outputs by name, which are not marked."""
    if "EXPLICIT_BATCH" not in network._flags and not network._layers:
        network._implicit = True
    before = len(network._outputs)
    if not OnnxParser(network, logger)._add(read):
        return None
    outputs = {t._name: t for t in network._outputs[before:]}
    del network._outputs[before:]
    return outputs


class _Factory:
    """A factory of the user, as importers ask it; see `headrace.plugins.imported.LayerFactory`."""

    def __init__(self, *factories: Any, namespace: str) -> None:
        self._factories = [f for f in factories if f is not None]
        self._namespace = namespace
        self._taken: Any = None

    def takes(self, layer: str) -> bool:
        self._taken = next((f for f in self._factories if f.is_plugin_v2(layer)), None)
        return self._taken is not None

    def create(self, layer: str, weights: Sequence[Any], fields: Mapping[str, Any]) -> Any:
        wrapped = [Weights(w) for w in weights]
        if not fields:
            return self._taken.create_plugin(layer, wrapped, self._namespace)
        values = [field_of_value(name, value) for name, value in fields.items()]
        collection = PluginFieldCollection(v for v in values if v is not None)
        return self._taken.create_plugin(layer, wrapped, self._namespace, collection)


def _plugins(*factories: object, namespace: str) -> Any:
    from headrace.plugins.imported import ImportedPlugins
    from headrace.plugins.registry import known_plugins

    return ImportedPlugins(known_plugins(), _Factory(*factories, namespace=namespace))


def _every_top(deploy: Path) -> list[str]:
    """Blobs of the layers that are not for training only, in their order."""
    from headrace._core.proto_text import read_proto_text
    from headrace.network.caffe.layers import TRAINING_ONLY
    from headrace.network.caffe.net import read_net

    net = read_net(read_proto_text(deploy.read_text(errors="replace"), str(deploy)), str(deploy))
    layers = [layer for layer in net.layers if layer.type not in TRAINING_ONLY]
    return list(dict.fromkeys(top for layer in layers for top in layer.tops))


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
        self._plain: dict[str, object] = {}
        self._logger: ILogger | None = None
        self._plugin_factory: Any = None  # of C++ sources, from before IPluginV2

    plugin_factory_v2 = Stored(
        None,
        "Makes the layers for which `is_plugin_v2(layer_name)` is True, by "
        "`create_plugin(layer_name, weights, namespace)`; they stay the factory's.",
    )
    plugin_namespace = Stored("", "Namespace that the factory gets.", str)
    protobuf_buffer_size = Stored(2**30, "Recorded.", int)
    error_recorder = Stored(None, "Kept; the network's is asked.")

    def parse(
        self, deploy: str, model: str, network: INetworkDefinition, dtype: DataType
    ) -> IBlobNameToTensor | None:
        """Add the layers; None if they cannot be read, and the logger has the reason.

        Args:
            deploy: the prototxt.
            model: the caffemodel.
            network: receives the layers.
            dtype: of the weights; they are kept as they are.
        """
        from headrace.network.caffe.importer import network_from_caffe

        plugins = _plugins(
            self._plugin_factory, self.plugin_factory_v2, namespace=self.plugin_namespace
        )
        try:
            tops = _every_top(Path(deploy))
            read = network_from_caffe(Path(deploy), Path(model), outputs=tops, plugins=plugins)
        except OSError as error:
            report(network._logger, Severity.ERROR, f"{deploy}: {os_reason(error)}")
            return None
        except HeadraceError as error:
            report(network._logger, Severity.ERROR, str(error))
            return None
        tensors = _add(network, read, network._logger)
        if tensors is None:
            return None
        tensors |= {t._name: t for t in network._inputs if t._name not in tensors}
        return IBlobNameToTensor(tensors)

    def parse_buffer(
        self,
        deploy_buffer: bytes,
        model_buffer: bytes,
        network: INetworkDefinition,
        dtype: DataType,
    ) -> IBlobNameToTensor | None:
        """`parse` for bytes."""
        with tempfile.TemporaryDirectory() as folder:
            deploy, model = Path(folder, "deploy.prototxt"), Path(folder, "model.caffemodel")
            deploy.write_bytes(bytes(deploy_buffer))
            model.write_bytes(bytes(model_buffer))
            return self.parse(str(deploy), str(model), network, dtype)


class UffParser(Closable):
    """Reads a UFF model; inputs and outputs are registered before."""

    def __init__(self) -> None:
        self._input: tuple[str, tuple[int, ...], str] | None = None
        self._outputs: list[str] = []
        self._namespace = ""
        self._recorder: IErrorRecorder | None = None
        self._plugin_factory: Any = None  # of C++ sources, from before IPluginV2

    plugin_namespace = kept("_namespace", "Namespace that a factory gets.", convert=str)

    uff_required_version_major = always(0, "Version of the format.")
    uff_required_version_minor = always(6, "Version of the format.")
    uff_required_version_patch = always(9, "Version of the format.")
    error_recorder = kept("_recorder", "Kept; the network's is asked.")

    def register_input(
        self, name: str, shape: Sequence[int], order: NumberedEnum | None = None
    ) -> bool:
        """The input, its shape without the batch, and the order of its axes. There is one."""
        kind = "NCHW" if order is None else UffInputOrder(order).name
        self._input = (str(name), tuple(Dims(shape)), kind)
        return True

    def register_output(self, name: str) -> bool:
        """An output."""
        self._outputs.append(str(name))
        return True

    def parse(
        self, file: str, network: INetworkDefinition, weights_type: DataType | None = None
    ) -> bool:
        """Add the layers and mark the outputs; False, with a report to the logger, if not."""
        from headrace.network.uff.importer import network_from_uff

        name, shape, order = self._input or (None, None, "NCHW")
        try:
            read = network_from_uff(
                Path(file), input_name=name, input_dims=cast(Any, shape),
                input_order=cast(Any, order), outputs=tuple(self._outputs),
                plugins=_plugins(self._plugin_factory, namespace=self._namespace),
            )  # fmt: skip
        except HeadraceError as error:
            report(network._logger, Severity.ERROR, str(error))
            return False
        outputs = _add(network, read, network._logger)
        if outputs is None:
            return False
        for tensor in outputs.values():
            network.mark_output(tensor)
        return True

    def parse_buffer(
        self, buffer: bytes, network: INetworkDefinition, weights_type: DataType | None = None
    ) -> bool:
        """`parse` for bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.uff")
            path.write_bytes(bytes(buffer))
            return self.parse(str(path), network, weights_type)

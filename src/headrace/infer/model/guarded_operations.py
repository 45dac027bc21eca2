"""Operations of a worker that makes networks and computes plugins.

The worker keeps networks, plugin layers and contexts in `Keeping.kept`, by number.
"""

from __future__ import annotations

import base64
import pickle
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.types import Array
from headrace.custom.guard.ipc import notices_json

Arrays = list[Array]
Answer = tuple[dict[str, Any], Arrays]
_numbers = count(1)


class Keeping(Protocol):
    """A `serve.LibraryWorker`, or an object that runs operations in its place."""

    kept: dict[int, Any]


def open_engines(worker: Keeping, payload: dict[str, object], arrays: Arrays) -> Answer:
    """Load a library of networks and plugins; answer with the creators that it registers."""
    from headrace.plugins.base import IPluginCreatorV3One

    return {
        "creators": [
            [c.name, c.plugin_version, c.plugin_namespace, isinstance(c, IPluginCreatorV3One)]
            for c in _open(worker, payload)
        ],
        "notices": notices_json(worker.kept[0].decisions),
    }, []


def _open(worker: Keeping, payload: dict[str, Any]) -> list[Any]:
    """Load a library; return the plugin creators that it registers."""
    from headrace.binary.elf import ElfFile
    from headrace.infer.model.engine_functions import CppEngines
    from headrace.plugins.calls import name_calls
    from headrace.plugins.registry import get_plugin_registry
    from headrace.plugins.watch import watch_every_run

    watch_every_run()
    name_calls(_native.guard_set_function)
    registry = get_plugin_registry()
    before = {id(c) for c in registry.all_creators}
    path = Path(payload["path"])
    worker.kept[0] = CppEngines(_config(payload), path, ElfFile.read(path))
    return [c for c in registry.all_creators if id(c) not in before]


def make_network(worker: Keeping, payload: dict[str, object], arrays: Arrays) -> Answer:
    """Call a function that makes a network.

    The answer has the network's number; the graph with all weights, and the plan if there is one.
    """
    notices: list[Any] = []
    network = worker.kept[0].make(payload["function"], notices)
    number = next(_numbers)
    worker.kept[number] = network
    return _made(network, number, notices)


def preview_network(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Make the network of a config by its library's function, without an engine."""
    from headrace.infer.model.library_source import library_source

    notices: list[Any] = []
    source = library_source(_config(payload), notices)
    if source is None:
        raise CustomLibraryError("nothing of it makes a network", where=payload["where"])
    network = source.network()
    network.built = None
    return _made(network, 0, notices)


def preview_plugins(worker: Keeping, payload: dict[str, object], arrays: Arrays) -> Answer:
    """Create the plugins that a library has for nodes, as a build of the model begins."""
    import onnx

    from headrace.network.ir import node_from_proto
    from headrace.plugins.base import IPluginCreatorV3One
    from headrace.plugins.calls import call_creator
    from headrace.plugins.fields import fields_of
    from headrace.plugins.lookup import find_creator
    from headrace.plugins.registry import get_plugin_registry
    from headrace.plugins.types import TensorRTPhase

    own = {id(c) for c in _open(worker, payload)}
    for data in arrays:
        node = onnx.NodeProto.FromString(data.tobytes())
        creator = find_creator(node, get_plugin_registry())
        if creator is None or id(creator) not in own:
            continue
        where = f"{payload['where']}, node {node.name!r}"
        fields, _ = fields_of(node_from_proto(node), creator, where)
        more = (TensorRTPhase.BUILD,) if isinstance(creator, IPluginCreatorV3One) else ()
        call_creator(creator, "parse", node.name, "create_plugin", node.name, fields, *more)
    return {}, []


def _config(payload: dict[str, Any]) -> Any:
    # the application sends it, which this process trusts; the application itself unpickles nothing
    return pickle.loads(base64.b64decode(payload["config"]))


def _made(network: Any, number: int, notices: list[Any]) -> Answer:
    blobs = [network.to_proto().SerializeToString()]
    if network.built is not None:
        blobs.append(b"".join(network.built.to_chunks()))
    return {
        "network": number,
        "plugins": list(network.plugins),
        "implicit_batch": network.implicit_batch,
        "notices": notices_json(notices),
    }, [np.frombuffer(data, np.uint8) for data in blobs]


def build_layers(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Run `build_plugins`; answer with records and notices; the graph and the blobs."""
    from headrace.engine.plugin_graph.plugin_layers import build_plugins
    from headrace.network.onnx_file import network_from_onnx_bytes
    from headrace.network.tensor_spec import TensorSpec

    model, where = arrays[0].tobytes(), payload["where"]
    number = payload["network"]
    network = worker.kept[number] if number else network_from_onnx_bytes(model, Path(where))
    layers = build_plugins(
        network,
        model,
        [TensorSpec(name, np.dtype(kind), tuple(shape)) for name, kind, shape in payload["inputs"]],
        max_batch=payload["max_batch"],
        batched=payload["batched"],
        profiles=[
            {name: (tuple(a), tuple(b), tuple(c)) for name, (a, b, c) in profile.items()}
            for profile in payload["profiles"]
        ],
        scales=payload.get("scales"),
        where=where,
    )
    if layers is None:
        return {"none": True}, []
    built = []
    for engine in layers.built:
        built.append(next(_numbers))
        worker.kept[built[-1]] = engine
    return {
        "records": [record.to_json().decode() for record in layers.records],
        "blobs": list(layers.blobs),
        "notices": notices_json(layers.notices),
        "built": built,
    }, [np.frombuffer(data, np.uint8) for data in (layers.model, *layers.blobs.values())]


def load_layer(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Load a plugin layer of a plan, ready for contexts."""
    from headrace.engine.plugin_graph.plugin_record import PluginRecord
    from headrace.engine.plugin_graph.plugin_saving import saved_of
    from headrace.plugins.drivers import load_engine_plugin
    from headrace.plugins.registry import known_plugins

    record = PluginRecord.from_json(payload["record"])
    blobs = dict(zip(record.blobs, (a.tobytes() for a in arrays), strict=True))
    engine = load_engine_plugin(saved_of(record, blobs, payload["where"]), known_plugins())
    try:
        engine.finish()
    except BaseException:
        engine.close()
        raise
    number = next(_numbers)
    worker.kept[number] = engine
    return {"layer": number}, []


def open_layer(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Open a new execution context of a layer."""
    number = next(_numbers)
    context = worker.kept[number] = worker.kept[payload["layer"]].context()
    context.report = context.notices.append
    return {"context": number}, []


def call_layer(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Run a layer in a context, as `ContextPlugin.run`."""
    inputs, fresh = payload["inputs"], payload["fresh"]
    context = worker.kept[payload["context"]]
    outputs = context.run(arrays[:inputs], shape_inputs=arrays[inputs:], fresh=fresh)
    notices, context.notices[:] = notices_json(context.notices), []
    return {"notices": notices}, outputs


def close(worker: Keeping, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Close a layer or a context."""
    kept = worker.kept.pop(payload["number"], None)
    if kept is not None:
        kept.close()
    return {}, []

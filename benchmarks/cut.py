"""What a plugin in the middle of a graph costs, and whether plugins leak.

The table compares YOLOX-nano with an identity plugin in its middle to the same without, on one
thread: as sessions run it (ONNX Runtime calls the plugin), and split in two at the plugin.
`python -m benchmarks.cut 10000` lives that many whole lives of a small engine (build, save, load,
run, destroy) and prints the memory of the process on the way.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.common import Row, data_dir, in_turns
from headrace.engine import Plan
from headrace.engine.backends import get_backend, installed_backends
from headrace.engine.builder import BuildOptions, build
from headrace.engine.plugin_graph.opening import load_plugins, open_plugin_graph
from headrace.network import network_from_onnx
from headrace.plugins import (
    DataType,
    IPluginCreator,
    IPluginV2DynamicExt,
    PluginFieldCollection,
    PluginRegistry,
    array_at,
)

TYPE = "IdentityPlugin"


class Identity(IPluginV2DynamicExt):
    """y = x."""

    def __init__(self) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version, self.plugin_namespace = TYPE, "1", ""
        self.num_outputs = 1

    def clone(self) -> Any:
        return Identity()

    def serialize(self) -> bytes:
        return b""

    def get_output_dimensions(self, output_index: int, inputs: Any, expr_builder: Any) -> Any:
        return inputs[0]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return bool(in_out[pos].type == DataType.FLOAT)

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        x = array_at(inputs[0], ins[0].dims, np.float32)
        np.copyto(array_at(outputs[0], ins[0].dims, np.float32, writable=True), x)


class Creator(IPluginCreator):
    def __init__(self) -> None:
        super().__init__()
        self.name, self.plugin_version = TYPE, "1"
        self.field_names = PluginFieldCollection()

    def create_plugin(self, name: str, field_collection: Any) -> Any:
        return Identity()

    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        return Identity()


def _registry() -> PluginRegistry:
    registry = PluginRegistry()
    registry.register_creator(Creator())
    return registry


def rows() -> Iterable[Row]:
    """Latency with the plugin, and without."""
    data = data_dir()
    if data is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = data / "models" / "yolox_nano.onnx"
        changed = Path(folder) / "cut.onnx"
        onnx.save(_with_identity(onnx.load(plain)), changed)
        for runtime in ("onnxruntime", "openvino"):
            if runtime in installed_backends():
                yield from _compared(runtime, plain, changed)


def _compared(runtime: str, plain: Path, changed: Path) -> Iterator[Row]:
    options = BuildOptions(runtime=runtime, threads=1, registry=_registry())
    plans = [build(network_from_onnx(p), options) for p in (changed, plain, plain)]
    for plan in plans:
        plan.registry = options.registry
    sessions = [plan.open_session(threads=1) for plan in plans]
    (spec,) = sessions[0].inputs
    shape = [d if isinstance(d, int) else 1 for d in spec.shape]
    x = {spec.name: np.random.default_rng(0).random(shape, np.float32) * 255}
    for name, value in sessions[1].run(x).items():
        np.testing.assert_allclose(sessions[0].run(x)[name], value, rtol=1e-3, atol=1e-3)
    runs = [lambda s=s: s.run(x) for s in sessions]
    pieces = _cut_in_two(plans[0], runtime)
    runs.append(lambda: pieces.run(x))
    for _ in range(10):
        for run in runs:
            run()
    for what, run in (
        ("with an identity plugin; without", runs[0]),
        ("twice, for the noise", runs[2]),
        ("cut at the plugin; without", runs[3]),
    ):
        yield in_turns(f"YOLOX-nano {what}; {runtime}", run, runs[1], repeat=300)
    pieces.close()
    for session in sessions:
        session.close()


def _cut_in_two(plan: Plan, runtime: str) -> Any:
    """A runner of the plan that passes arrays from piece to plugin and on."""
    records = plan.header.plugins
    assert plan.registry is not None
    plugins = load_plugins(records, plan.blobs, plan.registry, "the model")
    model, options = plan.blobs["model"], plan.run_options(threads=1)
    return open_plugin_graph(get_backend(runtime), model, options, records, plugins, pieces=True)


def _with_identity(model: Any) -> Any:
    """The plugin behind the last activation of the first half of the nodes."""
    graph = model.graph
    nodes = list(graph.node)
    at = max(i for i, n in enumerate(nodes[: len(nodes) // 2]) if n.op_type in ("Mul", "Relu"))
    made = nodes[at].output[0]
    for node in nodes[at + 1 :]:
        for i, name in enumerate(node.input):
            if name == made:
                node.input[i] = "cut"
    plugin = helper.make_node(TYPE, [made], ["cut"], name="identity")
    del graph.node[:]
    graph.node.extend([*nodes[: at + 1], plugin, *nodes[at + 1 :]])
    return model


def live_many(lives: int, report: Any = print, every: int = 1000) -> list[int]:
    """Whole lives of an engine with a plugin; memory in KiB on the way."""
    registry = _registry()
    nodes = [helper.make_node("Relu", ["x"], ["a"]),
             helper.make_node(TYPE, ["a"], ["b"], name="identity"),
             helper.make_node("Neg", ["b"], ["y"])]  # fmt: skip
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 3, 8, 8]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    memory = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(made, path)
        started = perf_counter()
        for life in range(1, lives + 1):
            options = BuildOptions(max_batch=2, threads=1, registry=registry)
            built = build(network_from_onnx(path), options)
            built.registry = registry
            data = b"".join(built.to_chunks())
            built.open_session(threads=1).close()
            plan = Plan.from_bytes(data)
            plan.registry = registry
            with plan.open_session(threads=1) as session:
                session.run({"x": x})
            if life % every == 0:
                memory.append(_resident())
                rate = (perf_counter() - started) / life * 1e3
                report(f"{life} lives: {memory[-1]} KiB resident, {rate:.1f} ms a life")
    return memory


def _resident() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


if __name__ == "__main__":
    live_many(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

"""Execution contexts and profiles as a plugin sees them: objects of its own for each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import headrace.trt as trt

LOGGER = trt.Logger(trt.Logger.ERROR)


class Counting(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    """y = x + how often this object was run."""

    configured: ClassVar[list[Any]] = []
    attached = 0

    def __init__(self) -> None:
        super().__init__()
        self.plugin_name, self.plugin_version, self.plugin_namespace = "Counting", "1", ""
        self.num_outputs = 1
        self.calls = 0

    def get_capability_interface(self, type: Any) -> object:
        return self

    def clone(self) -> Counting:
        return Counting()

    def get_output_data_types(self, types: Any) -> Any:
        return [types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, exprs: Any) -> Any:
        return [trt.DimsExprs(inputs[0])]

    def supports_format_combination(self, pos: int, in_out: Any, count: int) -> bool:
        desc = in_out[pos].desc
        return bool(desc.type == trt.float32 and desc.format == trt.TensorFormat.LINEAR)

    def configure_plugin(self, inputs: Any, outputs: Any) -> None:
        desc = inputs[0]
        Counting.configured.append(tuple(map(tuple, (desc.min, desc.opt, desc.max))))

    def on_shape_change(self, inputs: Any, outputs: Any) -> None: ...

    def set_tactic(self, tactic: int) -> None: ...

    def attach_to_context(self, context: Any) -> Counting:
        Counting.attached += 1
        return self.clone()

    def get_fields_to_serialize(self) -> Any:
        return trt.PluginFieldCollection([])

    def enqueue(self, inp: Any, out: Any, inputs: Any, outputs: Any, *rest: Any) -> None:
        self.calls += 1
        x = trt.array_at(inputs[0], inp[0].dims, np.float32)
        trt.array_at(outputs[0], out[0].dims, np.float32, writable=True)[...] = x + self.calls


class Creator(trt.IPluginCreatorV3One):
    def __init__(self) -> None:
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "Counting", "1", ""
        self.field_names = trt.PluginFieldCollection([])

    def create_plugin(self, name: str, fields: Any, phase: Any) -> Counting:
        return Counting()


def engine(rank: int, *profiles: tuple[int, int, int]) -> Any:
    trt.get_plugin_registry().register_creator(Creator(), "")
    rest = (3, 4, 4)[: rank - 1]
    builder = trt.Builder(LOGGER)
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (-1, *rest))
    layer = network.add_plugin_v3([x], [], Counting())
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = builder.create_builder_config()
    for extents in profiles:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *((n, *rest) for n in extents))
        config.add_optimization_profile(profile)
    Counting.configured.clear()
    return trt.Runtime(LOGGER).deserialize_cuda_engine(
        builder.build_serialized_network(network, config)
    )


def run(context: Any, x: Any) -> float:
    y = np.zeros_like(x)
    context.set_input_shape("x", x.shape)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    return float(y.reshape(-1)[0])


def test_each_context_has_objects_of_its_own() -> None:
    made = engine(2, (1, 1, 4))
    x = np.zeros((1, 3), np.float32)
    before = Counting.attached
    first, second = made.create_execution_context(), made.create_execution_context()
    assert Counting.attached == before + 2
    assert [run(first, x), run(first, x), run(second, x), run(first, x)] == [1, 2, 1, 3]
    del first
    third = made.create_execution_context()
    assert [run(third, x), run(second, x)] == [1, 2]


def test_each_profile_reaches_the_plugin_with_its_bounds() -> None:
    for rank in (2, 3, 4):
        rest = (3, 4, 4)[: rank - 1]
        engine(rank, (1, 2, 4), (1, 8, 16))
        seen = list(dict.fromkeys(Counting.configured))
        assert seen == [tuple((n, *rest) for n in extents) for extents in ((1, 2, 4), (1, 8, 16))]


def test_a_context_whose_plugin_cannot_be_attached_is_none() -> None:
    made = engine(2, (1, 1, 4))

    def refuse(self: Counting, context: Any) -> None:
        raise ValueError("no room")

    attach, Counting.attach_to_context = Counting.attach_to_context, refuse  # type: ignore[method-assign, assignment]
    try:
        assert made.create_execution_context() is None
    finally:
        Counting.attach_to_context = attach  # type: ignore[method-assign]
    assert run(made.create_execution_context(), np.zeros((1, 3), np.float32)) == 1

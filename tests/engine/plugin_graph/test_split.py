"""What plugins may ask for: types, decided shapes, shape inputs, shared memory, decomposition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from headrace.engine.builder import BuildOptions, build
from headrace.errors import ModelError, PluginError
from headrace.plugins import (
    DataType,
    DimensionOperation,
    DimsExprs,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuildV2,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    PluginRegistry,
    Tracer,
    array_at,
)
from tests.plugins.models import FLOAT, conv_plugin_conv, model, network

info = helper.make_tensor_value_info
X = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)


class Base(IPluginV3, IPluginV3OneCore, IPluginV3OneBuildV2, IPluginV3OneRuntime):
    """y = x, of any types; subclasses change one thing each."""

    types: Any = (DataType.FLOAT,)

    def __init__(self) -> None:
        IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = "P", "1", ""
        self.num_outputs = 1

    def clone(self) -> Any:
        made = type(self)()
        made.__dict__.update(self.__dict__)
        return made

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0]]

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, make: Any) -> Any:
        return [inputs[0]]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return in_out[pos].desc.type in self.types

    def get_fields_to_serialize(self) -> Any:
        return PluginFieldCollection()

    def attach_to_context(self, context: Any) -> Any:
        return self.clone()

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        self.seen = [d.type for d in (*ins, *outs)]
        x = array_at(inputs[0], ins[0].dims, ins[0].type)
        array_at(outputs[0], outs[0].dims, outs[0].type, writable=True)[...] = x


class InPlace(Base):
    """y = 2 x, in the memory of x."""

    def get_aliased_input(self, output_index: int) -> int:
        return 0

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        assert inputs[0] == outputs[0]
        array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] *= 2


class Creator(IPluginCreatorV3One):
    def __init__(self, cls: Any) -> None:
        super().__init__()
        self.cls = cls
        self.name, self.plugin_version = "P", "1"
        self.field_names = PluginFieldCollection(
            [PluginField(n, None, PluginFieldType.INT32) for n in ("a", "b")]
        )

    def create_plugin(self, name: str, fields: Any, phase: Any) -> Any:
        made = self.cls()
        made.fields = fields
        return made


def built(cls: Any, made: Any, folder: Path, **options: Any) -> Any:
    registry = PluginRegistry()
    registry.register_creator(Creator(cls))
    plan = build(network(made, folder), BuildOptions(registry=registry, **options))
    plan.registry = registry
    return plan


def one_node(kind: int = FLOAT, out: Any = ("N", 3, 4, 4), **attributes: Any) -> Any:
    node = helper.make_node("P", ["x"], ["y"], **attributes)
    return model([node], [info("x", kind, ["N", 3, 4, 4])], [info("y", kind, out)])


def run(plan: Any, x: Any) -> Any:
    with plan.open_session() as session:
        return session.run({"x": x})["y"]


@pytest.mark.parametrize(
    ("network_type", "accepted"),
    [
        (TensorProto.FLOAT, DataType.HALF),
        (TensorProto.FLOAT16, DataType.FLOAT),
        (TensorProto.FLOAT16, DataType.HALF),
        (TensorProto.INT64, DataType.INT32),
        (TensorProto.INT64, DataType.INT64),
        (TensorProto.UINT8, DataType.FLOAT),
        (TensorProto.INT32, DataType.INT32),
    ],
)
def test_values_are_cast_around_a_plugin(tmp_path: Path, network_type: int, accepted: Any) -> None:
    class Typed(Base):
        types = (accepted,)

    dtype = helper.tensor_dtype_to_np_dtype(network_type)
    x = np.arange(96).reshape(2, 3, 4, 4).astype(dtype)
    plan = built(Typed, one_node(network_type), tmp_path, max_batch=2)
    got = run(plan, x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x)
    assert plan.header.plugins[0].input_types == (accepted.name,)


def test_a_plugin_that_accepts_nothing(tmp_path: Path) -> None:
    class Picky(Base):
        types = ()

    with pytest.raises(PluginError) as caught:
        built(Picky, one_node(), tmp_path)
    assert "refuses input 0 as FLOAT, input 0 as HALF" in str(caught.value)


def test_shapes_of_outputs_are_arithmetic(tmp_path: Path) -> None:
    class Halves(Base):
        def get_output_shapes(self, inputs: Any, shape_inputs: Any, make: Any) -> Any:
            two = make.constant(2)
            n, c, h, w = inputs[0]
            half = make.operation(DimensionOperation.CEIL_DIV, w, two)
            twice = make.operation(DimensionOperation.PROD, n, two)
            same = make.operation(DimensionOperation.FLOOR_DIV, twice, two)
            return [DimsExprs([same, c, h, half])]

        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
            x = array_at(inputs[0], ins[0].dims, ins[0].type)
            array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = x[..., ::2]

    plan = built(Halves, one_node(out=("N", 3, 4, 2)), tmp_path, max_batch=2)
    for n in (2, 1):
        np.testing.assert_array_equal(run(plan, X[:n]), X[:n, ..., ::2])


class Nonzero(Base):
    """Positions of positive values of one item, as many as there are."""

    report = 0

    def __init__(self) -> None:
        super().__init__()
        self.num_outputs = 2

    def get_output_data_types(self, input_types: Any) -> Any:
        return [input_types[0], DataType.INT32]

    def supports_format_combination(self, pos: int, in_out: Any, num_inputs: int) -> bool:
        return in_out[pos].desc.type == (DataType.INT32 if pos == 2 else DataType.FLOAT)

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, make: Any) -> Any:
        most = make.constant(48)
        size = make.declare_size_tensor(1, make.constant(20), most)
        return [DimsExprs([make.constant(1), size]), DimsExprs()]

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        assert outs[0].dims == (1, -1)
        x = array_at(inputs[0], ins[0].dims, np.float32)
        found = x[x > 0]
        array_at(outputs[0], found.shape, np.float32, writable=True)[...] = found
        array_at(outputs[1], (), np.int32, writable=True)[...] = found.size + self.report


def nonzero_model() -> Any:
    nodes = [
        helper.make_node("P", ["x"], ["p", "count"]),
        helper.make_node("Add", ["p", "p"], ["y"]),
    ]
    return model(nodes, [info("x", FLOAT, [1, 3, 4, 4])], [info("y", FLOAT, [1, None])])


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_plugin_may_decide_how_long_an_output_is(tmp_path: Path, runtime: str) -> None:
    plan = built(Nonzero, nonzero_model(), tmp_path, runtime=runtime)
    with plan.open_session() as session:
        for x in (X[:1], -X[:1], X[1:]):
            np.testing.assert_allclose(session.run({"x": x})["y"], 2 * x[x > 0][None], rtol=1e-6)


def test_a_length_that_was_not_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = built(Nonzero, nonzero_model(), tmp_path)
    monkeypatch.setattr(Nonzero, "report", 100)
    with pytest.raises(PluginError, match="0 to 48, as declare_size_tensor announced"):
        run(plan, X[:1])


class ToShape(Base):
    """x cut or filled to the shape that a shape input says."""

    def get_output_shapes(self, inputs: Any, shape_inputs: Any, make: Any) -> Any:
        return [shape_inputs[0]]

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        assert len(ins) == len(inputs) == 1  # shape inputs are not among them
        x = array_at(inputs[0], ins[0].dims, np.float32)
        array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = x.reshape(-1)[0]


@pytest.mark.parametrize("constant", [True, False])
def test_shape_inputs_are_values(tmp_path: Path, constant: bool) -> None:
    mark = {"tensorrt_plugin_shape_input_indices": [-1]}
    nodes = [helper.make_node("P", ["x", "s"], ["y"], **mark)]
    weights: dict[str, Any] = {"s": np.array([1, 2, 5], np.int64)}
    if not constant:  # computed from the input: (1, 3, 4, 4) -> (1, 4, 4)
        weights = {"at": np.array([0, 2, 3], np.int64)}
        nodes = [
            helper.make_node("Shape", ["x"], ["all"]),
            helper.make_node("Gather", ["all", "at"], ["s"]),
            *nodes,
        ]
    made = model(nodes, [info("x", FLOAT, [1, 3, 4, 4])], [info("y", FLOAT, None)], weights)
    got = run(built(ToShape, made, tmp_path), X[:1])
    assert got.shape == ((1, 2, 5) if constant else (1, 4, 4))
    assert (got == X[0, 0, 0, 0]).all()


def test_an_output_may_share_the_memory_of_an_input(tmp_path: Path) -> None:
    x = X.copy()
    got = run(built(InPlace, one_node(), tmp_path, max_batch=2), x)
    np.testing.assert_array_equal(got, 2 * X)
    np.testing.assert_array_equal(x, X)  # the caller's own array stays what it was


def test_writing_into_an_input_is_refused(tmp_path: Path) -> None:
    class Rude(Base):
        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
            array_at(inputs[0], ins[0].dims, np.float32, writable=True)[...] = 0

    with pytest.raises(PluginError, match="input 0 must not be written to"):
        run(built(Rude, one_node(), tmp_path), X[:1])


def test_reading_beyond_an_input_is_refused(tmp_path: Path) -> None:
    class Greedy(Base):
        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
            array_at(inputs[0], (1000,), np.float32)

    with pytest.raises(PluginError, match="needs 4000 bytes; input 0 has 192"):
        run(built(Greedy, one_node(), tmp_path), X[:1])


class Decomposed(Base):
    def to_onnx(self, node: Any, network_opset: int) -> Any:
        assert node.inputs[0].shape is not None
        (x,), (y,) = [v.name for v in node.inputs], [v.name for v in node.outputs]
        return [
            helper.make_node("Relu", [x], [f"{node.name}/r"], name=f"{node.name}/relu"),
            helper.make_node("Neg", [f"{node.name}/r"], [y], name=f"{node.name}/neg"),
        ]


def test_a_plugin_may_vanish_into_the_graph(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("P", ["x"], ["a"]),
        helper.make_node("Abs", ["a"], ["b"]),
        helper.make_node("P", ["b"], ["y"]),
    ]
    shape = ["N", 3, 4, 4]
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    with Tracer() as tracer:
        plan = built(Decomposed, made, tmp_path, max_batch=2)
    assert plan.header.plugins == ()
    plan.registry = None
    np.testing.assert_array_equal(run(plan, X), -np.maximum(X, 0))
    assert [c.method for c in tracer.calls if c.phase != "parse"] == []


def test_a_decomposition_must_be_onnx(tmp_path: Path) -> None:
    class Wrong(Base):
        def to_onnx(self, node: Any, network_opset: int) -> Any:
            return [helper.make_node("Unheard", ["x"], ["y"])]

    with pytest.raises(PluginError, match="to_onnx returned Unheard"):
        built(Wrong, one_node(), tmp_path)


def test_attributes_become_fields_by_their_own_kinds(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Keeps(Base):
        def clone(self) -> Any:
            seen.append(self.fields)
            return super().clone()

        fields: Any = ()

    plan = built(Keeps, one_node(a=[1, 2**32 + 5], ignored=3.0), tmp_path)
    (field,) = seen[0]
    assert (field.name, field.type, field.data.tolist()) == ("a", PluginFieldType.INT32, [1, 5])
    assert any("no attribute b" in n.sentence for n in plan.decisions)
    (told,) = [n for n in plan.decisions if "beyond 32 bits" in n.sentence]
    assert told.level == "warning"
    assert "attribute a: 4294967301" in told.sentence
    assert "node 'node_of_y'" in (told.where or "")


@pytest.mark.parametrize(
    ("kind", "name"), [(TensorProto.STRING, "string"), (TensorProto.FLOAT8E4M3FN, "float8_e4m3fn")]
)
def test_types_that_plugins_cannot_have(tmp_path: Path, kind: int, name: str) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], to=kind),
        helper.make_node("P", ["c"], ["p"], name="mine"),
        helper.make_node("Cast", ["p"], ["y"], to=FLOAT),
    ]
    shape = ["N", 3, 4, 4]
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)], opset=19)
    with pytest.raises(PluginError) as caught:
        built(Base, made, tmp_path)
    told = str(caught.value)
    assert "node 'mine' (P)" in told
    assert f"input 'c' is {name}" in told
    assert "float32" in told


def test_weights_may_be_inputs_of_a_plugin(tmp_path: Path) -> None:
    class Adds(Base):
        def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
            a, b, c = (array_at(p, d.dims, np.float32) for p, d in zip(inputs, ins, strict=True))
            array_at(outputs[0], outs[0].dims, np.float32, writable=True)[...] = a + b * c

    nodes = [
        helper.make_node("Constant", [], ["c"], value_floats=[2.0]),
        helper.make_node("P", ["x", "w", "c"], ["y"]),
    ]
    shape = ["N", 3, 4, 4]
    made = model(
        nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)],
        {"w": np.full((1, 3, 1, 1), 3, np.float32)},
    )  # fmt: skip
    np.testing.assert_allclose(run(built(Adds, made, tmp_path, max_batch=2), X), X + 6, rtol=1e-6)


def test_shapes_that_inference_does_not_know_are_measured(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["nz"]),  # nothing says how many
        helper.make_node("Cast", ["nz"], ["f"], to=FLOAT),
        helper.make_node("Unsqueeze", ["f", "zero"], ["u"]),
        helper.make_node("P", ["u"], ["p"]),
        helper.make_node("Identity", ["p"], ["y"]),
    ]
    made = model(
        nodes, [info("x", FLOAT, [1, 3, 4, 4])], [info("y", FLOAT, None)],
        {"zero": np.array([0], np.int64)},
    )  # fmt: skip
    plan = built(Base, made, tmp_path)
    with plan.open_session() as session:
        for x in (X[:1], np.maximum(X[:1], 0)):
            got = session.run({"x": x})["y"]
            np.testing.assert_array_equal(got, np.stack(np.nonzero(x))[None].astype(np.float32))


def test_a_function_of_the_model_may_hold_a_plugin(tmp_path: Path) -> None:
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"],
        [helper.make_node("P", ["a"], ["t"]), helper.make_node("Add", ["t", "t"], ["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    node = helper.make_node("Twice", ["x"], ["y"], domain="local")
    shape = ["N", 3, 4, 4]
    made = model([node], [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    made.opset_import.append(helper.make_opsetid("local", 1))
    made.functions.append(function)
    np.testing.assert_array_equal(run(built(Base, made, tmp_path, max_batch=2), X), 2 * X)


class Compiles:
    """A runtime that makes something of each model it is given, by another one."""

    name = "onnxruntime"

    def __init__(self, *, refuses: bytes = b"nothing of it", here: bool = True) -> None:
        from headrace.engine.backends import get_backend

        self.inner = get_backend("onnxruntime")
        self.refuses, self.here = refuses, here
        self.compiled: list[bytes] = []
        self.opened: list[bytes | None] = []

    def version(self) -> str:
        return self.inner.version()

    def why_not(self) -> str | None:
        return None if self.here else "there is no device"

    def compile(self, model: bytes, options: Any) -> bytes:
        from headrace.errors import EngineError

        if self.refuses in model:
            raise EngineError("this is refused")
        self.compiled.append(model)
        return b"compiled " + str(len(self.compiled)).encode()

    def open(self, model: bytes, options: Any, compiled: bytes | None = None) -> Any:
        self.opened.append(compiled)
        return self.inner.open(model, options)


@pytest.mark.parametrize("here", [True, False])
def test_pieces_are_compiled_once_and_kept(
    here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a runtime that compiles, the pieces between plugins are in the plan."""
    from headrace.engine import backends, builder
    from headrace.engine import plan as plans

    backend = Compiles(here=here)
    for module in (backends, builder, plans):
        monkeypatch.setattr(module, "get_backend", lambda name: backend)
    made, plain = conv_plugin_conv("P", batch=1)
    plan = built(Base, made, tmp_path)
    kept = {k: v for k, v in plan.blobs.items() if k.startswith("piece ")}
    assert kept == {"piece 0": b"compiled 1", "piece 1": b"compiled 2"}
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    backend.here = True
    loaded = plans.Plan.from_bytes(b"".join(plan.to_chunks()))
    loaded.registry = plan.registry
    with loaded.open_session() as session:
        got = session.run({"x": x})["y"]
    assert len(backend.compiled) == 2
    assert backend.opened[-2:] == [b"compiled 1", b"compiled 2"]
    monkeypatch.undo()
    with build(network(plain, tmp_path)).open_session() as session:
        np.testing.assert_allclose(got, session.run({"x": x})["y"], rtol=1e-6)


def test_a_piece_that_is_refused_is_told_at_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.engine import builder
    from headrace.errors import EngineError

    backend = Compiles(refuses=b"w2", here=False)
    monkeypatch.setattr(builder, "get_backend", lambda name: backend)
    with pytest.raises(EngineError, match="this is refused"):
        built(Base, conv_plugin_conv("P", batch=1)[0], tmp_path)


def test_too_many_outputs(tmp_path: Path) -> None:
    node = helper.make_node("P", ["x"], ["y", "z"])
    shape = [1, 3, 4, 4]
    made = model([node], [info("x", FLOAT, shape)], [info(n, FLOAT, shape) for n in "yz"])
    with pytest.raises(ModelError, match="at most 1: plugin P has no more"):
        built(Base, made, tmp_path)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    from headrace.engine.plugin_graph.plugin_record import PluginRecord

    plan = built(Base, one_node(), tmp_path)
    good = plan.header.plugins[0].to_dict()
    assert PluginRecord.from_json(plan.header.plugins[0].to_json()) == plan.header.plugins[0]
    for change in (
        {"shapes": ['[["axis",0,9]]']},
        {"shapes": ["[" * 5000]},
        {"shapes": ['[["axis",1,0]]']},
        {"output_types": []},
        {"aliases": [3]},
        {"tactics": []},
        {"input_types": ["FP4"]},
        {"profiles": []},
        {"workspaces": [-1]},
    ):
        with pytest.raises(ValueError):
            PluginRecord.from_dict({**good, **change})


def test_the_model_itself_is_not_changed(tmp_path: Path) -> None:
    made = one_node()
    registry = PluginRegistry()
    registry.register_creator(Creator(Base))
    net = network(made, tmp_path)
    before = net.to_proto().SerializeToString(deterministic=True)
    for _ in range(2):
        build(net, BuildOptions(registry=registry))
    assert net.to_proto().SerializeToString(deterministic=True) == before
    assert onnx.load(tmp_path / "m.onnx").graph.node[0].name == ""


def test_nodes_that_save_a_crossing_run_behind_the_cut(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Neg", ["r"], ["n"]),  # read behind the plugin only, as r is too
        helper.make_node("P", ["r"], ["p"]),
        helper.make_node("Add", ["p", "n"], ["s"]),
        helper.make_node("Add", ["s", "r"], ["y"]),
    ]
    shape = ["N", 3, 4, 4]
    made = model(nodes, [info("x", FLOAT, shape)], [info("y", FLOAT, shape)])
    from headrace.engine.plugin_graph.split import split_graph

    split = split_graph(_described(made, tmp_path), {"node_of_p": (("r",), ("p",))})
    first, second = split.sections
    assert first.piece is not None
    assert second.piece is not None
    assert first.piece.outputs == ("r",)
    behind = onnx.ModelProto.FromString(split.model(second.piece)).graph
    assert [n.op_type for n in behind.node] == ["Neg", "Add", "Add"]
    assert (first.piece.batched, second.piece.batched) == (True, True)
    np.testing.assert_array_equal(
        run(built(Base, made, tmp_path, max_batch=2), X), np.maximum(X, 0)
    )


def _described(made: Any, folder: Path) -> Any:
    return onnx.ModelProto.FromString(built(Base, made, folder, max_batch=2).blobs["model"])

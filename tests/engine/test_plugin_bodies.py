"""Plugins in the bodies of If, Loop and Scan, against the same models without plugins."""

from __future__ import annotations

import contextlib
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from noria.engine.builder import BuildOptions, build
from noria.errors import ModelError, NoriaError
from noria.network import network_from_onnx
from noria.plugins import PluginRegistry, Tracer, array_at
from noria.plugins.bodies import bodies_of, raise_bodies
from tests.engine.test_plugin_features import Base, Creator


class Twice(Base):
    """y = 2 x"""

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        x = array_at(inputs[0], ins[0].dims, ins[0].type)
        array_at(outputs[0], outs[0].dims, outs[0].type, writable=True)[...] = 2 * x


class TwiceInOnnx(Twice):
    def to_onnx(self, node: Any, opset: int) -> Any:
        name = node.inputs[0].name
        return [helper.make_node("Add", [name, name], [node.outputs[0].name])]


HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'


def check(text: str, folder: Path, *feeds: dict[str, Any], cls: Any = Twice) -> Any:
    """Build and run; the results must be those of the model with x + x in place of P."""
    paths = [folder / "m.onnx", folder / "plain.onnx"]
    plain = re.sub(r"P \((\w+)\)", r"Add (\1, \1)", text)
    for path, source in zip(paths, (text, plain), strict=True):
        onnx.save(onnx.parser.parse_model(HEADER + source), path)
    registry = PluginRegistry()
    registry.register_creator(Creator(cls))
    options = BuildOptions(registry=registry, batched=False)
    plan, reference = (build(network_from_onnx(path), options) for path in paths)
    plan.registry = registry
    with plan.open_session() as session, reference.open_session() as wanted:
        for feed in feeds:
            got, want = session.run(feed), wanted.run(feed)
            for name in want:
                np.testing.assert_allclose(got[name], want[name], rtol=1e-6)
    return plan


def said(plan: Any) -> str:
    return " ".join(n.message for n in plan.header.decisions)


X = np.arange(6, dtype=np.float32).reshape(2, 3) + 1


def flag(value: bool) -> Any:
    return np.array(value)


def test_both_branches_of_an_if(tmp_path: Path) -> None:
    text = """m (float[2,3] x, bool c) => (float[n,3] y, float[k] z)
    {
        a = Neg (x)
        [choose] y, z = If (c) <
            then_branch = yes () => (float[2,3] o, float[3] p)
            <float[3] w = {1, 2, 3}>
            {
                t = Add (a, w)
                [inner] o = P (t)
                p = Identity (w)
            },
            else_branch = no () => (float[4,3] o, float[2] p)
            <float[2] w = {7, 8}>
            {
                o = Concat <axis = 0> (a, x)
                p = Identity (w)
            }
        >
    }"""
    plan = check(text, tmp_path, {"x": X, "c": flag(True)}, {"x": X, "c": flag(False)})
    assert "both branches of the If are computed" in said(plan)
    assert [p.node for p in plan.header.plugins] == ["choose/then_branch/inner"]


def test_an_if_in_an_if(tmp_path: Path) -> None:
    text = """m (float[2,3] x, bool c, bool d) => (float[2,3] y)
    {
        y = If (c) <
            then_branch = yes () => (float[2,3] o) {
                n = Neg (x)
                i = If (d) <
                    then_branch = yes2 () => (float[2,3] q) { q = P (n) },
                    else_branch = no2 () => (float[2,3] q) { q = Abs (n) }
                >
                o = P (i)
            },
            else_branch = no () => (float[2,3] o) { o = Identity (x) }
        >
    }"""
    feeds = [{"x": X, "c": flag(c), "d": flag(d)} for c in (True, False) for d in (True, False)]
    plan = check(text, tmp_path, *feeds)
    assert len(plan.header.plugins) == 2


def test_an_if_that_is_decided_keeps_one_branch(tmp_path: Path) -> None:
    text = """m (float[2,3] x) => (float[2,3] y)
    <float w = {1.5}, float u = {1}>
    {
        c = Greater (w, u)
        y = If (c) <
            then_branch = yes () => (float[2,3] o) { o = Neg (x) },
            else_branch = no () => (float[2,3] o) { o = P (x) }
        >
    }"""
    plan = check(text, tmp_path, {"x": X})
    assert not plan.header.plugins
    assert "always its then_branch" in said(plan)


LOOP = """m (float[2,3] x) => (float[2,3] y, float[4,2,3] rows, float s)
{{
    m = Constant <value = int64 {{4}}> ()
    {more}
    on = Constant <value = bool {{1}}> ()
    zero = Constant <value = float {{0}}> ()
    [turns] y, s, rows = Loop ({count}, on, x, zero) <
        body = g (int64 i, bool going, float[2,3] v, float total)
            => (bool next, float[2,3] v2, float total2, float[2,3] row)
        <float w = {{0.25}}>
        {{
            next = Identity (going)
            [inner] p = P (v)
            h = Mul (p, w)
            v2 = Add (h, x)
            f = Cast <to = 1> (i)
            total2 = Add (total, f)
            row = Mul (v2, f)
        }}
    >
}}"""


@pytest.mark.parametrize("count", ["a constant", "computed"])
def test_a_loop_of_known_length(count: str, tmp_path: Path) -> None:
    """State, outputs of every turn, the number of the turn, a weight of the body."""
    more = "one = Constant <value = int64[1] {1}> () flat = Reshape (m, one) "
    more += "n = Squeeze (flat)"
    text = LOOP.format(more=more, count="m" if count == "a constant" else "n")
    plan = check(text, tmp_path, {"x": X}, {"x": -X})
    assert [p.node for p in plan.header.plugins] == [f"turns/{i}/inner" for i in range(4)]
    assert "the 4 turns of the Loop are written out" in said(plan)


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan(axis: int, back: int, tmp_path: Path) -> None:
    n = X.shape[1 - axis]
    text = f"""m (float[2,3] x) => (float[{n}] last, float[a,b] rows)
    {{
        start = Constant <value = float[{n}] {{{", ".join("1" * n)}}}> ()
        last, rows = Scan <
            num_scan_inputs = 1, scan_input_axes = [{axis}], scan_input_directions = [{back}],
            scan_output_axes = [{1 - axis}], scan_output_directions = [{back}],
            body = g (float[{n}] state, float[{n}] row) => (float[{n}] next, float[{n}] out)
            {{
                p = P (row)
                next = Add (p, state)
                out = Mul (next, row)
            }}
        > (start, x)
    }}"""
    plan = check(text, tmp_path, {"x": X})
    assert len(plan.header.plugins) == X.shape[axis]


def test_a_loop_in_a_branch(tmp_path: Path) -> None:
    text = """m (float[2,3] x, bool c) => (float[2,3] y)
    {
        y = If (c) <
            then_branch = yes () => (float[2,3] o) {
                m = Constant <value = int64 {3}> ()
                o = Loop (m, , x) <
                    body = g (int64 i, bool going, float[2,3] v) => (bool going, float[2,3] w)
                    { w = P (v) }
                >
            },
            else_branch = no () => (float[2,3] o) { o = Identity (x) }
        >
    }"""
    plan = check(text, tmp_path, {"x": X, "c": flag(True)}, {"x": X, "c": flag(False)})
    assert len(plan.header.plugins) == 3


FREE = """m (float[2,3] x, int64 m) => (float[2,3] y)
{
    [turns] y = Loop (m, , x) <
        body = g (int64 i, bool going, float[2,3] v) => (bool going, float[2,3] w)
        {
            n = Neg (v)
            [inner] w = P (n)
        }
    >
}"""


def test_a_loop_of_unknown_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error, Tracer() as tracer:
        check(FREE, tmp_path)
    text = str(error.value)
    assert "plugin P (node 'inner') stands in the body of a Loop (node 'turns')" in text
    assert "no trip count that is a constant" in text
    assert "to_onnx" in text
    assert len(tracer.sequence("destroy")) <= 1  # the one that was asked for to_onnx


def test_a_plugin_that_gives_onnx_nodes_may_stand_in_any_loop(tmp_path: Path) -> None:
    feeds = [{"x": X, "m": np.array(n, np.int64)} for n in (0, 1, 5)]
    plan = check(FREE, tmp_path, *feeds, cls=TwiceInOnnx)
    assert not plan.header.plugins


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("int64 {4}", "int64 {65}"), "has 65 turns"),
        (("next = Identity (going)", "s = ReduceSum <keepdims = 0> (v) next = Greater (s, w)"),
         "may end by a condition of its own"),
        (("on, x, zero", "c, x, zero"), "may end by a condition of its own"),
    ],
)  # fmt: skip
def test_other_loops_are_refused(change: Any, why: str, tmp_path: Path) -> None:
    more = "s0 = ReduceSum <keepdims = 0> (x) u = Constant <value = float {0}> () "
    more += "c = Greater (s0, u)"
    text = LOOP.format(more=more, count="m").replace(*change)
    with pytest.raises(ModelError, match=why):
        check(text, tmp_path)


def made_of(model: Any, folder: Path) -> Any:
    """The plan of a model in which P is a plugin."""
    onnx.save(model, folder / "m.onnx")
    registry = PluginRegistry()
    registry.register_creator(Creator(Twice))
    network = network_from_onnx(folder / "m.onnx")
    return build(network, BuildOptions(registry=registry, batched=False))


IF = """m (float[2,3] x, bool c) => (float[2,3] y)
{
    y = If (c) <
        then_branch = yes () => (float[2,3] o) { o = P (x) },
        else_branch = no () => (float[2,3] o) { o = Neg (x) }
    >
}"""
DECIDED = IF.replace(", bool c)", ")").replace("\n{\n", "\n<bool[1] c = {1}>\n{\n", 1)
TURNS = """m (float[2,3] x) => (float[2,3] y, float[n,2,3] z)
<int64 n = {3}, bool c = {1}>
{
    y, z = Loop (n, c, x) <
        body = g (int64 i, bool go, float[2,3] s) => (bool next, float[2,3] t, float[2,3] w) {
            next = Identity (go)
            t = P (s)
            w = Neg (t)
        }
    >
}"""
SCAN = """m (float[3,3] x, float[3] s0) => (float[3] y, float[a,b] z)
{
    y, z = Scan <num_scan_inputs = 1,
        body = g (float[3] s, float[3] e) => (float[3] t, float[3] w) {
            p = P (e)
            t = Add (s, p)
            w = P (t)
        }
    > (s0, x)
}"""


def parsed(text: str) -> Any:
    return onnx.parser.parse_model(HEADER + text)


def inside(node: Any, name: str) -> Any:
    return next(a.g for a in node.attribute if a.name == name)


def without(node: Any, name: str) -> None:
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def given(name: str, value: Any) -> Any:
    def change(node: Any) -> None:
        without(node, name)
        attribute = onnx.AttributeProto(name=name)
        if isinstance(value, list):
            attribute.type = onnx.AttributeProto.INTS
            attribute.ints.extend(value)
        else:
            attribute.CopyFrom(helper.make_attribute(name, value))
        node.attribute.append(attribute)

    return change


MALFORMED: list[tuple[str, Any, str]] = [
    (IF, lambda n: without(n, "else_branch"), "no else_branch"),
    (IF, lambda n: n.ClearField("input"), r"the inputs \[\]"),
    (IF, lambda n: n.input.__setitem__(0, ""), r"the inputs \[''\]"),
    (IF, lambda n: n.ClearField("output"), "no outputs"),
    (IF, lambda n: n.output.append("more"), "1 outputs in its then_branch"),
    (IF, lambda n: inside(n, "else_branch").output.add(name="x"), "2 outputs in its else_branch"),
    (IF, lambda n: inside(n, "then_branch").ClearField("output"), "0 outputs in its then_branch"),
    (IF, lambda n: inside(n, "then_branch").input.add(name="u"), "1 inputs in its then_branch"),
    (DECIDED.replace("bool[1] c = {1}", "bool[0] c = {}"), None, r"condition .* shape \[0\]"),
    (DECIDED.replace("bool[1] c = {1}", "bool[2] c = {1, 0}"), None, r"condition .* shape \[2\]"),
    (DECIDED.replace("bool[1]", "float[1]"), None, "condition of type float32"),
    (TURNS.replace("int64 n = {3}", "int64[0] n = {}"), None, r"trip count .* shape \[0\]"),
    (TURNS.replace("int64 n = {3}", "int64[2] n = {3, 4}"), None, r"trip count .* shape \[2\]"),
    (TURNS.replace("int64 n", "float n"), None, "trip count of type float32"),
    (TURNS.replace("bool c = {1}", "bool[0] c = {}"), None, r"condition .* shape \[0\]"),
    (TURNS, lambda n: inside(n, "body").ClearField("input"), "0 inputs in its body"),
    (TURNS, lambda n: inside(n, "body").input.__delitem__(slice(1, 9)), "1 inputs in its body"),
    (TURNS, lambda n: inside(n, "body").ClearField("output"), "0 outputs in its body"),
    (TURNS, lambda n: n.ClearField("input"), "no inputs"),
    (TURNS, lambda n: n.input.extend(["x", "x"]), "3 inputs in its body"),
    (TURNS, lambda n: n.input.__setitem__(2, ""), "state without a name"),
    (TURNS, lambda n: n.output.__delitem__(1), "1 outputs"),
    (TURNS, lambda n: n.ClearField("output"), "no outputs"),
    (TURNS, lambda n: n.attribute[0].g.input.__getitem__(1).ClearField("name"), "without a name"),
    (SCAN, lambda n: without(n, "num_scan_inputs"), "no num_scan_inputs"),
    (SCAN, given("num_scan_inputs", 0), "num_scan_inputs 0"),
    (SCAN, given("num_scan_inputs", -1), "num_scan_inputs -1"),
    (SCAN, given("num_scan_inputs", 3), "num_scan_inputs 3"),
    (SCAN, given("scan_input_axes", [-5]), "-5 in scan_input_axes"),
    (SCAN, given("scan_input_axes", [5]), "5 in scan_input_axes"),
    (SCAN, given("scan_input_axes", [0, 0]), r"scan_input_axes \[0, 0\]"),
    (SCAN, given("scan_input_directions", []), r"scan_input_directions \[\]"),
    (SCAN, given("scan_input_directions", [2]), r"scan_input_directions \[2\]"),
    (SCAN, given("scan_output_axes", [9]), "9 in scan_output_axes"),
    (SCAN, given("scan_output_directions", [0, 1, 1]), r"scan_output_directions \[0, 1, 1\]"),
    (SCAN, lambda n: inside(n, "body").ClearField("input"), "0 inputs in its body"),
    (SCAN, lambda n: inside(n, "body").ClearField("output"), "0 outputs in its body"),
    (SCAN, lambda n: n.ClearField("input"), "num_scan_inputs"),
    (SCAN, lambda n: n.output.__delitem__(1), "1 outputs"),
]


@pytest.mark.parametrize(("text", "change", "why"), MALFORMED, ids=[m[2] for m in MALFORMED])
def test_what_is_malformed_is_told(text: str, change: Any, why: str, tmp_path: Path) -> None:
    model = parsed(text)
    if change is not None:
        change(model.graph.node[0])
    kind = model.graph.node[0].op_type
    with pytest.raises(ModelError, match=why) as error:
        made_of(model, tmp_path)
    assert f"{kind} (node '{kind}_" in str(error.value)
    assert "expected" in str(error.value)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_nodes_end_in_errors_of_noria_only(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    model = parsed((IF, DECIDED, TURNS, SCAN)[seed % 4])
    node = model.graph.node[0]
    for _ in range(1 + seed % 3):
        places = [node.input, node.output, node.attribute]
        for body in bodies_of(node):
            places += [body.input, body.output, body.node]
            places += [inner.input for inner in body.node]
        place = places[random.integers(len(places))]
        what = random.integers(3)
        if len(place) and what == 0:
            del place[random.integers(len(place))]
        elif len(place) and what == 1:
            place.append(place[random.integers(len(place))])
        elif len(place):
            at = random.integers(len(place))
            if isinstance(place[at], str):
                place[at] = str(random.choice(["", "x", "c", "unknown"]))
            elif hasattr(place[at], "ints"):
                given(place[at].name, int(random.integers(-3, 4)))(node)
            else:
                place[at].name = str(random.choice(["", "x", "unknown"]))
    with contextlib.suppress(NoriaError):
        made_of(model, tmp_path)


NAMESAKES = """m (float[2,3] x, bool c) => (float[2,3] y)
{
    [choose] u = If (c) <
        then_branch = yes () => (float[2,3] o) { [in] o = P (x) },
        else_branch = no () => (float[2,3] o) { o = Neg (x) }
    >
    [choose] y = If (c) <
        then_branch = yes () => (float[2,3] o) { [in] o = P (u) },
        else_branch = no () => (float[2,3] o) <float[3] w = {1, 2, 3}> { o = Add (u, w) }
    >
}"""


@pytest.mark.parametrize("value", [True, False])
def test_ifs_of_one_name(value: bool, tmp_path: Path) -> None:
    plan = made_of(parsed(NAMESAKES), tmp_path)
    registry = PluginRegistry()
    registry.register_creator(Creator(Twice))
    plan.registry = registry
    with plan.open_session() as session:
        got = session.run({"x": X, "c": flag(value)})["y"]
    np.testing.assert_allclose(got, 4 * X if value else -X + np.float32([1, 2, 3]))
    assert len({p.node for p in plan.header.plugins}) == 2


def brought_up(model: Any) -> Any:
    """The graph without bodies, and what was told."""
    return raise_bodies(model, lambda node: node.op_type == "P", lambda name: None, "m")


@pytest.mark.parametrize("constant", [True, False])
def test_all_turns_share_a_weight(constant: bool) -> None:
    model = parsed(TURNS.replace("{3}", "{64}").replace("Neg (t)", "Add (t, v)"))
    body = inside(model.graph.node[0], "body")
    weight = helper.make_tensor("v", TensorProto.FLOAT, [2, 3], X.reshape(-1))
    if constant:
        body.node.insert(0, helper.make_node("Constant", [], ["v"], value=weight))
    else:
        body.initializer.append(weight)
    brought_up(model)
    assert sum(list(t.dims) == [2, 3] for t in model.graph.initializer) == 1
    assert sum(node.op_type == "P" for node in model.graph.node) == 64


def test_weights_of_bodies_inside_and_of_the_same_name(tmp_path: Path) -> None:
    text = """m (float[2,3] x, bool q) => (float[2,3] y)
    <int64 n = {2}, bool c = {1}>
    {
        y = Loop (n, c, x) <
            body = g (int64 i, bool go, float[2,3] s) => (bool go2, float[2,3] t)
            <float[3] w = {1, 2, 3}>
            {
                go2 = Constant <value = bool {1}> ()
                a = Add (s, w)
                p = P (a)
                t = If (q) <
                    then_branch = yes () => (float[2,3] o) <float[3] v = {5, 6, 7}> {
                        o = Mul (p, v)
                    },
                    else_branch = no () => (float[2,3] o) <float[3] v = {8, 9, 1}> {
                        b = Add (p, v)
                        o = Mul (b, w)
                    }
                >
            }
        >
    }"""
    check(text, tmp_path, {"x": X, "q": flag(True)}, {"x": X, "q": flag(False)})


def nested(outer: int, inner: int) -> Any:
    text = f"""m (float[2,3] x) => (float[2,3] y)
    <int64 n = {{{outer}}}, int64 k = {{{inner}}}>
    {{
        y = Loop (n, , x) <
            body = g (int64 i, bool go, float[2,3] s) => (bool go, float[2,3] t) {{
                t = Loop (k, , s) <
                    body = h (int64 j, bool on, float[2,3] u) => (bool on, float[2,3] v)
                    {{ v = P (u) }}
                >
            }}
        >
    }}"""
    return parsed(text)


def test_turns_of_loops_inside_loops_count_together() -> None:
    brought_up(model := nested(8, 8))
    assert sum(node.op_type == "P" for node in model.graph.node) == 64
    with pytest.raises(ModelError, match="16 turns in each of 16 turns around it"):
        brought_up(nested(16, 16))


def test_the_nodes_of_all_loops_count_together() -> None:
    model = parsed(TURNS.replace("{3}", "{64}"))
    loop = model.graph.node[0]
    for number in range(40):
        more = model.graph.node.add()
        more.CopyFrom(loop)
        more.output[:] = [f"y{number}", f"z{number}"]
    with pytest.raises(ModelError, match="more than 4096 nodes"):
        brought_up(model)


@pytest.mark.parametrize(
    "how",
    [
        "big = ConstantOfShape <value = int64[1] {3}> (sh) n = ReduceMax <keepdims = 0> (big)",
        "big = Expand (one, sh) n = ReduceMax <keepdims = 0> (big)",
        "big = Tile (ones, sh) n = ReduceMax <keepdims = 0> (big)",
        "f = RandomUniform <shape = [1]> () n = Cast <to = 7> (f)",
    ],
)
def test_a_trip_count_that_is_dear_to_know_is_not_known(how: str) -> None:
    model = parsed(f"""m (float[2,3] x) => (float[2,3] y)
    <int64[2] sh = {{20000, 20000}}, int64 one = {{1}}, int64[1,1] ones = {{1}}>
    {{
        {how}
        y = Loop (n, , x) <
            body = g (int64 i, bool go, float[2,3] s) => (bool go, float[2,3] t) {{ t = P (s) }}
        >
    }}""")
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="no trip count that is a constant"):
            brought_up(model)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("direct", [True, False])
def test_a_sparse_weight_of_a_body_is_refused(direct: bool, tmp_path: Path) -> None:
    model = parsed(TURNS)
    sparse = inside(model.graph.node[0], "body").sparse_initializer.add(dims=[3])
    sparse.values.CopyFrom(helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0]))
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [1], [1]))
    with pytest.raises(ModelError, match="the sparse initializer 'v'"):
        brought_up(model) if direct else made_of(model, tmp_path)

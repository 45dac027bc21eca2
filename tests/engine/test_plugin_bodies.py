"""Plugins in the bodies of If, Loop and Scan, against the same models without plugins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

from noria.engine.builder import BuildOptions, build
from noria.errors import ModelError
from noria.network import network_from_onnx
from noria.plugins import PluginRegistry, Tracer, array_at
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

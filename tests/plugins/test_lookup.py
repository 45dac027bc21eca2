"""Plugins inside If, Loop and Scan are refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx.parser
import pytest

from headrace.engine.builder import BuildOptions, build
from headrace.errors import ModelError
from headrace.network import network_from_onnx
from headrace.plugins import PluginRegistry, Tracer
from tests.engine.plugin_graph.test_split import Base, Creator

HEADER = '<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>\n'
BRANCH = """m (float[2,3] x, bool c) => (float[2,3] y)
{
    [choose] y = If (c) <
        then_branch = yes () => (float[2,3] o) { o = Neg (x) },
        else_branch = no () => (float[2,3] o) { [inner] o = P (x) }
    >
}"""
DECIDED = BRANCH.replace(", bool c)", ")").replace("\n{\n", "\n<bool[1] c = {1}>\n{\n", 1)
LOOP = """m (float[2,3] x, int64 n) => (float[2,3] y)
{
    [turns] y = Loop (n, , x) <
        body = g (int64 i, bool going, float[2,3] v) => (bool going, float[2,3] w)
        { [inner] w = P (v) }
    >
}"""
COUNTED = LOOP.replace(", int64 n)", ")").replace("\n{\n", "\n<int64 n = {3}>\n{\n", 1)
SCAN = """m (float[3,3] x, float[3] s0) => (float[3] y, float[a,b] z)
{
    [rows] y, z = Scan <num_scan_inputs = 1,
        body = g (float[3] s, float[3] e) => (float[3] t, float[3] w) {
            [inner] p = P (e)
            t = Add (s, p)
            w = Neg (t)
        }
    > (s0, x)
}"""
NESTED = """m (float[2,3] x, bool c, int64 n) => (float[2,3] y)
{
    [choose] y = If (c) <
        then_branch = yes () => (float[2,3] o) {
            [turns] o = Loop (n, , x) <
                body = g (int64 i, bool going, float[2,3] v) => (bool going, float[2,3] w)
                { [inner] w = P (v) }
            >
        },
        else_branch = no () => (float[2,3] o) { o = Identity (x) }
    >
}"""
FUNCTION = """m (float[2,3] x, bool c) => (float[2,3] y)
{ [choose] y = If (c) <
    then_branch = yes () => (float[2,3] o) { [inner] o = mine.Two (x) },
    else_branch = no () => (float[2,3] o) { o = Identity (x) }
> }
<domain: "mine", opset_import: ["" : 17]>
Two (a) => (b) { b = P (a) }"""


class InOnnx(Base):
    """A plugin that becomes ONNX nodes where it stands in the graph itself."""

    def to_onnx(self, node: object, opset: int) -> object:
        raise AssertionError("asked for nodes of a plugin that is refused")


@pytest.mark.parametrize("cls", [Base, InOnnx])
@pytest.mark.parametrize(
    ("text", "body"),
    [
        pytest.param(BRANCH, "else_branch of If (node 'choose')", id="branch"),
        pytest.param(DECIDED, "else_branch of If (node 'choose')", id="decided branch"),
        pytest.param(LOOP, "body of Loop (node 'turns')", id="loop"),
        pytest.param(COUNTED, "body of Loop (node 'turns')", id="loop of known length"),
        pytest.param(SCAN, "body of Scan (node 'rows')", id="scan"),
        pytest.param(NESTED, "body of Loop (node 'turns')", id="loop in a branch"),
        pytest.param(BRANCH.replace("[choose] ", ""), "else_branch of If (node 'node_of_y')",
                     id="unnamed"),
        pytest.param(FUNCTION, "then_branch of If (node 'choose')", id="function"),
    ],
)  # fmt: skip
def test_a_plugin_in_a_body_is_refused(text: str, body: str, cls: type, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(HEADER + text), tmp_path / "m.onnx")
    registry = PluginRegistry()
    registry.register_creator(Creator(cls))
    options = BuildOptions(registry=registry, batched=False)
    with pytest.raises(ModelError) as error, Tracer() as tracer:
        build(network_from_onnx(tmp_path / "m.onnx"), options)
    found = str(error.value)
    assert re.search(r"plugin P \(node '(inner|node_of_o)'\) is in the " + re.escape(body), found)
    assert "without control flow" in found
    assert not tracer.sequence("create_plugin")

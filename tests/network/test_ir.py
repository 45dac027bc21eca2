"""The graph library comes without SymPy, and does its arithmetic all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from onnx import helper

from headrace.network.ir import node_from_proto


def said(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOADED = "; print([n for n in sys.modules if n.split('.')[0] == 'sympy'][:3])"


@pytest.mark.slow
def test_a_model_is_built_without_sympy(mean_config, tmp_path):
    code = (
        "import sys; from headrace.config import ModelConfig; from headrace.infer.model import "
        "load_or_build; "
        f"load_or_build(ModelConfig.load({str(mean_config())!r}))"
    )
    assert said(code + LOADED, tmp_path) == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", ["from headrace.network.ir import ir", "import onnx_ir as ir", "import sympy"]
)
def test_arithmetic_with_axes_is_sympys(first, tmp_path):
    code = f"""
import sys
{first}
from headrace.network.ir import ir
assert ir is sys.modules["onnx_ir"]
n = ir.SymbolicDim("n")
print((n * 2 + 1).evaluate({{"n": 3}}))
print(ir.SymbolicDim("max(n, 4) // 2").simplify().evaluate({{"n": 9}}))
from sympy.core import Symbol
import sympy
assert Symbol is sympy.Symbol is ir._core.sympy.Symbol
assert ir.SymbolicDim(sympy.Symbol("m") + 1).value == "m + 1"
from onnx_ir import _symbolic_shapes
assert _symbolic_shapes.sympy is sympy
"""
    assert said(code, tmp_path).split() == ["7", "4"]


@pytest.mark.slow
def test_a_version_that_takes_no_stand_in_is_imported_as_it_is(tmp_path):
    (tmp_path / "onnx_ir").mkdir()
    (tmp_path / "onnx_ir" / "__init__.py").write_text("from onnx_ir import deep\n")
    (tmp_path / "onnx_ir" / "deep.py").write_text(
        "import sympy.core.add\nfrom sympy import Symbol\nis_one = sympy.core.add.Add\n"
    )
    code = (
        "import sys; sys.path.insert(0, '.'); from headrace.network.ir import ir; import sympy; "
        "print(ir.deep.is_one is sympy.Add, ir.deep.Symbol is sympy.Symbol)"
    )
    assert said(code, tmp_path) == "True True"


def test_a_node_by_itself_is_told_as_no_fault_of_a_model(caplog):
    made = node_from_proto(helper.make_node("P", ["x", "", "w", "x"], ["y", ""], "n", a=2))
    assert [v and v.name for v in made.inputs] == ["x", None, "w", "x"]
    assert (made.name, made.op_type, made.attributes["a"].value) == ("n", "P", 2)
    assert [v.name for v in made.outputs] == ["y", ""]
    assert made.graph is None
    assert not caplog.records

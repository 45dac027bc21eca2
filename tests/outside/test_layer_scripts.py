"""Scripts of single layers print what TensorRT printed: every case equal, or explained."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.outside.conftest import checkout
from tests.outside.layer_scripts import Scripts, cases, difference, inputs, run_scripts, table

LOG = """[TensorRT-Cookbook] Version: 1.0.0
============================== Start [case_a,(True,),{}]
================ Public members of <tensorrt.ILayer object at 0x75e2> (instance)
[07/07/2026-06:27:56] [TRT] [W] a word of the logger
[[-4. 0.5]]
============================== End   [case_a]
Members of tensorrt.tensorrt.Kind:
 0 -> RELU
Finish
============================== Start [case_b,(),{}]
"""


@pytest.mark.slow
def test_recorded_layer_scripts_are_equal_or_explained(
    outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "HEADRACE_OUTSIDE_PYTHON" not in os.environ and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed; HEADRACE_OUTSIDE_PYTHON names a Python that has it")
    checkout(outside, "trt-samples-for-hackathon-cn")
    checkout(outside, "TensorRT")
    found = run_scripts(outside)
    with capsys.disabled():
        print(table(found))
    assert len(found.equal) >= 124
    assert found.unexplained() == []


def test_inputs_are_read_by_name_for_each_set_up() -> None:
    log = """Input ->DataType.FLOAT, (2, 2), (2, 2), x
Input ->DataType.INT32, (-1,), (1,), k
Output->DataType.FLOAT, (2,), (2,), y
x
[[ 1.  -2.5]

 [ 3e+2 inf]]
k
[7]
y
[0. 0.]
Output->DataType.FLOAT, (1,), (1,), z
z
[9.]
"""
    assert inputs(log) == [{"x": [1, -2.5, 300, float("inf")], "k": [7]}, {}]


def test_cases_of_a_log_and_their_differences() -> None:
    found = dict(cases(LOG))
    assert found == {
        "case_a(True,),{}": ["-4.", "0.5"],
        "members of Kind": ["0", "->", "RELU"],
    }
    assert difference(["-4.0", "0.50001"], ["-4.", "0.5"]) == ""
    assert difference(["a", "0.6"], ["a", "0.5"]) == "a: 0.6 for 0.5"
    assert difference(["a"], ["a", "b"]) == "a: (nothing) for b"
    odd = Scripts(["A/case_x"], {"Fill/case_random_normal": "x"}, {"New/case_y": "z"})
    assert odd.unexplained() == ["New/case_y"]
    assert "| New/case_y | unexplained | z |" in table(odd)

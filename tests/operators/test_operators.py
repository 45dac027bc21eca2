"""A part of ONNX's operator tests: what a runtime computes alone, it computes through headrace."""

from __future__ import annotations

import warnings

import pytest

from tests.operators.harness import RUNTIMES, cases, judge

EVERY = {"onnxruntime": 19, "openvino": 53}  # compiles ten times longer


@pytest.mark.slow  # making the cases takes ONNX some seconds
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.filterwarnings("ignore")
def test_what_the_runtime_can_do_headrace_can(runtime: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = [judge(case, runtime) for case in cases()[:: EVERY[runtime]]]
    assert [o for o in outcomes if o.kind == "ours"] == []
    assert sum(o.kind == "pass" for o in outcomes) > len(outcomes) / 2

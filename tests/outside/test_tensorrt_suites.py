"""Polygraphy's and torch2trt's own tests on `headrace.trt`: their share, and each cause named."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.outside.conftest import checkout
from tests.outside.tensorrt_suites import SUITES, Outcome, run_suite, table


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_a_published_suite_passes(
    outside: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "HEADRACE_OUTSIDE_PYTHON" not in os.environ and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed; HEADRACE_OUTSIDE_PYTHON names a Python that has it")
    suite = SUITES[name]
    outcome = run_suite(suite, checkout(outside, suite.folder))
    with capsys.disabled():
        print(table({name: outcome}))
    assert outcome.share(suite) >= suite.share
    assert not [cause for cause in outcome.causes(suite) if cause.startswith("unexplained")]


def test_shares_and_causes_are_counted() -> None:
    name = "torch2trt 10.13"
    outcome = Outcome(8, {"m::test_iadd": "x", "m::folder_dataset": "y", "m::new": "z"}, 1)
    assert outcome.share(SUITES[name]) == pytest.approx(8 / 9)
    text = table({name: outcome})
    assert "| torch2trt 10.13 | 8 | 3 | 1 | 88.9% |" in text
    assert "- 1 × unexplained: m::new: z" in text

"""A failing call is made once, in a worker too: same calls, errors, warnings and frames."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.custom import CustomLibrary, open_library
from headrace.custom.guard import keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.errors import ParserError
from headrace.meta import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from tests.conftest import CONFIG, write_mean_model

CALLS, FAILS = 10, 4
NETWORK = NetworkInfo(16, 16, 3)
BOXES = DetectionParams(2, np.zeros(2, np.float32))
PARAMS: dict[str, Any] = {
    "Boxes": BOXES,
    "Instances": BOXES,
    "Attributes": ClassifierParams(0.5, [["a"]]),
    "Map": SegmentationParams(100, 0.5, 0, []),
}
ERRORS = {
    "Throws": "the parser threw std::runtime_error: the fourth call",
    "False": "the parser returned false: ",
    "Damaged": "the parser returned ",  # 117 or 197 bytes that are no list of objects
}
GUARDS = [
    "never",
    pytest.param(
        "always",
        marks=pytest.mark.skipif(
            keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
        ),
    ),
]
Compile = Callable[..., Path]


@pytest.fixture(params=GUARDS)
def library(compile_parser: Compile, request: Any, tmp_path: Path) -> Iterator[CustomLibrary]:
    own = tmp_path / "libcounting.so"  # its functions count from 0
    shutil.copy(compile_parser("counting.cpp"), own)
    opened = open_library(own, guard=request.param)
    yield opened
    if isinstance(opened, GuardedLibrary):
        opened.close()


def parser_of(library: CustomLibrary, kind: str, outcome: str) -> Any:
    name = kind + outcome
    if kind == "Boxes":
        return library.bbox_parser(name)
    if kind == "Instances":
        return library.instance_parser(name)
    if kind == "Attributes":
        return library.classifier_parser(name)
    return library.segmentation_parser(name)


def number_of(found: Any) -> int:
    """The number of the call that a result is of."""
    if isinstance(found, Classification):
        return found.attributes[0][1]
    if isinstance(found, Segmentation):
        return int(found.class_map[0, 0])
    return int(found.boxes[0, 0])


@pytest.mark.parametrize("outcome", ["Fine", *ERRORS])
@pytest.mark.parametrize("kind", PARAMS)
@pytest.mark.sampled
def test_each_call_is_made_once(library: CustomLibrary, kind: str, outcome: str) -> None:
    if outcome == "Damaged" and kind in ("Attributes", "Map"):
        pytest.skip("its result is no vector of records")
    parse = parser_of(library, kind, outcome)
    layers = {"a": Layer("a", np.zeros(4, np.float32))}
    before = len(library.decisions)
    for call in range(1, CALLS + 1):
        if call == FAILS and outcome != "Fine":
            with pytest.raises(ParserError) as failed:
                parse(layers, NETWORK, PARAMS[kind])
            assert failed.value.finding.sentence.startswith(ERRORS[outcome])
            assert failed.value.where == f"{library.path}: {kind}{outcome}"
            if outcome == "False":
                assert type(failed.value).__name__ == "ParserReturnedFalseError"
        else:
            assert number_of(parse(layers, NETWORK, PARAMS[kind])) == call
    assert parse.notices == []
    assert library.decisions[before:] == []
    if isinstance(library, GuardedLibrary):
        assert library.process.deaths == 0


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("outcome", ["Fine", *ERRORS])
def test_a_frame_is_empty_and_its_error_is_a_warning(
    compile_parser: Compile, tmp_path: Path, guard: str, outcome: str
) -> None:
    write_mean_model(tmp_path / "mean.onnx")
    (tmp_path / "labels.txt").write_text("thing\n")
    shutil.copy(compile_parser("counting.cpp"), tmp_path / "libcounting.so")
    text = CONFIG.replace("mean_parser.py", "libcounting.so")
    text = text.replace("name=parse", f"name=Boxes{outcome}") + f"custom-lib-guard={guard}\n"
    (tmp_path / "config.txt").write_text(text)
    images = [np.full((32, 32, 3), i, np.uint8) for i in range(CALLS)]
    fails = outcome != "Fine"
    with headrace.open_pipeline(
        tmp_path / "config.txt", sources=[headrace.ArraySource(images, name="images")]
    ) as pipeline:
        if fails:
            with pytest.warns(headrace.HeadraceWarning):
                lefts = [[int(o.left) for o in meta.objects] for _, meta in pipeline]
        else:
            lefts = [[int(o.left) for o in meta.objects] for _, meta in pipeline]
    empty = FAILS - 1 if fails else None
    assert lefts == [[] if i == empty else [i + 1] for i in range(CALLS)]
    assert [m.failed for m in pipeline.report.models] == [int(fails)]
    warnings = [str(n) for n in pipeline.report.notices if n.level == "warning"]
    if not fails:
        assert warnings == []
        return
    (warning,) = warnings
    assert ERRORS[outcome] in warning
    assert f"first in frame {empty} of images" in warning


PYTHON = """
import sys
import numpy as np
from headrace import Detections
calls = 0
class Unprintable(Exception):
    def __str__(self): raise RuntimeError
def parse(layers, network, params):
    global calls
    calls += 1
    if calls == 4:
        %s
    box = np.array([[calls, 0, 5, 5]], np.float32)
    return Detections(boxes=box, scores=np.ones(1, np.float32), class_ids=np.zeros(1, np.int32))
"""
FAILURES = {
    "raise Unprintable": "raised Unprintable: (its text cannot be had: __str__ raised Runti",
    "raise KeyboardInterrupt": "raised KeyboardInterrupt",
    "sys.exit(0)": "tried to end the program (exit code 0)",
    "raise GeneratorExit": "raised GeneratorExit",
}


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("statement", FAILURES)
def test_whatever_a_python_parser_raises_costs_its_frame_only(
    tmp_path: Path, guard: str, statement: str
) -> None:
    write_mean_model(tmp_path / "mean.onnx")
    (tmp_path / "labels.txt").write_text("thing\n")
    (tmp_path / "mean_parser.py").write_text(PYTHON % statement)
    (tmp_path / "config.txt").write_text(f"{CONFIG}custom-lib-guard={guard}\n")
    images = [np.full((32, 32, 3), i, np.uint8) for i in range(CALLS)]
    source = headrace.ArraySource(images, name="images")
    with (
        headrace.open_pipeline(tmp_path / "config.txt", sources=[source]) as pipeline,
        pytest.warns(headrace.HeadraceWarning),
    ):
        lefts = [[int(o.left) for o in meta.objects] for _, meta in pipeline]
    assert lefts == [[] if i == FAILS - 1 else [i + 1] for i in range(CALLS)]
    (warning,) = [str(n) for n in pipeline.report.notices if n.level == "warning"]
    assert FAILURES[statement] in warning

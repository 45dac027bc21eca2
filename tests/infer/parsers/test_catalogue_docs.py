"""docs/parsers.md says what the code does: its example runs, its table is the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headrace.infer.classify import complete_labels
from headrace.infer.parsers.catalogue import HEADS, INSTANCE_HEADS, SEGMENTATION_HEADS
from headrace.infer.parsers.class_maps import segment
from headrace.infer.parsers.classifiers import SUMMARIES
from headrace.infer.parsers.head import AnyHead
from headrace.meta import (
    ClassifierParams,
    DetectionParams,
    Detections,
    Layer,
    NetworkInfo,
    SegmentationParams,
)

PAGE = Path(__file__).parents[3] / "docs" / "parsers.md"
TABLES = {
    "heads": (HEADS, "boxes and scores"),
    "instance heads": (INSTANCE_HEADS, "boxes, scores, masks"),
    "segmentation heads": (SEGMENTATION_HEADS, "class map"),
}


def table(heads: tuple[AnyHead, ...], last: str) -> str:
    """The table of built-in heads; paste it between the marks when this test says so."""
    lines = [f"| name | outputs | {last} |", "|---|---|---|"]
    for head in sorted(heads, key=lambda h: (not h.name.startswith("Headrace"), h.name.lower())):
        needs = "<br>or ".join(
            ", ".join(
                "`" + re.sub(r"^'|'(?= \[)|'(?= or)|(?<=or )'", "", str(out)).strip() + "`"
                for out in layout.outs
            )
            for layout in head.layouts
        )
        lines.append(f"| `{head.name}` | {needs} | {head.summary} |")
    return "\n".join(lines)


def written(mark: str) -> str:
    page = PAGE.read_text(encoding="utf-8")
    return page.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0].strip()


@pytest.mark.parametrize("mark", TABLES)
def test_the_table_is_the_catalogue(mark):
    expected = table(*TABLES[mark])
    assert written(mark) == expected, f"the table should be:\n{expected}"


def test_the_table_of_classifiers_is_the_catalogue():
    lines = ["| name | what it does |", "|---|---|"]
    lines += [f"| `{name}` | {summary} |" for name, summary in SUMMARIES.items()]
    assert written("classifiers") == "\n".join(lines)


@pytest.fixture
def example():
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = next(b for b in blocks if "def parse_pairs" in b)
    namespace: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), namespace)
    return namespace["parse_pairs"]


def test_the_example_parses(example):
    layers = {
        "boxes": Layer("boxes", np.array([[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1]], np.float32)),
        "scores": Layer("scores", np.array([[0.1, 0.9], [0.1, 0.05]], np.float32)),
    }
    params = DetectionParams(2, np.array([0.5, 0.25], np.float32))
    found = example(layers, NetworkInfo(100, 50, 3), params)
    assert isinstance(found, Detections)
    np.testing.assert_allclose(found.boxes, [[10, 10, 40, 20]], atol=1e-5)
    assert found.class_ids.tolist() == [1]


@pytest.fixture(scope="module")
def functions():
    """The functions of docs/custom-libraries.md, by name."""
    page = (PAGE.parent / "custom-libraries.md").read_text(encoding="utf-8")
    namespace: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "def " in code and "headrace_recording" not in code:  # tests of a parser of the reader's
            exec(compile(code, "custom-libraries.md", "exec"), namespace)
    return namespace


def test_the_classifier_of_the_page_parses(functions):
    parse = functions["parse_color"]
    layers = {"color": Layer("color", np.float32([0.2, 0.7, 0.1]))}
    found = parse(layers, NetworkInfo(4, 4, 3), ClassifierParams(0.5, [["red", "blue"]]))
    assert complete_labels(found, ClassifierParams(0.5, [["red", "blue"]])).text == "blue "
    assert parse(layers, NetworkInfo(4, 4, 3), ClassifierParams(0.75)).attributes == []


def test_the_segmentation_of_the_page_parses(functions):
    scores = np.random.default_rng(0).random((3, 4, 5), np.float32)
    layers = {"scores": Layer("scores", scores)}
    params = SegmentationParams(3, 0.6)
    found = functions["parse_classes"](layers, NetworkInfo(5, 4, 3), params)
    built_in = segment(layers, NetworkInfo(5, 4, 3), params)
    np.testing.assert_array_equal(found.class_map, built_in.class_map)


def test_the_initializer_of_the_page_fills(functions):
    inputs = {"im_info": np.zeros((2, 3), np.float32)}
    functions["NvDsInferInitializeInputLayers"](inputs, NetworkInfo(5, 4, 3), 2)
    assert inputs["im_info"].tolist() == [[4, 5, 1]] * 2

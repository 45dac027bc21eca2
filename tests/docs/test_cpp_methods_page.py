"""The page of C++ methods: what the headers have, what tests call, and what a call refuses."""

from __future__ import annotations

import shutil

import pytest

from docs._ext import tensorrt_methods
from docs._ext.tensorrt_methods import FILE, Method

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("nm") is None, reason="no g++ or nm"
)


def test_the_table_names_overloads_by_their_types() -> None:
    rows = {m.shown: m for m in tensorrt_methods.methods()}
    fill = rows["INetworkDefinition::addFill(Dims, FillOperation, DataType)"]
    assert fill.arguments == ("Dims", "FillOperation", "DataType")
    assert fill.span == ">=9.0"
    assert rows["nvonnxparser::IParser::setFlag"].span == ">=8.6"
    lines = FILE.read_text("utf-8").splitlines()
    assert lines == sorted(lines)


@pytest.mark.slow
def test_a_method_that_the_headers_lack_is_missing() -> None:
    there = Method("nvinfer1::ITensor", "getName", None, "")
    absent = Method("nvinfer1::ITensor", "getNoSuchThing", None, "")
    other = Method("nvinfer1::INoSuchClass", "getName", None, "")
    wrong = Method("nvinfer1::ITensor", "setName", ("Dims",), "")
    assert tensorrt_methods._missing([there, absent, other, wrong], "10.16") == {
        absent, other, wrong,
    }  # fmt: skip


@pytest.mark.slow
def test_the_page_says_what_the_headers_are() -> None:
    page = (tensorrt_methods.ROOT / "docs" / "cpp-methods.md").read_text("utf-8")
    assert page == tensorrt_methods.page()
    for release in ("8.6", "9.3", "10.16"):
        census = tensorrt_methods.of_release(release)
        assert census.share >= 0.95
        assert census.missing == []

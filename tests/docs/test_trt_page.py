"""docs/trt.md claims what the names of headrace.trt show."""

from __future__ import annotations

from pathlib import Path

from docs._ext import tensorrt_names
from headrace.trt import release

PAGE = Path(__file__).parents[2] / "docs" / "trt.md"


def test_the_table_of_names_is_up_to_date() -> None:
    text = PAGE.read_text("utf-8")
    assert tensorrt_names.rewritten(text) == text, "make schema"


def test_hardly_a_name_is_missing_without_a_word() -> None:
    names = tensorrt_names.of_release("10.13")
    assert names.total > 1200
    assert len(names.missing) <= 3
    assert "KernelLaunchParams" in names.refused
    assert release.current().name == "union"

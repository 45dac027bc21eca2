"""Pipelines, reports, models and configs in consoles and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace._core.findings import Finding
from headrace._core.html import facts, notice_list, safe, table
from headrace.pipeline.report import ModelReport, RunReport, SourceReport

NASTY = "<script>alert('x')</script>&\udcff"


class _Tags(HTMLParser):
    """Which tags there are; every one must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


ALLOWED = {"p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "b"}


def test_nothing_in_a_text_becomes_markup() -> None:
    texts = [
        safe(NASTY),
        table((NASTY,), [(NASTY,)]),
        facts([(NASTY, NASTY)]),
        notice_list([Finding("guard", "warning", NASTY, NASTY)]),
    ]
    for text in texts:
        assert _Tags(text).seen <= ALLOWED
        text.encode()  # no lone surrogate is left


def test_long_things_are_cut() -> None:
    assert len(safe("x" * 10_000)) == 300
    assert table(("n",), [(i,) for i in range(100)], most=5).endswith(
        '<tr><td colspan="1">and 95 more</td></tr></tbody></table>'
    )
    assert "and 88 more" in notice_list([Finding("guard", "info", str(i)) for i in range(100)])


def test_a_report_shows_sources_models_and_warnings_first() -> None:
    report = RunReport(NASTY, frames=3, seconds=1.5)
    report.sources = [SourceReport(0, NASTY, 3, state="failed", error=NASTY)]
    report.models = [ModelReport(NASTY, 1, 3, 1, {"infer": 1.25})]
    report.objects[NASTY] = 7
    report.notices = [Finding("guard", "info", "a note"), Finding("guard", "warning", "a warning")]
    text = report._repr_html_()
    assert _Tags(text).seen <= ALLOWED
    assert text.index("a warning") < text.index("a note")
    assert "1.25" in text
    assert "failed" in text


def test_a_pipeline_and_its_parts_have_images_of_themselves(
    mean_config: Callable[..., Path],
) -> None:
    source = headrace.ArraySource([np.full((48, 64, 3), 255, np.uint8)], name="<white>")

    def look(batch: headrace.Batch) -> None:
        """Nothing."""

    with pytest.warns(headrace.HeadraceWarning, match="netword-mode"):
        pipeline = headrace.open_pipeline(mean_config(netword_mode=1), look, sources=source)
    model = pipeline.models[0]
    assert repr(pipeline) == "Pipeline(<white>: config.txt, look; 0 sinks)"
    for thing, words in (
        (pipeline, ["&lt;white&gt;", "netword-mode", "new"]),
        (model, ["detector, primary", "mean float32", "thing", "parse in mean_parser.py"]),
        (model.config, ["cluster-mode", "config.txt:", "netword-mode"]),
    ):
        text = thing._repr_html_()
        assert _Tags(text).seen <= ALLOWED
        for word in words:
            assert word in text, (thing, word)
    text = pipeline.run()._repr_html_()
    assert _Tags(text).seen <= ALLOWED
    assert "ended" in text
    assert "1 thing" in text

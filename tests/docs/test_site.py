"""The built site: its search answers first with the page that is about the question.

`make docs` runs these on what it built.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

SITE = Path(os.environ.get("HEADRACE_SITE", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("HEADRACE_SITE"), reason="the site is not built: make docs runs this"
)

# What readers type, and the page that has to come first.
QUERIES = {
    "install": "install",
    "pip install": "install",
    "docker": "install",
    "docker container": "install",
    "windows": "install",
    "macos": "install",
    "manylinux": "install",
    "jetson": "machines",
    "aarch64": "machines",
    "raspberry pi": "machines",
    "quick start": "quickstart",
    "no boxes": "why/no-boxes",
    "no detections": "why/no-boxes",
    "segfault": "why/crash",
    "wrong labels": "why/wrong-labels",
    "duplicate boxes": "why/wrong-thresholds",
    "yolov8": "families",
    "model zoo": "families",
    "migrate deepstream": "from-deepstream",
    "savant": "comparison",
    "faq": "faq",
    "glossary": "glossary",
    "gpu": "gpu",
    "cuda": "gpu",
    "int8": "int8",
    "quantization": "int8",
    "parser": "parsers",
    "tracker": "tracking",
    "kafka": "messages",
    "rtsp": "sources-and-sinks",
    "rest api": "cli/serve",
    "pyds": "gstreamer",
    "cluster-mode": "configuration",
    "letterbox": "profiles",
    "sandbox": "guard",
    "onnx without config": "bare-models",
}

_BROWSER = """
const document = {getElementById: () => null, addEventListener: () => {}, querySelector: () => null,
    documentElement: {dataset: {content_root: "./"}}};
const window = globalThis;
window.location = {search: ""};
window.addEventListener = () => {};
const SPHINX_HIGHLIGHT_ENABLED = false;
const localStorage = {setItem: () => {}, getItem: () => null};
const DOCUMENTATION_OPTIONS = {LANGUAGE: "en"};
const _ = (text) => text;
function _ready() {}
function fetch() {}
"""


@pytest.fixture(scope="module")
def ask():
    """A function from a query to the pages that the site's own search gives, best first."""
    from py_mini_racer import MiniRacer

    racer = MiniRacer()
    static = SITE / "_static"
    racer.eval(_BROWSER)
    for name in ("searchtools.js", "language_data.js"):
        racer.eval((static / name).read_text("utf-8"))
    racer.eval((SITE / "searchindex.js").read_text("utf-8"))

    def pages(query: str) -> list[str]:
        results = racer.eval(
            f"JSON.stringify(Search._performSearch(...Search._parseQuery({json.dumps(query)}))"
            ".map(result => result[0]).reverse())"
        )
        return list(dict.fromkeys(json.loads(results)))

    return pages


@pytest.mark.parametrize("query", QUERIES)
def test_the_page_about_it_comes_first(query: str, ask) -> None:
    assert ask(query)[:1] == [QUERIES[query]]


def test_every_page_is_found_by_its_title(ask) -> None:
    index = (SITE / "llms.txt").read_text("utf-8")
    titled = re.findall(r"^- \[(.+?)\]\((.+?)\.md\)", index, re.M)
    named: dict[str, set[str]] = {}  # a package has a page of how-to and one of names
    for title, name in titled:
        named.setdefault(title, set()).add(name)
    lost = [title for title, names in named.items() if not names & set(ask(title)[:1])]
    assert len(titled) > 90
    assert lost == []


def test_every_page_is_there_as_markdown() -> None:
    pages = {p.relative_to(SITE).with_suffix("") for p in SITE.rglob("*.html")}
    pages -= {Path(name) for name in ("404", "genindex", "search", "py-modindex")}
    texts = {p.relative_to(SITE).with_suffix("") for p in SITE.rglob("*.md")}
    assert pages - texts == set()
    listed = set(re.findall(r"\((\S+?)\.md\)", (SITE / "llms.txt").read_text("utf-8")))
    assert {str(page) for page in pages} - listed == set()


def test_markdown_of_a_reference_page_has_signatures() -> None:
    text = (SITE / "api" / "pipeline.md").read_text("utf-8")
    assert "### `headrace.pipeline.ModelReport(" in text
    assert "{eval-rst}" not in text


def test_no_link_of_a_copy_is_without_its_text() -> None:
    for page in SITE.rglob("*.md"):
        assert "[](" not in page.read_text("utf-8"), page
    assert "- [headrace run](run.md)" in (SITE / "cli/index.md").read_text("utf-8")
    assert "](docs/" not in (SITE / "contributing.md").read_text("utf-8")
    assert "once. Batches explains the results" in (SITE / "llms.txt").read_text("utf-8")

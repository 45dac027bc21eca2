"""Pages are wrapped alike, are in the navigation once, and name files that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = (
    (ROOT, "*.md"),
    (DOCS, "*.md"),
    (DOCS, "cli/*.md"),
    (DOCS, "why/*.md"),
    (DOCS, "api/*.md"),
    (ROOT, "examples/*/README.md"),
)
PAGES = sorted(page for folder, pattern in FOLDERS for page in folder.glob(pattern))
ROOTS = (ROOT, ROOT / "src" / "headrace")
WIDTH = 100


def outside_code(text: str) -> list[tuple[int, str]]:
    """Return the numbered lines outside of fenced and indented code."""
    lines, fence = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"(`{3,}|:{3,})", line)
        if fence:
            fence = "" if mark and line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        elif not line.startswith("    "):
            lines.append((number, line))
    return lines


def prose(text: str) -> list[tuple[int, str]]:
    """Return the numbered lines that are neither code, nor a table, nor one long link."""
    return [(n, x) for n, x in outside_code(text) if not x.startswith(("|", "![", "<"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    long = [n for n, line in prose(page.read_text(encoding="utf-8")) if len(line) > WIDTH]
    assert long == [], f"lines of more than {WIDTH} columns"


def test_every_page_is_in_the_navigation_once() -> None:
    listed: Counter[str] = Counter()
    for page in DOCS.rglob("index.md"):
        folder = page.parent.relative_to(DOCS)
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.S):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed.update(str(folder / name) for name in names)
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if DOCS in page.parents}
    assert set(listed) == pages - {"index"}
    assert set(listed.values()) == {1}


def named_paths(text: str) -> set[str]:
    """Return the files and folders that code spans outside of code blocks name."""
    spans = re.findall(r"`([^`\n]+)`", "\n".join(line for _, line in outside_code(text)))
    return {s for s in spans if re.fullmatch(r"[\w./-]+(\.\w+|/)", s) and "/" in s}


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_files_named_for_contributors_exist(page: str) -> None:
    named = named_paths((ROOT / page).read_text(encoding="utf-8"))
    made = {name for name in named if "NAME" in name}  # the name of a file to be written
    missing = [n for n in named - made if not any((r / n).exists() for r in ROOTS)]
    assert missing == []
    assert len(named) >= 10


def test_every_wing_and_room_has_a_row() -> None:
    package = ROOT / "src" / "headrace"
    folders = {p.parent.relative_to(package) for p in package.glob("*/**/__init__.py")}
    rooms = {f"{f.as_posix()}/" for f in folders if len(f.parts) <= 2}
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([^`]+/)`", row)}
    hidden = {"network/caffe/layers/", "diagnose/lint/checks/", "plugins/standard/maths/"}
    assert rooms - listed - hidden == set()
    assert listed - rooms == set()


def test_files_of_the_checkout_that_pages_name_exist() -> None:
    pattern = r"(?<![\w./:-])((?:tests|examples|benchmarks|native|scripts)/[\w./-]*\w)"
    named = {(page, name) for page in PAGES for name in re.findall(pattern, page.read_text())}
    assert len(named) > 30
    assert [f"{page.name}: {name}" for page, name in named if is_missing(name)] == []


def is_missing(name: str) -> bool:
    return "NAME" not in name and not (ROOT / name).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_names_the_actor(page: Path) -> None:
    riddles = re.compile(r"\b(told|nobody|somebody|anybody)\b", re.I)
    found = [f"{n}: {x}" for n, x in outside_code(page.read_text()) if riddles.search(x)]
    assert found == []


def test_pages_name_extras_for_those_without_a_checkout_too() -> None:
    checkouts = {"install.md", "README.md"}  # say when they are read in one
    asked = [page.name for page in PAGES if re.search(r"'\.\[[a-z,]+\]'", page.read_text("utf-8"))]
    assert set(asked) <= checkouts | {"CHANGELOG.md", "CONTRIBUTING.md"}


def test_nothing_says_to_install_headrace_by_its_name() -> None:
    """It is not on PyPI yet."""
    sources = (ROOT / "src").rglob("*.py")
    asked = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in (*PAGES, *sources, ROOT / "CONTRIBUTING.md", *(ROOT / "examples").rglob("*.py"))
        if file.name != "CHANGELOG.md"
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"pip install (?:-\S+ )*['\"]?headrace\b(?!-)", line)
    ]
    assert asked == []

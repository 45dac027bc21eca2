"""The worked examples of CONTRIBUTING.md: each diff applies, and the changed package does it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace._core import _native
from tests.copies import copied_example

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"^```diff\n(.*?)^```$", TEXT, re.S | re.M)
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.S | re.M)

# An editable install finds the package by a hook of its own, before any path.
PLAIN_PATH = (
    "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'Redirect' not in repr(f)]\n"
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with all diffs applied, beside the demo scene."""
    folder = tmp_path_factory.mktemp("contributing")
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "headrace", folder / "src" / "headrace", ignore=skipped)
    shutil.copy(_native.__file__, folder / "src" / "headrace" / "_core")
    copied_example("conveyor", folder / "scene")
    for diff in DIFFS:
        done = subprocess.run(
            ["git", "apply", "--verbose", "-"],
            cwd=folder,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
            input=diff,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return folder


def test_there_is_an_example_of_each_kind() -> None:
    assert re.findall(r"^### (.*)$", TEXT, re.M) == [
        "A parser",
        "A sink",
        "A runtime",
        "A standard plugin",
        "An importer layer",
    ]
    assert len(DIFFS) == len(SNIPPETS) == 5


def test_the_changed_package_prints_what_the_page_shows(changed: Path) -> None:
    shown = [re.search(r"  # (.*)$", line) for s in SNIPPETS for line in prints(s)]
    assert all(shown)
    here = f"import headrace; assert headrace.__file__.startswith({str(changed)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_PATH + here + "\n".join(SNIPPETS)],
        cwd=changed / "scene",
        env={"PYTHONPATH": str(changed / "src"), "HOME": str(changed), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [match[1] for match in shown if match]
    assert headrace.__file__ != str(changed / "src" / "headrace" / "__init__.py")


def prints(snippet: str) -> list[str]:
    """Return the lines that print."""
    return [line for line in snippet.splitlines() if line.lstrip().startswith("print(")]

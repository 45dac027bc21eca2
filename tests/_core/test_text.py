"""Words of messages."""

from __future__ import annotations

import ast
import json
import unicodedata
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._core.findings import Finding
from headrace._core.text import (
    counted,
    error_text,
    printable,
    printable_json,
    quoted,
    shortened,
)
from tests.parsed import nodes_of

_PRINTING = ("print", "click.echo", "click.secho", "sys.stderr.write", "sys.stdout.write")
_LEVELS = {"info", "warning", "error"}
_LAST = {name.rpartition(".")[2] for name in _PRINTING} | _LEVELS
_OF_FINDINGS = {"custom/in_process.py", "trt/host/program.py"}  # errors and notices: printable
_OF_HEADRACE = {  # texts and numbers of its own
    "cli/trtexec/__init__.py", "gstreamer/servicemaker/standard_probes.py", "cli/live_page.py",
    "live/log.py", "gstreamer/pyds/copies.py", "pipeline/rate_lines.py",
}  # fmt: skip


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "file", "0 files"),
        (1, "box", "1 box"),
        (2, "box", "2 boxes"),
        (2000, "class", "2,000 classes"),
    ],
)
def test_a_number_with_its_noun(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_a_long_text_is_cut_to_the_length_that_is_asked_for() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
    assert quoted("a" * 90) == "a" * 79 + "…"
    assert quoted("a\n\x1b" * 40, limit=None) == r"a\n\x1b" * 40


def test_an_exception_that_has_no_text_is_named_nevertheless() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(UnprintableError()) == (
        "UnprintableError: (its text cannot be had: __str__ raised RuntimeError)"
    )
    assert error_text(ValueError("too large\n")) == "ValueError: too large"
    assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_no_text_from_outside_begins_a_line_or_steers(text: str) -> None:
    for shown in (
        printable(f"name {text}: it is"),
        str(Finding("x", "error", "it is {name}", text, {"name": text}, text, (text,))),
    ):
        head, *more = shown.split("\n")
        assert head.startswith(("name ", printable(text)[:1]))
        assert all(line.startswith("  ") for line in more)
        assert not any(unicodedata.category(c)[0] in "CZ" for c in shown if c not in " \n\t")
    document = json.dumps({"name": text}, ensure_ascii=False, indent=1)
    safe = printable_json(document)
    assert json.loads(safe) == {"name": text}
    assert safe.replace("\n", "").isprintable()


def test_lines_of_headrace_itself_stay() -> None:
    assert printable("a\n  b\nc\x1b\u2028") == "a\n  b\\nc\\x1b\\u2028"
    assert printable("a\nb\x07\n", lines=True) == "a\nb\\x07\n"


def _unsafe_prints() -> dict[str, list[str]]:
    """Calls that print or log a text which does not go through `printable`, by file."""
    unsafe = defaultdict(list)
    for name, node in nodes_of(ast.Call):
        if not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        last = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if last not in _LAST:
            continue
        called = ast.unparse(node.func)
        logs = last in _LEVELS and "log" in called.lower()
        if called not in _PRINTING and not logs:
            continue
        parts = [part for value in node.args for part in ast.walk(value)]
        safe = any(isinstance(p, ast.Name) and p.id == "printable" for p in parts)
        if not safe and not all(isinstance(value, ast.Constant) for value in node.args):
            unsafe[name].append(ast.unparse(node))
    return unsafe


def test_every_print_and_log_line_is_printable() -> None:
    """On the command line `echo` of `cli/output.py` does it."""
    unsafe = _unsafe_prints()
    assert set(unsafe) == _OF_FINDINGS | _OF_HEADRACE, unsafe

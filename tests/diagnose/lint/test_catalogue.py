"""Every id that the source raises is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from docs._ext import lint_rules
from headrace._core import errors
from headrace._core.errors import HeadraceError
from headrace.diagnose.lint.catalogue import all_codes, all_rules, find_rule
from tests.parsed import SOURCE, nodes_of

# `code` is a name of another thing there: an exit code, a hash of code, a DLPack type
_NO_FINDINGS = ("engine/plugin_graph/plugin_record.py", "cli/trace_plugins.py")

_CODE = re.compile(r"[a-z0-9.]+(-[a-z0-9.]+)+")


def _is_code(text: str) -> bool:
    return text in all_codes() or _CODE.fullmatch(text) is not None


Takers = dict[str, set[int]]


_READ = (ast.Call, ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.arguments)


def _of_findings(*kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of these types in files where `code` is that of a finding."""
    for kind in kinds:
        yield from (node for name, node in nodes_of(kind) if name not in _NO_FINDINGS)


def _takers() -> Takers:
    """Functions with a parameter `code` -> its index in a call."""
    takers = {"Finding": {0}}
    for _, node in nodes_of(ast.FunctionDef):
        names = [arg.arg for arg in node.args.args if arg.arg not in ("self", "cls")]
        if "code" in names:
            takers.setdefault(node.name, set()).add(names.index("code"))
    return takers


def _raised(node: ast.AST, takers: Takers) -> Iterator[str]:
    """Codes in a node: arguments `code`, their defaults, names and tables of codes."""
    values: list[ast.expr] = []
    if isinstance(node, ast.Call):
        values += [keyword.value for keyword in node.keywords if keyword.arg == "code"]
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        values += [node.args[i] for i in takers.get(name, ()) if i < len(node.args)]
        if getattr(node.func, "attr", "") == "append":
            values += [a.elts[0] for a in node.args if isinstance(a, ast.Tuple)]
    elif isinstance(node, ast.FunctionDef) and node.name == "_rule_of":
        values += [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(getattr(target, "id", "") in ("code", *_TABLES) for target in targets):
            values += node.value.keys if isinstance(node.value, ast.Dict) else [node.value]
    elif isinstance(node, ast.arguments):
        known = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        last = zip(reversed(node.args), reversed(node.defaults), strict=False)
        values += [v for arg, v in (*known, *last) if arg.arg == "code" and v is not None]
    for value in values:
        asked = {id(n) for c in ast.walk(value) if isinstance(c, ast.Compare | ast.Subscript)
                 for n in ast.walk(c)}  # fmt: skip
        for part in ast.walk(value):
            constant = isinstance(part, ast.Constant) and id(part) not in asked
            if constant and isinstance(part.value, str) and _is_code(part.value):
                yield part.value


_TABLES = ("_LINES", "NO_DRIVER", "_UNUSABLE")
"""Constants that hold codes."""


@pytest.fixture(scope="module")
def raised() -> set[str]:
    takers = _takers()
    return {name for node in _of_findings(*_READ) for name in _raised(node, takers)}


def test_the_catalogue_has_each_code_that_is_raised_and_no_other(raised: set[str]) -> None:
    assert set(all_codes()) - raised == set()
    assert raised - set(all_codes()) == set()


def test_the_catalogue_is_large_and_says_what_to_do() -> None:
    rules = all_rules().values()
    assert len([rule for rule in rules if rule.found == "files"]) >= 80
    for rule in rules:
        for text in (rule.summary, rule.why, rule.fix):
            assert text.endswith("."), rule.id
        assert len(rule.summary) <= 100, rule.id


def test_errors_name_the_rule_of_their_class_or_their_own() -> None:
    kinds = [
        kind for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, HeadraceError) and kind.code
    ]  # fmt: skip
    assert kinds
    for kind in kinds:
        assert kind("found").code == kind.code in all_codes()
        assert kind("found", code="class-count").code == "class-count"


def test_a_rule_that_is_not_there_is_refused_with_near_ones() -> None:
    with pytest.raises(HeadraceError, match="class-count"):
        find_rule("class-counts")


def test_the_page_is_up_to_date() -> None:
    page = SOURCE.parents[1] / "docs" / "lint-rules.md"
    assert page.read_text("utf-8") == lint_rules.page(), "make schema writes it"

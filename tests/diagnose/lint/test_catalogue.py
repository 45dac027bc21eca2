"""Every id that the source raises is in the catalogue, and the catalogue has no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace
from docs._ext import lint_rules
from headrace._core import errors
from headrace._core.errors import HeadraceError
from headrace.diagnose.lint.catalogue import all_rules, find_rule

SOURCE = Path(headrace.__file__).parent
# calls whose rule may stand by place: function -> the argument
_BY_PLACE = {"Notice": 3, "Finding": 0, "_at": 2, "_of": 2, "_of_class": 3}


def _raised(tree: ast.AST) -> Iterator[str]:
    """Ids that a module raises: keywords, class defaults, arguments by place, pairs."""
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.Call):
            values += [keyword.value for keyword in node.keywords if keyword.arg == "rule"]
            place = _BY_PLACE.get(getattr(node.func, "id", ""))
            if place is not None and place < len(node.args):
                values.append(node.args[place])
            if getattr(node.func, "attr", "") == "append":
                values += [a.elts[0] for a in node.args if isinstance(a, ast.Tuple)]
        elif isinstance(node, ast.FunctionDef) and node.name == "_rule_of":
            values += [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(target, "id", "") == "rule" for target in targets):
                values.append(node.value)
        elif isinstance(node, ast.arguments):
            pairs = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            values += [value for arg, value in pairs if arg.arg == "rule" and value is not None]
        for value in values:
            asked = {id(n) for c in ast.walk(value) if isinstance(c, ast.Compare)
                     for n in ast.walk(c)}  # fmt: skip
            for part in ast.walk(value):
                constant = isinstance(part, ast.Constant) and id(part) not in asked
                if constant and isinstance(part.value, str):
                    yield part.value


@pytest.fixture(scope="module")
def raised() -> set[str]:
    folders = ("_core", "binary", "cli", "config", "custom", "diagnose", "engine", "infer",
               "network", "pipeline", "plugins", "trt")  # fmt: skip
    files = [path for folder in folders for path in (SOURCE / folder).rglob("*.py")]
    texts = {path: path.read_text() for path in files}
    trees = [ast.parse(text) for text in texts.values() if "rule" in text or "Notice(" in text]
    return {name for tree in trees for name in _raised(tree)}


def test_every_rule_is_raised_somewhere(raised: set[str]) -> None:
    assert set(all_rules()) - raised == set()


def test_every_id_that_is_raised_is_in_the_catalogue(raised: set[str]) -> None:
    unknown = {name for name in raised if name.replace("-", "").isalnum() and "-" in name}
    assert unknown - set(all_rules()) == set()


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
        if isinstance(kind, type) and issubclass(kind, HeadraceError) and kind.rule
    ]  # fmt: skip
    assert kinds
    for kind in kinds:
        assert kind("found").rule == kind.rule in all_rules()
        assert kind("found", rule="class-count").rule == "class-count"


def test_a_rule_that_is_not_there_is_refused_with_near_ones() -> None:
    with pytest.raises(HeadraceError, match="class-count"):
        find_rule("class-counts")


def test_the_page_is_up_to_date() -> None:
    page = SOURCE.parents[1] / "docs" / "lint-rules.md"
    assert page.read_text("utf-8") == lint_rules.page(), "make schema writes it"

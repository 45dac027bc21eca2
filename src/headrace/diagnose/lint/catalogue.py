"""The catalogue of rules: each rule's id, meaning, remedy, and a wrong and a right example.

The rules lie as TOML beside this file: the command, the documentation and the tests read the same
texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from headrace._core.errors import HeadraceError
from headrace._core.near import did_you_mean, near_names

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

_FOLDER = Path(__file__).parent / "rules"


@dataclass(frozen=True, slots=True)
class Example:
    """A set-up that a rule finds something in, and the same put right.

    Attributes:
        base: the set-up that both change (`tests/diagnose/lint/setups.py`).
        wrong, right: `key=value`, `group.key=value` or `file:key=value` that replace or add keys of
            its last config; `-key` leaves one out.
        edit: text of that config, and the text that stands there in the wrong one.
        files: file name -> text, in the wrong one.
        models: name of a model in the set-up -> the model that lies there in the wrong one.
        target: the generation that is checked for, if the rule is about one.
    """

    base: str
    wrong: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    edit: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule.

    Attributes:
        id: its name in messages, `--select` and JSON.
        area: the name of its file.
        severity: of most of its findings; one that stops a run is an error all the same.
        summary: one sentence: the fault.
        why: the consequence, and the behaviour of the original.
        fix: the remedy.
        found: `files`: in the files of a set-up; `run`: in a run alone.
        mark: the part of the line that a finding is about.
        example: None for rules of a run, and for those that need a compiled library or another
            machine.
    """

    id: str
    area: str
    severity: Severity
    summary: str
    why: str
    fix: str
    found: Literal["files", "run"] = "files"
    mark: Literal["value", "key"] = "value"
    example: Example | None = None


@cache
def all_rules() -> Mapping[str, LintRule]:
    """Read the catalogue: rules by id, in the order of areas and files."""
    rules: dict[str, LintRule] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        area = path.stem.partition("_")[2]
        for name, data in tomllib.loads(path.read_text("utf-8")).items():
            rules[name] = _rule(name, area, data)
    return MappingProxyType(rules)


@cache
def all_codes() -> Mapping[str, str]:
    """Read all codes of findings and their meanings: those of rules first."""
    others = tomllib.loads((_FOLDER.parent / "codes.toml").read_text("utf-8"))
    return MappingProxyType({n: rule.summary for n, rule in all_rules().items()} | others)


def _rule(name: str, area: str, data: dict[str, object]) -> LintRule:
    flowed = {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in data.items()}
    return msgspec.convert({"id": name, "area": area, **flowed}, LintRule)


def find_rule(name: str) -> LintRule:
    """Look a rule up.

    Raises:
        HeadraceError: there is none; similar ids are named.
    """
    rules = all_rules()
    if name not in rules:
        raise HeadraceError(
            f"there is no rule {name!r}",
            expected="an id that headrace lint --rules lists",
            fix=did_you_mean(*near_names(name, rules)),
        )
    return rules[name]

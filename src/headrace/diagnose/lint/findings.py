"""Findings of lint: notices and errors of the run, with the place that they are about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.findings import Data, Finding
from headrace._core.formats.archives import is_bare_model
from headrace.config.document import ConfigProblemsError
from headrace.diagnose.lint.catalogue import SEVERITIES, LintRule, Severity, all_rules

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>[0-9]+)(?::|$)")
_MOST_SHOWN = 1 << 22  # bytes of a file of which lines are shown


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a file that a finding is about; all are None where no file is.

    Attributes:
        path: the file.
        line: from 1.
        column, end: characters of that line, from 1, `end` behind the last.
        text: the line.
    """

    path: Path | None = None
    line: int | None = None
    column: int | None = None
    end: int | None = None
    text: str | None = None

    @property
    def marked(self) -> str:
        """The part of the line that the finding is about; empty where no line is known."""
        if self.text is None or self.column is None or self.end is None:
            return ""
        return self.text[self.column - 1 : self.end - 1]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding, and the part of a file that it is about.

    Attributes:
        finding: that of a run; an `error` would end it.
        place: its place.
        config: the config, pipeline file or model that was checked.
        exit_code: of a run that is refused for it; 0 for others.
    """

    finding: Finding
    place: Place = Place()
    config: Path | None = None
    exit_code: int = 0

    @property
    def code(self) -> str:
        """The name of its rule."""
        return self.finding.code

    @property
    def data(self) -> Data:
        """Its values, those that an edit needs among them."""
        return self.finding.data

    @property
    def severity(self) -> Severity:
        """Its level, as linters call it."""
        return "note" if self.finding.level == "info" else self.finding.level

    @property
    def where(self) -> str:
        """`file:line:column`, as far as it is known."""
        location = self.place
        parts = (location.path or self.config, location.line, location.column)
        return ":".join(str(part) for part in parts if part is not None)


def of_notices(notices: Iterable[Finding], config: Path) -> list[LintFinding]:
    """Take the findings among notices: those of rules."""
    return [_placed(notice, config) for notice in notices if notice.code in all_rules()]


def of_error(error: HeadraceError, config: Path) -> list[LintFinding]:
    """Take an error, or each problem of one that reports several."""
    if isinstance(error, ConfigProblemsError):
        return [finding for problem in error.problems for finding in of_error(problem, config)]
    known = error.code in all_rules()
    finding = error.finding if known else error.finding.changed(code=ConfigError.code)
    return [_placed(finding, config, error.exit_code)]


def _placed(finding: Finding, config: Path, exit_code: int = 0) -> LintFinding:
    location, aside = placed(finding.where, config, all_rules()[finding.code])
    if aside:
        finding = finding.changed(prefix=f"{aside}: ")
    return LintFinding(finding, location, config, exit_code)


def placed(where: str | None, config: Path, rule: LintRule) -> tuple[Place, str]:
    """Find the place that `where` names; return the rest of it too, where it names more."""
    where = where or ""
    match = _PLACE.match(where)
    if match and Path(match["path"]).is_file():
        path, rest = Path(match["path"]), where[match.end() :].strip()
        return _in_line(path, int(match["line"]), rule), rest
    for path in (Path(where), Path(where.partition(", ")[0])):
        if where and path.is_file():
            return Place(path), where[len(str(path)) :].lstrip(", ")
    # an option, a key, or a file that is not there
    return Place(config if config.is_file() else None), "" if where == str(config) else where


def _in_line(path: Path, number: int, rule: LintRule) -> Place:
    lines = _lines(path)
    if not 1 <= number <= len(lines):
        return Place(path, number)
    text = lines[number - 1]
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    value = re.match(r"(\s*)([^=:\[#]+?)\s*([=:])\s*", text)
    if value and rule.mark == "value" and value.end() < end:
        start = value.end()
    elif value:
        end = value.end(2)
    end = max(end, start + 1)
    return Place(path, number, start + 1, end + 1, text)


@lru_cache(maxsize=64)
def _lines(path: Path) -> list[str]:
    if is_bare_model(path) or path.stat().st_size > _MOST_SHOWN:
        return []
    data = path.read_bytes()
    text = "" if b"\0" in data else data.decode("utf-8", "replace")
    return [line.removesuffix("\r") for line in text.split("\n")]


def forget_lines() -> None:
    """Read files anew: they were changed."""
    _lines.cache_clear()


def tidy(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """Sort by file and line, with one finding for each rule and line: the gravest.

    Of a rule that has a line in a file, findings about the file as a whole are left out; of a line
    whose file is missing, what else is wrong with that file.
    """
    kept: dict[tuple[object, ...], LintFinding] = {}
    findings = list(findings)
    absent = {(f.place.path, f.place.line) for f in findings if f.code == "missing-file"}
    for finding in findings:
        if finding.code != "missing-file" and _unreadable(finding, absent):
            continue
        location = finding.place
        path = None if location.path is None else os.path.realpath(location.path)
        exact = (finding.code, path, location.line)
        key: tuple[object, ...] = exact if location.line else (*exact, _unadvised(finding))
        other = kept.setdefault(key, finding)
        if _rank(finding) < _rank(other):
            advised = finding.finding.advice or not other.finding.advice
            kept[key] = finding if advised else _advised(finding, other)
    by_place: dict[tuple[object, ...], tuple[object, ...]] = {}
    for key, finding in kept.items():
        if finding.place.line:
            by_place.setdefault(key[:2], key)
    for key, vague in list(kept.items()):
        placed = by_place.get(key[:2])
        if not vague.place.line and placed is not None:
            kept[placed] = _graver(kept[placed], vague)
            del kept[key]
    return sorted(kept.values(), key=_order)


def _unreadable(finding: LintFinding, absent: set[tuple[Path | None, int | None]]) -> bool:
    """Return True for an error at the line of a missing file."""
    return finding.severity == "error" and (finding.place.path, finding.place.line) in absent


def _unadvised(finding: LintFinding) -> str:
    """The sentence without its advice."""
    return replace(finding.finding, data={**finding.data, "advised": ""}).sentence


def _graver(finding: LintFinding, other: LintFinding) -> LintFinding:
    """The finding at its place, as grave as the other one."""
    if _rank(other) >= _rank(finding):
        return finding
    graver = replace(finding.finding, level=other.finding.level)
    finding = replace(finding, finding=graver, exit_code=other.exit_code)
    return _advised(finding, other) if other.finding.advice else finding


def _advised(finding: LintFinding, other: LintFinding) -> LintFinding:
    """The finding with the advice of the other one, and the data that is about."""
    advised = replace(
        finding.finding,
        expectation=other.finding.expectation,
        remedies=other.finding.remedies,
        data={**other.data, **finding.data},
    )
    return replace(finding, finding=advised)


def _rank(finding: LintFinding) -> int:
    return SEVERITIES.index(finding.severity)


def _order(finding: LintFinding) -> tuple[str, str, int, int]:
    path = str(finding.place.path or "")
    return str(finding.config), path, finding.place.line or 0, _rank(finding)

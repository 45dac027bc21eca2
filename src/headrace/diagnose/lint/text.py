"""Findings for people: file:line:column, the line with a caret, hints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace._core.json_record import finite_data
from headrace._core.text import counted, quoted
from headrace.diagnose.lint.catalogue import LintRule, Severity, all_rules
from headrace.diagnose.lint.findings import LintFinding
from headrace.diagnose.lint.linting import LintReport

_WIDE = 160  # characters of a line that are shown


def shown_path(path: Path) -> str:
    """A path as people type it: relative to the working directory if it is below."""
    try:
        return str(Path(os.path.abspath(path)).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def finding_lines(finding: LintFinding, edit: str | None = None) -> Iterator[str]:
    """Yield the lines of one finding behind the first: source, caret, hints, remedy.

    Args:
        finding: the finding.
        edit: the edit of `--fix` that mends it, in words; None if there is none.
    """
    location = finding.place
    if location.marked.strip() and location.text and location.column and location.column < _WIDE:
        # escapes are wider than what they stand for
        before = quoted(location.text[: location.column - 1], limit=None)
        marked = quoted(location.marked[:_WIDE], limit=None)
        behind = quoted(location.text[(location.end or 1) - 1 :], limit=None)
        yield f"    {before}{marked}{behind}"[:_WIDE].rstrip()
        yield f"    {' ' * len(before)}{'^' * len(marked)}"[:_WIDE]
    yield from (f"  {hint}" for hint in finding.finding.advice)
    if edit:
        yield f"  fix: {quoted(edit, limit=_WIDE)} (--fix does)"
    elif not finding.finding.advice:
        yield f"  fix: {all_rules()[finding.code].fix}"


def head_line(finding: LintFinding) -> tuple[str, Severity, str]:
    """Return place, severity, and the rest of the first line of a finding, with its rule."""
    location = finding.place
    path = location.path or finding.config
    parts = [shown_path(path)] if path is not None else []
    parts += [str(n) for n in (location.line, location.column) if n is not None]
    message = finding.finding.sentence.rstrip(".")
    return ":".join(parts), finding.severity, f" {finding.code}: {message}"


def summary(report: LintReport, *, fixable: int, notes_shown: bool) -> str:
    """Return the last line of a report."""
    counts = [
        counted(report.count("error"), "error"),
        counted(report.count("warning"), "warning"),
    ]
    notes = report.count("note")
    if notes:
        counts.append(counted(notes, "note") + ("" if notes_shown else " (--notes shows them)"))
    text = f"{counted(len(report.files), 'file')}: {', '.join(counts)}"
    if report.left_out:
        names = ", ".join(path.name for path in report.left_out[:3])
        more = f" and {len(report.left_out) - 3} more" if report.left_out[3:] else ""
        text += f"; no config: {names}{more}"
    return f"{text}; {fixable} can be fixed with --fix" if fixable else text


def explanation(rule: LintRule) -> str:
    """Return everything that the catalogue has about a rule."""
    where = "in files" if rule.found == "files" else "in a run"
    parts = [f"{rule.id} ({rule.severity}, found {where})", "", rule.summary, "", rule.why]
    parts += ["", f"fix: {rule.fix}"]
    example = rule.example
    if example is not None:
        for title, lines in (("wrong", example.wrong), ("right", example.right)):
            if lines:
                parts += ["", f"{title}:", *(f"    {line}" for line in lines)]
    return "\n".join(parts)


def json_data(report: LintReport, edits: Mapping[LintFinding, str]) -> dict[str, Any]:
    """Return a report as JSON data; `edits` are those of `--fix`, in words."""
    return {
        "files": [str(path) for path in report.files],
        "left_out": [str(path) for path in report.left_out],
        "findings": [
            {
                **finding.finding.to_json(),
                "file": None if finding.place.path is None else str(finding.place.path),
                "line": finding.place.line,
                "column": finding.place.column,
                "end_column": finding.place.end,
                "config": None if finding.config is None else str(finding.config),
                "edit": edits.get(finding),
            }
            for finding in report.findings
        ],
        "summary": {f"{name}s": report.count(name) for name in ("error", "warning", "note")},
    }


def sarif_text(report: LintReport, version: str) -> str:
    """Return a report as SARIF 2.1.0, which code hosts and editors read.

    Source: OASIS SARIF 2.1.0.
    """
    used = sorted({finding.code for finding in report.findings})
    rules = [
        {
            "id": name,
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule.why},
            "help": {"text": rule.fix},
            "defaultConfiguration": {"level": rule.severity},
        }
        for name, rule in ((name, all_rules()[name]) for name in used)
    ]
    run = {
        "tool": {"driver": {"name": "headrace lint", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, used) for finding in report.findings],
    }
    data = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(finite_data(data), indent=2, allow_nan=False) + "\n"


def _result(finding: LintFinding, used: list[str]) -> dict[str, Any]:
    position = finding.place
    path = position.path or finding.config
    entry: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": used.index(finding.code),
        "level": finding.severity,
        "message": {"text": "\n".join([finding.finding.sentence, *finding.finding.advice])},
    }
    if path is not None:
        relative = shown_path(path)
        absolute = os.path.isabs(relative)
        uri = Path(relative).as_uri() if absolute else Path("/", relative).as_uri()[8:]
        location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
        if position.line is not None:
            location["region"] = {"startLine": position.line}
            if position.column is not None:
                location["region"] |= {"startColumn": position.column, "endColumn": position.end}
        entry["locations"] = [{"physicalLocation": location}]
    return entry

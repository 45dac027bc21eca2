"""Exact edits that mend findings: lines of configs and label files, comments and form kept."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.files import os_reason, write_atomically
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.config.values import Kind
from headrace.diagnose.lint.findings import LintFinding
from headrace.diagnose.lint.text import shown_path

_LINE = re.compile(
    r"(?P<head>\s*(?P<key>[^=:#\[\s]+)\s*(?P<sign>[=:])[ \t]*)(?P<value>.*)", re.DOTALL
)
_GROUP = re.compile(r"\[([^\[\]]+)\]\s*|([^\s#:]+):\s*")
_COMMENT = re.compile(r"\s+(#|;|//)\s*(.*)", re.DOTALL)

_SLIP = 0.9  # likeness of names of which one is a slip of the other

Lines = list[str]
Edits = Mapping[int, Sequence[str]]
"""Index of a line -> the lines in its place, none to remove it."""

Fixer = Callable[[LintFinding, Lines], Edits | None]


@dataclass(frozen=True, slots=True)
class FileFix:
    """The edits of one file.

    Attributes:
        path: the file.
        before, after: its content.
        mended: the findings that they mend, each with its edit in words.
    """

    path: Path
    before: bytes
    after: bytes
    mended: Mapping[LintFinding, str]

    @property
    def diff(self) -> str:
        """The edits as a unified diff."""
        name = shown_path(self.path)
        before, after = (_lines(data) for data in (self.before, self.after))
        return "".join(
            line if line.endswith("\n") else f"{line}\n"
            for line in difflib.unified_diff(
                [f"{line}\n" for line in before], [f"{line}\n" for line in after], name, name, n=1
            )
        )

    def write(self) -> None:
        """Replace the file, whole or not at all.

        Raises:
            ConfigError: it changed meanwhile, or cannot be written.
        """
        real = Path(os.path.realpath(self.path))  # a link stays one
        try:
            if real.read_bytes() != self.before:
                raise ConfigError("the file changed meanwhile.", where=str(self.path))
            mode = real.stat().st_mode
            write_atomically(real, [self.after])
            real.chmod(mode)
        except OSError as error:
            reason = os_reason(error)
            raise ConfigError(f"it cannot be written: {reason}.", where=str(self.path)) from error


def fixes_for(findings: Iterable[LintFinding]) -> list[FileFix]:
    """Make the edits that mend findings, as far as one is certain; one for each line."""
    by_file: dict[Path, list[LintFinding]] = {}
    for finding in findings:
        path = finding.place.path or finding.config
        if finding.code in _FIXERS and path is not None and path.is_file():
            by_file.setdefault(path, []).append(finding)
    fixes = []
    for path, file_findings in by_file.items():
        before = path.read_bytes()
        lines, edits, mended = _lines(before), dict[int, Sequence[str]](), dict[LintFinding, str]()
        for finding in sorted(file_findings, key=lambda f: f.place.line is None):
            edit = _FIXERS[finding.code](finding, lines)
            # a key that is added may be the one that another edit gives its right name
            adds = any(lines[i] in new for i, new in edit.items()) if edit else False
            if edit and not edits.keys() & edit.keys() and not (adds and edits):
                edits |= edit
                mended[finding] = _in_words(edit, lines)
        if edits:
            after = [new for i, old in enumerate(lines) for new in edits.get(i, (old,))]
            data = "\n".join(after).encode("utf-8", "surrogateescape")
            fixes.append(FileFix(path, before, data, mended))
    return fixes


def _in_words(edit: Edits, lines: Lines) -> str:
    """The file's text after an edit."""
    if len(edit) > 1:
        return f"change {len(edit)} lines"
    ((index, new),) = edit.items()
    added = [line.strip() for line in new if line.strip() not in ("", lines[index].strip())]
    return "write " + ", ".join(added) if added else f"remove line {index + 1}"


def _lines(data: bytes) -> Lines:
    """Lines without their newline; a carriage return stays at the end."""
    return data.decode("utf-8", "surrogateescape").split("\n")


# --- lines of a config ----------------------------------------------------------------------------


def _at(finding: LintFinding, lines: Lines) -> tuple[int, re.Match[str]] | None:
    """Index and parts of the `key=value` that a finding is about."""
    index = (finding.place.line or 0) - 1
    match = _LINE.fullmatch(lines[index].removesuffix("\r")) if 0 <= index < len(lines) else None
    return None if match is None else (index, match)


def _ending(line: str) -> str:
    return "\r" if line.endswith("\r") else ""


def _group_of(lines: Lines, index: int) -> str:
    """Name of the group that a line stands in."""
    for line in reversed(lines[:index]):
        match = _GROUP.fullmatch(line.removesuffix("\r"))
        if match:
            return match[1] or match[2]
    return ""


def _with_value(finding: LintFinding, lines: Lines, value: str | None) -> Edits | None:
    """Put another value into the line of a finding."""
    entry = _at(finding, lines)
    if entry is None or value is None:
        return None
    index, match = entry
    return {index: [match["head"] + value + _ending(lines[index])]}


def _set_key(finding: LintFinding, lines: Lines, key: str, value: str) -> Edits | None:
    """Set a key of [property]: in the line that counts, or in a new one below the group's."""
    header, last = None, None
    for index, line in enumerate(lines):
        bare = line.removesuffix("\r")
        match, group = _LINE.fullmatch(bare), _GROUP.fullmatch(bare)
        if match and match["key"] == key and _group_of(lines, index) == "property":
            last = index, [match["head"] + value + _ending(line)]
        if group and (group[1] or group[2]) == "property":
            header = index
    if last is not None:
        return dict([last])
    if header is None:
        return None
    yaml = not lines[header].lstrip().startswith("[")
    new = f"  {key}: {value}" if yaml else f"{key}={value}"
    return {header: [lines[header], new + _ending(lines[header])]}


def _remove(finding: LintFinding, lines: Lines) -> Edits | None:
    entry = _at(finding, lines)
    return None if entry is None else {entry[0]: []}


def _rename(finding: LintFinding, lines: Lines) -> Edits | None:
    """Take the name that is probably meant, where it differs by a slip."""
    meant = finding.data.get("meant")
    index = (finding.place.line or 0) - 1
    if meant is None or not finding.place.marked or not 0 <= index < len(lines):
        return None
    if not _alike(finding.place.marked, meant):
        return None
    old, line = finding.place.marked, lines[index]
    new = f"[{meant}]" if old.startswith("[") else meant
    group = _group_of(lines, index)
    others = (_LINE.fullmatch(x) for i, x in enumerate(lines) if _group_of(lines, i) == group)
    if any(match and match["key"] == new for match in others):
        return None  # it stands there already
    return {index: [line.replace(old, new, 1)]}


def _function(finding: LintFinding, lines: Lines) -> Edits | None:
    meant = finding.data.get("meant", ())
    certain = len(meant) == 1 and _alike(finding.place.marked, meant[0])
    return _with_value(finding, lines, meant[0] if certain else None)


def _alike(one: str, other: str) -> bool:
    """Whether two names differ by a slip: case, hyphens and underscores aside, by a letter."""
    first, second = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= _SLIP


def _earlier(finding: LintFinding, lines: Lines) -> Edits | None:
    """Remove the line before of the same key and group, which does not count."""
    entry = _at(finding, lines)
    if entry is None:
        return None
    index, match = entry
    group = _group_of(lines, index)
    for before in range(index - 1, -1, -1):
        other = _LINE.fullmatch(lines[before])
        if other and other["key"] == match["key"] and _group_of(lines, before) == group:
            return {before: []}
    return None


def _overruled(finding: LintFinding, lines: Lines) -> Edits | None:
    return _remove(finding, lines) if finding.data.get("remove") else None


def _deprecated(finding: LintFinding, lines: Lines) -> Edits | None:
    entry = _at(finding, lines)
    if entry is None:
        return None
    index, match = entry
    key, value, sign = match["key"], match["value"].strip(), match["sign"]
    new: list[str] = []
    if key == "threshold":
        new = [f"pre-cluster-threshold{sign}{value}"]
    elif key == "is-classifier":
        new = [f"network-type={int(value in ('1', 'true'))}"]
    elif key == "enable-dbscan":
        new = ["cluster-mode=1"] if value in ("1", "true") else []
    elif key in ("input-dims", "uff-input-dims"):
        *dims, order = value.removesuffix(";").split(";")
        new = [f"infer-dims={';'.join(dims)}", f"uff-input-order={order}"]
    else:
        return None
    return {index: [text + _ending(lines[index]) for text in new]}


# --- values ---------------------------------------------------------------------------------------


def _unquoted(finding: LintFinding, lines: Lines) -> Edits | None:
    entry = _at(finding, lines)
    return entry and _with_value(finding, lines, entry[1]["value"].strip()[1:-1])


def _stripped(finding: LintFinding, lines: Lines) -> Edits | None:
    entry = _at(finding, lines)
    return entry and _with_value(finding, lines, entry[1]["value"].rstrip())


def _comment_above(finding: LintFinding, lines: Lines) -> Edits | None:
    entry = _at(finding, lines)
    comment = _COMMENT.search(entry[1]["value"]) if entry else None
    if entry is None or comment is None:
        return None
    index, match = entry
    ending = _ending(lines[index])
    value = match["value"][: comment.start()]
    return {index: [f"# {comment[2].rstrip()}{ending}", match["head"] + value + ending]}


def _key_at(match: re.Match[str]) -> Key | None:
    return PROPERTY_KEYS.get(match["key"]) or CLASS_KEYS.get(match["key"])


def _decimal(finding: LintFinding, lines: Lines) -> Edits | None:
    """Write a decimal comma as a point, and a list with commas with semicolons."""
    entry = _at(finding, lines)
    key = _key_at(entry[1]) if entry else None
    if entry is None or key is None:
        return None
    value = entry[1]["value"].strip()
    if key.kind is Kind.FLOAT and re.fullmatch(r"[0-9]+,[0-9]+", value):
        return _with_value(finding, lines, value.replace(",", "."))
    number = r"\s*-?[0-9.]+\s*"
    many = key.kind in (Kind.FLOATS, Kind.INTS)
    if many and re.fullmatch(rf"{number}(,{number})+", value):
        return _with_value(finding, lines, re.sub(r"\s*,\s*", ";", value))
    return None


def _word(finding: LintFinding, lines: Lines) -> Edits | None:
    """Write the number that a word stands for."""
    entry = _at(finding, lines)
    key = _key_at(entry[1]) if entry else None
    if entry is None or key is None or key.enum is None:
        return None
    word = entry[1]["value"].strip().strip("\"'").upper()
    fits = [m for m in key.enum if word in (m.name, m.label.upper())]
    return _with_value(finding, lines, str(int(fits[0]))) if len(fits) == 1 else None


def _write(finding: LintFinding, lines: Lines) -> Edits | None:
    """Put the value that is meant into the line."""
    return _with_value(finding, lines, finding.data.get("write"))


def _set(finding: LintFinding, lines: Lines) -> Edits | None:
    """Set the key that mends it, unless another one would spoil that."""
    without = finding.data.get("without")
    if without and any(line.startswith(without) for line in lines):
        return None
    for key, value in finding.data.get("set", {}).items():
        return _set_key(finding, lines, key, str(value))
    return None


# --- whole files ----------------------------------------------------------------------------------


def _without_mark(finding: LintFinding, lines: Lines) -> Edits | None:
    return {0: [lines[0].removeprefix("\ufeff")]} if lines[0].startswith("\ufeff") else None


def _without_returns(finding: LintFinding, lines: Lines) -> Edits | None:
    return {i: [line.rstrip("\r")] for i, line in enumerate(lines) if line.endswith("\r")}


def _label_stripped(finding: LintFinding, lines: Lines) -> Edits | None:
    index = (finding.place.line or 0) - 1
    return {index: [lines[index].strip()]} if 0 <= index < len(lines) else None


_FIXERS: Mapping[str, Fixer] = {
    "unknown-key": _rename,
    "unknown-group": _rename,
    "function-missing": _function,
    "duplicate-key": _earlier,
    "key-overruled": _overruled,
    "deprecated-key": _deprecated,
    "value-quoted": _unquoted,
    "value-blank": _stripped,
    "value-comment": _comment_above,
    "value-type": _decimal,
    "value-choice": _word,
    "threshold-above-all": _write,
    "offsets-in-unit": _write,
    "class-count": _set,
    "input-range": _set,
    "input-colors": _set,
    "input-channels": _set,
    "masks-clustered": _set,
    "input-dims": _set,
    "byte-order-mark": _without_mark,
    "labels-byte-order-mark": _without_mark,
    "labels-carriage-return": _without_returns,
    "labels-blank": _label_stripped,
}

FIXABLE = frozenset(_FIXERS)
"""Rules that know edits; whether one is certain shows with each finding."""

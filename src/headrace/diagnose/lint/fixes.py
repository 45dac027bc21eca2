"""Exact edits that mend findings: lines of configs and label files, comments and form kept."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.files import os_reason, refuse_link, write_atomically
from headrace._core.formats.archives import is_bare_model
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

_MOST_WORDS = 4  # changed lines that are told one by one
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
            ConfigError: it changed meanwhile, is a link, or cannot be written.
        """
        path = self.path
        try:
            refuse_link(path)
            if path.read_bytes() != self.before:
                raise ConfigError("the file changed meanwhile.", where=str(path))
            mode = path.stat().st_mode
            write_atomically(path, [self.after])
            path.chmod(mode)
        except OSError as error:
            reason = os_reason(error)
            raise ConfigError(f"it cannot be written: {reason}.", where=str(path)) from error


def fixes_for(findings: Iterable[LintFinding]) -> list[FileFix]:
    """Make the edits that mend findings, as far as one is certain; one for each line."""
    by_file: dict[Path, list[LintFinding]] = {}
    for finding in findings:
        path = finding.place.path or finding.config
        if "set" in finding.data:
            path = finding.config
        elif finding.code not in FIXABLE:
            continue
        if path is not None and path.is_file() and not is_bare_model(path):
            by_file.setdefault(path, []).append(finding)
    fixes = []
    for path, file_findings in by_file.items():
        before = path.read_bytes()
        lines, edits, mended = _lines(before), dict[int, Sequence[str]](), dict[LintFinding, str]()
        for finding in sorted(file_findings, key=lambda f: f.place.line is None):
            edit = _edit(finding, lines)
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


def _edit(finding: LintFinding, lines: Lines) -> Edits | None:
    """Make the edit that mends a finding; None where none is certain."""
    if "set" in finding.data:
        return _set(finding, lines)
    if finding.code in _FIXERS:
        return _FIXERS[finding.code](finding, lines)
    index = (finding.place.line or 0) - 1
    match = _LINE.fullmatch(lines[index].removesuffix("\r")) if 0 <= index < len(lines) else None
    return match and _ENTRY_FIXERS[finding.code](_Entry(finding, lines, index, match))


def _in_words(edit: Edits, lines: Lines) -> str:
    """The file's text after an edit."""
    if len(edit) > _MOST_WORDS:
        return f"change {len(edit)} lines"
    old = {"", *(line.strip() for line in lines)}
    added = [line.strip() for new in edit.values() for line in new if line.strip() not in old]
    gone = [f"remove line {index + 1}" for index, new in edit.items() if not new]
    words = [f"write {', '.join(added)}"] if added else []
    return ", ".join([*words, *gone]) or f"change line {min(edit) + 1}"


def _lines(data: bytes) -> Lines:
    """Lines without their newline; a carriage return stays at the end."""
    return data.decode("utf-8", "surrogateescape").split("\n")


# --- lines of a config ----------------------------------------------------------------------------


def _ending(line: str) -> str:
    return "\r" if line.endswith("\r") else ""


def _group_of(lines: Lines, index: int) -> str:
    """Name of the group that a line stands in."""
    for line in reversed(lines[:index]):
        match = _GROUP.fullmatch(line.removesuffix("\r"))
        if match:
            return match[1] or match[2]
    return ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The `key=value` that a finding is about: index of its line, and its parts."""

    finding: LintFinding
    lines: Lines
    index: int
    match: re.Match[str]

    @property
    def key(self) -> Key | None:
        """The key of a config, if it is one."""
        name = self.match["key"]
        return PROPERTY_KEYS.get(name) or CLASS_KEYS.get(name)

    @property
    def value(self) -> str:
        """The text behind the sign."""
        return self.match["value"]

    def written(self, *texts: str) -> Edits:
        """Put other lines into the place of this one."""
        return {self.index: [text + _ending(self.lines[self.index]) for text in texts]}

    def with_value(self, value: str) -> Edits:
        """Put another value into the line."""
        return self.written(self.match["head"] + value)


def _set_key(lines: Lines, key: str, value: str, group: str = "property") -> Edits | None:
    """Set a key of a group: in the line that counts, or in a new one below the group's."""
    header, last = None, None
    for index, line in enumerate(lines):
        bare = line.removesuffix("\r")
        match, head = _LINE.fullmatch(bare), _GROUP.fullmatch(bare)
        if match and match["key"] == key and _group_of(lines, index) == group:
            last = {index: [match["head"] + value + _ending(line)]}
        if head and (head[1] or head[2]) == group:
            header = index
    if last is not None or header is None:
        return last
    yaml = not lines[header].lstrip().startswith("[")
    new = f"  {key}: {value}" if yaml else f"{key}={value}"
    return {header: [lines[header], new + _ending(lines[header])]}


def _without_key(lines: Lines, key: str, group: str) -> Edits:
    """Take out every line of a group that sets a key; without a key the group itself."""
    if not key:
        heads = [_GROUP.fullmatch(line.removesuffix("\r")) for line in lines]
        return {
            i: [] for i, head in enumerate(heads)
            if (_group_of(lines, i) if head is None else head[1] or head[2]) == group
        }  # fmt: skip
    matches = ((i, _LINE.fullmatch(line.removesuffix("\r"))) for i, line in enumerate(lines))
    return {
        i: [] for i, match in matches if match and match["key"] == key
        and _group_of(lines, i) == group
    }  # fmt: skip


def with_keys(data: bytes, keys: Mapping[str, str | None]) -> bytes:
    """Set keys in the text of a config; comments, order and line ends stay.

    Args:
        data: an INI or YAML file.
        keys: `key` of [property] or `group.key` -> its value as the file writes it, None to leave
            the key out; `group.` with None leaves the group out.
    """
    lines = _lines(data)
    for name, value in keys.items():
        group, _, key = name.rpartition(".")
        group = group or "property"
        edits = _without_key(lines, key, group) if value is None else None
        if value is not None and (edits := _set_key(lines, key, value, group)) is None:
            edits = _new_group(lines, key, value, group)
        lines = [new for i, old in enumerate(lines) for new in (edits or {}).get(i, (old,))]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def keys_of(data: bytes) -> dict[str, str]:
    """The keys that the text of a config sets, named as for `with_keys`; the last line counts."""
    lines = _lines(data.removeprefix(b"\xef\xbb\xbf"))
    keys = {}
    for index, line in enumerate(lines):
        match = _LINE.fullmatch(line.removesuffix("\r"))
        if match and not _GROUP.fullmatch(line.removesuffix("\r")):
            group = _group_of(lines, index)
            name = match["key"] if group == "property" else f"{group}.{match['key']}"
            keys[name] = match["value"].strip()
    return keys


def _new_group(lines: Lines, key: str, value: str, group: str) -> Edits:
    """Add a group with one key at the end."""
    heads = [line for line in lines if _GROUP.fullmatch(line.removesuffix("\r"))]
    yaml = bool(heads) and not heads[0].lstrip().startswith("[")
    end = _ending(heads[0]) if heads else ""
    added = [f"{group}:", f"  {key}: {value}"] if yaml else [f"[{group}]", f"{key}={value}"]
    last = len(lines) - 1
    before = [lines[last]] if lines[last].strip() else []
    gap = [] if yaml or not any(line.strip() for line in lines) else [end]
    return {last: [*before, *gap, *(f"{line}{end}" for line in added), ""]}


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


def _function(entry: _Entry) -> Edits | None:
    meant = entry.finding.data.get("meant", ())
    certain = len(meant) == 1 and _alike(entry.finding.place.marked, meant[0])
    return entry.with_value(meant[0]) if certain else None


def _alike(one: str, other: str) -> bool:
    """Whether two names differ by a slip: case, hyphens and underscores aside, by a letter."""
    first, second = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() >= _SLIP


def _earlier(entry: _Entry) -> Edits | None:
    """Remove the line before of the same key and group, which does not count."""
    lines, group = entry.lines, _group_of(entry.lines, entry.index)
    for before in range(entry.index - 1, -1, -1):
        other = _LINE.fullmatch(lines[before])
        if other and other["key"] == entry.match["key"] and _group_of(lines, before) == group:
            return {before: []}
    return None


def _overruled(entry: _Entry) -> Edits | None:
    return entry.written() if entry.finding.data.get("remove") else None


def _deprecated(entry: _Entry) -> Edits | None:
    key, value, on = entry.match["key"], entry.value.strip(), entry.value.strip() in ("1", "true")
    if key == "threshold":
        return entry.written(f"pre-cluster-threshold{entry.match['sign']}{value}")
    if key == "is-classifier":
        return entry.written(f"network-type={int(on)}")
    if key == "enable-dbscan":
        return entry.written("cluster-mode=1") if on else entry.written()
    if key in ("input-dims", "uff-input-dims"):
        *dims, order = value.removesuffix(";").split(";")
        return entry.written(f"infer-dims={';'.join(dims)}", f"uff-input-order={order}")
    return None


# --- values ---------------------------------------------------------------------------------------


def _unquoted(entry: _Entry) -> Edits | None:
    return entry.with_value(entry.value.strip()[1:-1])


def _stripped(entry: _Entry) -> Edits | None:
    return entry.with_value(entry.value.rstrip())


def _comment_above(entry: _Entry) -> Edits | None:
    comment = _COMMENT.search(entry.value)
    if comment is None:
        return None
    value = entry.value[: comment.start()]
    return entry.written(f"# {comment[2].rstrip()}", entry.match["head"] + value)


def _decimal(entry: _Entry) -> Edits | None:
    """Write a decimal comma as a point, and a list with commas with semicolons."""
    key, value = entry.key, entry.value.strip()
    if key is None:
        return None
    if key.kind is Kind.FLOAT and re.fullmatch(r"[0-9]+,[0-9]+", value):
        return entry.with_value(value.replace(",", "."))
    number = r"\s*-?[0-9.]+\s*"
    many = key.kind in (Kind.FLOATS, Kind.INTS)
    if many and re.fullmatch(rf"{number}(,{number})+", value):
        return entry.with_value(re.sub(r"\s*,\s*", ";", value))
    return None


def _word(entry: _Entry) -> Edits | None:
    """Write the number that a word stands for."""
    if entry.key is None or entry.key.enum is None:
        return None
    word = entry.value.strip().strip("\"'").upper()
    fits = [m for m in entry.key.enum if word in (m.name, m.label.upper())]
    return entry.with_value(str(int(fits[0]))) if len(fits) == 1 else None


def _write(entry: _Entry) -> Edits | None:
    """Put the value that is meant into the line."""
    value = entry.finding.data.get("write")
    return None if value is None else entry.with_value(value)


def _set(finding: LintFinding, lines: Lines) -> Edits | None:
    """Set the keys that are certain to mend it, and leave out those that must go."""
    keys = finding.data.get("set")
    if not keys:
        return None
    before = "\n".join(lines).encode("utf-8", "surrogateescape")
    texts = {key: None if value is None else str(value) for key, value in keys.items()}
    after = _lines(with_keys(before, texts))
    edits: dict[int, Sequence[str]] = {}
    matcher = difflib.SequenceMatcher(None, lines, after, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "insert":  # behind the line before
            edits[start - 1] = [*edits.get(start - 1, lines[start - 1 : start]), *after[first:last]]
        elif tag != "equal":
            edits |= dict.fromkeys(range(start, end), ())
            edits[start] = after[first:last]
    return edits or None


# --- whole files ----------------------------------------------------------------------------------


def _without_mark(finding: LintFinding, lines: Lines) -> Edits | None:
    return {0: [lines[0].removeprefix("\ufeff")]} if lines[0].startswith("\ufeff") else None


def _without_returns(finding: LintFinding, lines: Lines) -> Edits | None:
    return {i: [line.rstrip("\r")] for i, line in enumerate(lines) if line.endswith("\r")}


def _grouped(finding: LintFinding, lines: Lines) -> Edits | None:
    """Give the group its name, or write its line above the first key of a file without it."""
    index = (finding.place.line or 0) - 1
    names = [match for line in lines if (match := _GROUP.fullmatch(line.removesuffix("\r")))]
    if not 0 <= index < len(lines) or "property" in [name[1] or name[2] for name in names]:
        return None
    line = lines[index]
    if group := _GROUP.fullmatch(line.removesuffix("\r")):
        near = (group[1] or group[2]).strip().lower() in ("property", "properties")
        return {index: [f"[property]{_ending(line)}"]} if near and group[1] else None
    entry = _LINE.fullmatch(line.removesuffix("\r"))
    known = entry is not None and entry["key"] in PROPERTY_KEYS
    return {index: [f"[property]{_ending(line)}", line]} if known else None


def _label_stripped(finding: LintFinding, lines: Lines) -> Edits | None:
    index = (finding.place.line or 0) - 1
    return {index: [lines[index].strip()]} if 0 <= index < len(lines) else None


_FIXERS: Mapping[str, Fixer] = {
    "unknown-key": _rename,
    "unknown-group": _rename,
    "no-property-group": _grouped,
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
_ENTRY_FIXERS: Mapping[str, Callable[[_Entry], Edits | None]] = {
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
}
FIXABLE = frozenset((*_FIXERS, *_ENTRY_FIXERS))
"""Rules that know edits; whether one is certain shows with each finding.

Of other rules the keys are written that were confirmed on frames: `set` in a finding's data.
"""

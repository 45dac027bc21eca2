"""The content of a config file before its meaning: groups, keys, texts, line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import field

from headrace._core.errors import ConfigError
from headrace._core.findings import Data, Finding, Level
from headrace._core.plain_record import PlainRecord
from headrace._core.text import quoted

_SHOWN_PROBLEMS = 20
_GIVEN = 1 << 24  # more lines than any file has


class AddedLine(NamedTuple):
    """A line that the command line or a program adds to a config.

    `option` is what messages name instead of file and line: `--set`. Paths in `text` are relative
    to the working directory. The form is that of INI.
    """

    group: str
    key: str
    text: str
    option: str


class Entry(PlainRecord, frozen=True):
    """One `key=value` as written, `line` counted from 1.

    INI: `text` lacks its leading blanks and keeps its trailing ones; bytes that are not UTF-8 are
    surrogate escapes. YAML: `text` is the scalar; `plain` is false when it was quoted, and
    `problem` says what is wrong with a value that is no scalar.
    """

    key: str
    text: str
    line: int
    plain: bool = True
    problem: str | None = None

    @property
    def given(self) -> bool:
        """Whether it stands in no file, see `Document.add`."""
        return self.line >= _GIVEN


class Group(PlainRecord):
    """The entries of one group in file order, repeated keys included."""

    name: str
    line: int
    entries: list[Entry] = field(default_factory=list)

    def last(self) -> dict[str, Entry]:
        """The entry that counts for each key: the last one."""
        return {entry.key: entry for entry in self.entries}

    def repeated(self) -> Iterator[tuple[Entry, Entry]]:
        """Pairs of an entry and the later entry that replaces it."""
        seen: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.key in seen:
                yield seen[entry.key], entry
            seen[entry.key] = entry


class Document(PlainRecord):
    """A config file, read but not interpreted.

    Attributes:
        path: the file as it was named.
        form: `ini` or `yaml`.
        groups: by name, in order of first appearance; groups of one name are merged.
        problems: what the reader refuses, with line numbers.
        notices: (line, notice) of what it let pass but found odd.
        options: where the added lines come from.
    """

    path: Path
    form: Literal["ini", "yaml"]
    groups: dict[str, Group] = field(default_factory=dict)
    problems: list[ConfigError] = field(default_factory=list)
    notices: list[tuple[int, Finding]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def add(self, lines: Iterable[AddedLine]) -> None:
        """Put lines behind those of the file, each into its group."""
        for group, key, text, option in lines:
            number = _GIVEN + len(self.options)
            self.options.append(option)
            section = self.groups.setdefault(group, Group(group, number))
            section.entries.append(Entry(key, text, number))

    def form_of(self, entry: Entry) -> Literal["ini", "yaml"]:
        """The form in which an entry is written: added ones are INI."""
        return "ini" if entry.given else self.form

    def where(self, line: int) -> str:
        """Return `file:line` for messages, or the option of an added line."""
        if line >= _GIVEN:
            return self.options[line - _GIVEN]
        return f"{quoted(str(self.path), limit=None)}:{line}"

    def place(self, line: int) -> str:
        """Return `line 7` for a place in a sentence, or the option of an added line."""
        return self.options[line - _GIVEN] if line >= _GIVEN else f"line {line}"

    def refuse(
        self,
        line: int,
        problem: str,
        expected: str | None = None,
        fix: str | None = None,
        *,
        code: str = "pipeline-value",
        data: Data | None = None,
    ) -> None:
        """Add a problem of one line."""
        # any of the texts may repeat what the file says
        problem = quoted(problem, limit=None)
        expected = expected and quoted(expected, limit=None)
        fix = fix and quoted(fix, limit=200)
        where = self.where(line)
        error = ConfigError(problem, where=where, expected=expected, fix=fix, code=code, data=data)
        self.problems.append(error)

    def remark(
        self,
        line: int,
        message: str,
        level: Level = "warning",
        *,
        code: str = "not-applied",
        data: Data | None = None,
    ) -> None:
        """Add a notice about one line."""
        notice = Finding(code, level, quoted(message, limit=None), self.where(line), data or {})
        self.notices.append((line, notice))

    def counting(self, group: Group, replaced: Callable[[Entry, Entry], str]) -> dict[str, Entry]:
        """Return the entries of a group that count, in the order of the file; report the others.

        `replaced` describes the fate of an entry, given the later one in its place.
        """
        for first, second in group.repeated():
            if second.given:  # that is what it is for
                continue
            same = (first.text, first.problem) == (second.text, second.problem)
            message = f"{replaced(first, second)}: the last one counts"
            level: Level = "info" if same else "warning"
            self.remark(second.line, message, level, code="duplicate-key")
        entries = {}
        for entry in sorted(group.last().values(), key=lambda e: e.line):
            if not entry.key and entry.problem:
                self.refuse(
                    entry.line,
                    f"group {quoted(group.name)} {entry.problem}.",
                    "keys with values",
                    code="syntax",
                )
            else:
                entries[entry.key] = entry
        return entries

    def written(self, entry: Entry) -> str:
        """An entry as the file's form writes it, for messages: `key=value` or `key: value`."""
        sign = "=" if self.form_of(entry) == "ini" else ": "
        return f"{quoted(entry.key)}{sign}{quoted(entry.text)}"


class ConfigProblemsError(ConfigError):
    """Several problems of one file, reported together.

    `problems` holds each as its own `ConfigError`.
    """

    def __init__(self, path: str, problems: Iterable[ConfigError]) -> None:
        self.problems = tuple(problems)
        shown = [str(p).replace("\n", "\n  ") for p in self.problems[:_SHOWN_PROBLEMS]]
        if len(self.problems) > _SHOWN_PROBLEMS:
            shown.append(f"... and {len(self.problems) - _SHOWN_PROBLEMS} more")
        rows = [problem.finding.to_json() for problem in self.problems]
        text = f"{len(self.problems)} problems:"
        super().__init__(text, where=path, fix=shown, data={"problems": rows})


def report(path: Path, problems: list[ConfigError]) -> None:
    """Raise the problems of a file by line, several as one `ConfigProblemsError`."""
    problems = sorted(problems, key=_line_of)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ConfigProblemsError(quoted(str(path), limit=None), problems)


def _line_of(problem: ConfigError) -> int:
    line = (problem.where or "").rpartition(":")[2]
    return int(line) if line.isdecimal() else 0

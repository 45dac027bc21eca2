"""Read the values of deepstream-app groups; report once the keys that are not applied."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace._core.near import nearest
from headrace._core.text import quoted
from headrace.config.app.keys import APP_GROUPS, ENABLE, SECRET_KEYS, AppGroup
from headrace.config.app.reasons import Reason
from headrace.config.app.releases import unread_key
from headrace.config.document import Document, Entry, Group
from headrace.config.enums import Generation
from headrace.config.key import Key
from headrace.config.origin import Origin
from headrace.config.paths import resolve
from headrace.config.values import BadValueError, Kind, Values, parse_ini, parse_yaml

_MAX_SUGGESTIONS = 50
_OFF = ("0", "")


class FoundGroup:
    """The content of one group: values by key, and the entry of each."""

    def __init__(self, document: Document, kind: AppGroup) -> None:
        self.document = document
        self.kind = kind
        self.values: Values = {}
        self.entries: dict[str, Entry] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key."""
        return self.values.get(key, default)

    def line(self, key: str) -> int:
        """Return the line of a key, 1 if it is absent."""
        return self.entries[key].line if key in self.entries else 1

    def origin(self, key: str) -> Origin:
        """Return the place of a key."""
        entry = self.entries[key]
        return Origin("file", self.document.path, entry.line, entry.key, entry.text)

    def fields(self, keys: Iterable[Key]) -> tuple[Values, dict[str, Origin]]:
        """Values and origins by field, of those keys that are there."""
        present = [key for key in keys if key.name in self.values]
        values = {key.field or "": self.values[key.name] for key in present}
        return values, {key.field or "": self.origin(key.name) for key in present}


class AppReader:
    """Reads groups of one document; relative paths start at the folder of `base`.

    Keys that a generation does not read are left out, with one notice for each group.
    """

    def __init__(
        self,
        document: Document,
        base: Path | None = None,
        generation: Generation | None = None,
    ) -> None:
        self.document = document
        self.generation = generation
        self.base = base or document.path
        self.unknown = 0
        self.near: dict[tuple[str, str], list[tuple[int, str]]] = {}  # approximated: (group, how)
        self.unused: dict[tuple[str, Reason], list[tuple[int, str]]] = {}
        self._unread: dict[tuple[str, str], list[tuple[int, str]]] = {}  # (group, releases)

    def read(self, kind: AppGroup, group: Group) -> FoundGroup | None:
        """The values of a group; None when it is switched off."""
        entries = self._entries(group)
        section = FoundGroup(self.document, kind)
        switch = entries.get("enable")
        if kind.switched:
            if switch is None:
                text = f"[{quoted(group.name)}] has no enable=1 and is off"
                self.document.remark(group.line, text, code="group-off")
                return None
            on = self.value(switch, kind.keys.get("enable") or ENABLE)
            if not on:
                return None
            section.entries["enable"], section.values["enable"] = switch, on
        for entry in entries.values():
            if entry is switch:
                continue
            if (releases := unread_key(kind.name, entry.key, self.generation)) is not None:
                about = quoted(group.name), releases
                self._unread.setdefault(about, []).append((entry.line, quoted(entry.key)))
                continue
            key = kind.key(entry.key)
            if key is None:
                self._unused(kind, group, entry)
                continue
            value = self.value(entry, key)
            if value and (near := kind.near.get(entry.key)) is not None:
                self.near.setdefault((kind.name, near), []).append((entry.line, entry.key))
            if value is not None:
                section.values[entry.key], section.entries[entry.key] = value, entry
        return section

    def _entries(self, group: Group) -> dict[str, Entry]:
        def replaced(first: Entry, second: Entry) -> str:  # without values: some are secret
            return f"{quoted(second.key)} in line {second.line} replaces that of line {first.line}"

        return self.document.counting(group, replaced)

    def value(self, entry: Entry, key: Key) -> Any:
        """The value of one entry; None when it is empty or refused."""
        document = self.document
        secret = key.name in SECRET_KEYS
        written = quoted(entry.key) if secret else document.written(entry)
        if entry.problem:
            fix = None
            if entry.problem == "is a sequence":
                fix = "a list is one text with semicolons: 1;0;0;1"
            document.refuse(
                entry.line, f"{quoted(entry.key)} {entry.problem}.", key.expected(), fix
            )
            return None
        try:
            value = self._parse(key, entry.text)
            trouble = None if value is None else key.trouble(value)
            if trouble is None and key.kind is Kind.PATH:
                return resolve(value, self.base) if value else None
        except BadValueError as bad:
            expected = key.expected() if key.kind in (Kind.INT, Kind.FLOATS) else bad.expected
            document.refuse(entry.line, f"{written} is not {bad.noun}.", expected, bad.fix)
            return None
        if trouble:
            document.refuse(entry.line, f"{written} is not {trouble}.", key.expected())
            return None
        return None if value == "" else value

    def _parse(self, key: Key, text: str) -> Any:
        if self.document.form == "ini":
            # blanks behind a text are never meant here, and cost a file that is not found
            return parse_ini(key.kind, text.rstrip(" \t"))
        if key.kind in (Kind.INTS, Kind.FLOATS, Kind.STRINGS):
            text = text.strip().removesuffix(";")
        return parse_yaml(key.kind, text, loose=False)

    # --- what has no effect -----------------------------------------------------------------------

    def _unused(self, kind: AppGroup, group: Group, entry: Entry) -> None:
        reason = kind.unused.get(entry.key)
        if reason is not None:
            if reason.level == "warning" and entry.text.strip() in _OFF:
                return  # what is off is not missed
            # one notice for all hardware keys of the file; the others by group
            group_name = "" if reason.level == "info" else quoted(group.name)
            name = f"{quoted(entry.key)}"
            self.unused.setdefault((group_name, reason), []).append((entry.line, name))
            return
        self._unknown(kind, group, entry)

    def only_unknown(self, kind: AppGroup, group: Group) -> None:
        """Report the unknown keys of a group that is left out whole."""
        for entry in self._entries(group).values():
            if entry.key not in kind.states():
                self._unknown(kind, group, entry)

    def _unknown(self, kind: AppGroup, group: Group, entry: Entry) -> None:
        self.unknown += 1
        near = None
        if self.unknown <= _MAX_SUGGESTIONS:
            near = nearest(entry.key, list(kind.states()))
        hint = f"; did you mean {near}?" if near else ""
        self.document.remark(
            entry.line,
            f"{quoted(entry.key)} is not a key of [{quoted(group.name)}] and has no effect{hint}",
            code="unknown-key",
            data={"meant": near},
        )

    def unknown_group(self, group: Group) -> None:
        """Report an unknown group."""
        self.unknown += 1
        near, names = None, {}
        if self.unknown <= _MAX_SUGGESTIONS:
            stem = group.name.rstrip("0123456789")
            number = group.name[len(stem) :] or "0"
            names = {g.name.removesuffix("N"): g.name.replace("N", number) for g in APP_GROUPS}
            near = nearest(stem, list(names))
        meant = names[near] if near else None
        hint = f"; did you mean [{quoted(meant)}]?" if meant else ""
        text = f"group [{quoted(group.name)}] is not known{hint}"
        self.document.remark(group.line, text, code="unknown-group", data={"meant": meant})

    def tell_unused(self) -> None:
        """Add the notices about keys that are not applied, one for each reason."""
        for (group, reason), entries in self.unused.items():
            names = ", ".join(dict.fromkeys(name for _, name in entries))
            prefix = f"[{group}] " if group else ""
            self.document.remark(
                entries[0][0], f"{prefix}{names}: not applied, {reason.text}", reason.level
            )
        for (group, releases), entries in self._unread.items():
            names = ", ".join(dict.fromkeys(name for _, name in entries))
            text = f"[{group}] {names}: not read by {self.generation}, but {releases}"
            self.document.remark(entries[0][0], text, code="key-of-another-release")
        for (group, how), entries in self.near.items():
            names = ", ".join(dict.fromkeys(quoted(name) for _, name in entries))
            text = f"[{group}] {names}: {how}"
            self.document.remark(entries[0][0], text, "info", code="key-approximated")

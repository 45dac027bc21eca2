"""YAML form, as the original's reader takes it. Source: config facts, section 1.5.

A top-level mapping of groups, each a flat mapping of keys to scalars; a list is one scalar with `;`
between its items. What makes the original abort (sequences, repeated keys, malformed YAML) is
refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from noria._core.text import quoted
from noria.config.document import Document, Entry, Group
from noria.config.yaml_events import MAX_DEPTH, NULLS, Malformed, line_of, parse_events, refusing


def read_yaml(data: bytes, path: Path) -> Document:
    """Read the YAML form.

    Args:
        data: content of the file.
        path: the file as it was named, for messages.

    Returns:
        The document; what is refused is in `problems`.
    """
    document = Document(path, "yaml")
    with refusing(data, document):
        _Reader(document, parse_events(data)).read()
    return document


class _Reader:
    """Walks the events of one document, two mappings deep."""

    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self.document = document
        self.events = events
        self.depth = 0
        self.anchors: dict[str, yaml.ScalarEvent | None] = {}

    def read(self) -> None:
        document = self.document
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                break
        else:
            return
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            self._skip(event)
            document.refuse(
                line_of(event), "the file is not a mapping.", "groups, such as property:"
            )
            return
        for key in iter(self._next, None):
            if isinstance(key, yaml.MappingEndEvent):
                break
            self._group(key, self._next())
        self._next()  # DocumentEnd
        extra = next(self.events, None)
        if isinstance(extra, yaml.DocumentStartEvent):
            document.remark(line_of(extra), "only the first document of a YAML file is read")

    def _next(self) -> Any:
        event = next(self.events)
        if isinstance(event, yaml.CollectionStartEvent):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise Malformed(line_of(event), f"nested deeper than {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise Malformed(line_of(event), "an alias of an unknown anchor")
            # an alias of a mapping or sequence is no scalar, whatever it holds
            return self.anchors[event.anchor] or _Collection(event.start_mark)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = event if isinstance(event, yaml.ScalarEvent) else None
        return event

    def _skip(self, event: Any) -> None:
        """Drop the rest of a value that began with `event`."""
        if isinstance(event, yaml.CollectionStartEvent):
            self._close(1)

    def _close(self, depth: int) -> None:
        """Drop what comes until `depth` open collections are closed."""
        while depth:
            event = self._next()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _group(self, key: Any, value: Any) -> None:
        document = self.document
        if not isinstance(key, yaml.ScalarEvent):
            line = line_of(key)
            document.refuse(line, "a group name must be a plain text.", "such as property:")
            # the key's own content comes before the value: walk both, `value` was part of the key
            self._skip_pair(key, value)
            return
        name, line = key.value, line_of(key)
        if name in document.groups:
            document.refuse(
                line,
                f"group {quoted(name)} is repeated.",
                f"one mapping with all its keys: the first is in line {document.groups[name].line}",
            )
        group = document.groups.setdefault(name, Group(name, line))
        if isinstance(value, yaml.MappingStartEvent):
            self._entries(group)
            return
        self._skip(value)
        if not (isinstance(value, yaml.ScalarEvent) and _is_null(value)):
            group.entries.append(Entry("", "", line, problem="is not a mapping"))

    def _skip_pair(self, key: Any, value: Any) -> None:
        """Drop a pair whose key is a collection; `value` is the event behind the key's start."""
        if isinstance(key, _Collection):
            self._skip(value)
            return
        if not isinstance(value, yaml.CollectionEndEvent):
            self._close(2 if isinstance(value, yaml.CollectionStartEvent) else 1)
        self._skip(self._next())

    def _entries(self, group: Group) -> None:
        document = self.document
        seen: dict[str, int] = {}
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            line = line_of(key)
            value = self._next()
            if not isinstance(key, yaml.ScalarEvent):
                document.refuse(line, "a key must be a plain text.", "key: value")
                self._skip_pair(key, value)
                continue
            if key.value in seen:
                document.refuse(
                    line,
                    f"{quoted(key.value)} is repeated, first in line {seen[key.value]}.",
                    "each key once",
                )
            seen.setdefault(key.value, line)
            if isinstance(value, yaml.ScalarEvent):
                plain = not value.style
                problem = "has no value" if plain and _is_null(value) else None
                group.entries.append(Entry(key.value, value.value, line, plain, problem))
                continue
            self._skip(value)
            kind = "a mapping" if isinstance(value, yaml.MappingStartEvent) else "a sequence"
            group.entries.append(Entry(key.value, "", line, problem=f"is {kind}"))


class _Collection:
    """Stands for an alias of a mapping or sequence."""

    def __init__(self, mark: Any) -> None:
        self.start_mark = mark


def _is_null(event: yaml.ScalarEvent) -> bool:
    return not event.style and event.value in NULLS

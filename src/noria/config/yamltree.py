"""YAML as a tree of texts with line numbers, for files that are deeper than groups of keys.

An alias is the same node again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from noria._core.text import quoted
from noria.config.document import Document
from noria.config.yaml_events import MAX_DEPTH, NULLS, Malformed, line_of, parse_events, refusing


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; `plain` is false when it was quoted or a block."""

    text: str
    line: int
    plain: bool = True

    @property
    def empty(self) -> bool:
        return self.plain and self.text in NULLS


@dataclass(frozen=True, slots=True)
class SeqNode:
    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class MapNode:
    """Pairs in file order, keys unique."""

    pairs: tuple[tuple[Scalar, Node], ...]
    line: int


Node: TypeAlias = "Scalar | SeqNode | MapNode"


def read_tree(data: bytes, document: Document) -> MapNode | None:
    """The mapping a YAML file holds.

    Args:
        data: content of the file.
        document: gets what is refused.

    Returns:
        The tree; None when there is none to work with, and then `document.problems` says why.
    """
    node = None
    with refusing(data, document):
        node = _Reader(document, parse_events(data)).read()
    if isinstance(node, MapNode):
        return node
    if not document.problems:
        line = node.line if node else 1
        found = "the file is empty." if node is None else "the file is not a mapping."
        document.refuse(line, found, "keys with values, such as sources:")
    return None


def top_level_keys(data: bytes) -> list[str]:
    """The keys of the mapping that YAML text holds, as far as it can be read; nothing is raised."""
    keys: list[str] = []
    depth, key = 0, True
    try:
        for event in parse_events(data):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif depth == 1 and isinstance(event, yaml.NodeEvent):
                if key and isinstance(event, yaml.ScalarEvent):
                    keys.append(event.value)
                key = not key
            if isinstance(event, yaml.CollectionStartEvent):
                if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                    return []
                depth += 1
                if depth > MAX_DEPTH:
                    return keys
            if isinstance(event, yaml.DocumentEndEvent):
                return keys
    except (yaml.YAMLError, UnicodeError):
        pass
    return keys


class _Reader:
    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self.document = document
        self.events = events
        self.anchors: dict[str, Node] = {}

    def read(self) -> Node | None:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                break
        else:
            return None
        node = self._node(next(self.events), 0)
        next(self.events)  # DocumentEnd
        extra = next(self.events, None)
        if isinstance(extra, yaml.DocumentStartEvent):
            self.document.remark(line_of(extra), "only the first document of a YAML file is read")
        return None if isinstance(node, Scalar) and node.empty else node

    def _node(self, event: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Malformed(line_of(event), f"nested deeper than {MAX_DEPTH}")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise Malformed(line_of(event), "an alias of an unknown anchor")
            return self.anchors[event.anchor]
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = Scalar(event.value, line_of(event), not event.style)
        elif isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            node = SeqNode(tuple(items), line_of(event))
        else:
            node = self._mapping(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _mapping(self, event: Any, depth: int) -> MapNode:
        pairs: list[tuple[Scalar, Node]] = []
        seen: dict[str, int] = {}
        while not isinstance(start := next(self.events), yaml.MappingEndEvent):
            key = self._node(start, depth + 1)
            value = self._node(next(self.events), depth + 1)
            if not isinstance(key, Scalar):
                self.document.refuse(line_of(start), "a key must be a plain text.", "key: value")
            elif key.text in seen:
                self.document.refuse(
                    key.line,
                    f"{quoted(key.text)} is repeated, first in line {seen[key.text]}.",
                    "each key once",
                )
            else:
                seen[key.text] = key.line
                pairs.append((key, value))
        return MapNode(tuple(pairs), line_of(event))

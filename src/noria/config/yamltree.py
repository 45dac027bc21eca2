"""YAML as a tree of texts with line numbers, for files that are deeper than groups of keys.

Built from events like `yamlfile`: nothing is constructed, so no tag runs code, and neither deep
nesting nor aliases of aliases can cost memory or stack. An alias is the same node again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from noria.config.document import Document, show

__all__ = ["MapNode", "Node", "Scalar", "SeqNode", "read_tree", "top_level_keys"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 50
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text; `plain` is false when it was quoted or a block."""

    text: str
    line: int
    plain: bool = True

    @property
    def empty(self) -> bool:
        return self.plain and self.text in _NULLS


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
    try:
        node = _Reader(document, yaml.parse(data, Loader=_LOADER)).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        document.refuse(mark.line + 1 if mark else 1, f"malformed YAML: {show(reason, limit=200)}")
    except _Malformed as error:
        document.refuse(error.line, f"malformed YAML: {error}")
    except (yaml.YAMLError, UnicodeError) as error:
        line = data.count(b"\n", 0, getattr(error, "position", 0) or 0) + 1
        reason = str(getattr(error, "reason", error))
        document.refuse(line, f"malformed YAML: {show(reason, limit=200)}", "UTF-8 text")
    else:
        if isinstance(node, MapNode):
            return node
        line = node.line if node else 1
        found = "the file is empty." if node is None else "the file is not a mapping."
        document.refuse(line, found, "keys with values, such as sources:")
    return None


def top_level_keys(data: bytes) -> list[str]:
    """The keys of the mapping that YAML text holds, as far as it can be read; nothing is raised."""
    keys: list[str] = []
    depth, key = 0, True
    try:
        for event in yaml.parse(data, Loader=_LOADER):
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
                if depth > _MAX_DEPTH:
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
            self.document.remark(_line(extra), "only the first document of a YAML file is read")
        return None if isinstance(node, Scalar) and node.empty else node

    def _node(self, event: Any, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise _Malformed(_line(event), f"nested deeper than {_MAX_DEPTH}")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise _Malformed(_line(event), "an alias of an unknown anchor")
            return self.anchors[event.anchor]
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = Scalar(event.value, _line(event), not event.style)
        elif isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                items.append(self._node(item, depth + 1))
            node = SeqNode(tuple(items), _line(event))
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
                self.document.refuse(_line(start), "a key must be a plain text.", "key: value")
            elif key.text in seen:
                self.document.refuse(
                    key.line,
                    f"{show(key.text)} is repeated, first in line {seen[key.text]}.",
                    "each key once",
                )
            else:
                seen[key.text] = key.line
                pairs.append((key, value))
        return MapNode(tuple(pairs), _line(event))


class _Malformed(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1

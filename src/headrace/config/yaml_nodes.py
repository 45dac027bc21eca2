"""YAML as a tree of texts with line numbers: the one reader of every YAML dialect.

Events instead of PyYAML's nodes: nothing is constructed, so no tag runs code, and neither deep
nesting nor aliases of aliases cost memory or stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from headrace._core.text import quoted
from headrace.config.document import Document, Entry, Group

MAX_DEPTH = 50  # a config is two deep; the scanner of PyYAML is slow on thousands

NO_VALUE = "has no value"
"""The problem of an entry that stands for nothing."""
_PLAIN_DEPTH = 20  # of a text that is read as values
_NULLS = ("", "~", "null", "Null", "NULL")
_TOP_EXPECTED = "keys with values, such as sources:"
# What stands before a document; yaml-cpp passes over a version that is no proper directive.
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*)?\r?\n|%YAML(?::|[ \t]+1\.)[^\n]*\n)*")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Constructor: Any = yaml.SafeLoader  # its types of scalars: numbers, texts, flags


@dataclass(frozen=True, slots=True)
class TextNode:
    """A text.

    Attributes:
        text: the content, without quotes.
        line: the line it begins in, from 1.
        plain: it was neither quoted nor a block.
        tag: its tag, if the file writes one.
    """

    text: str
    line: int
    plain: bool = True
    tag: str | None = None

    @property
    def empty(self) -> bool:
        """Whether it stands for nothing."""
        return self.plain and self.text in _NULLS


@dataclass(slots=True)
class SeqNode:
    """A list."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class MapNode:
    """A mapping in file order.

    Attributes:
        line: the line it begins in, from 1.
        keys: its keys, repeated ones included; one more than `values` where the file breaks off.
        values: a value for each key.
        odd_keys: lines of keys that are no texts; they and their values are left out.
    """

    line: int
    keys: list[TextNode] = field(default_factory=list)
    values: list[Node] = field(default_factory=list)
    odd_keys: list[int] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[TextNode, Node]]:
        """Each key with its value."""
        return list(zip(self.keys, self.values, strict=False))


Node: TypeAlias = "TextNode | SeqNode | MapNode"
Aliases = Literal["nodes", "scalars", "refused"]


class MalformedError(Exception):
    """YAML that no dialect accepts.

    Attributes:
        line: where, from 1.
        expected: the form that would be accepted, if there is one.
    """

    def __init__(self, line: int, reason: str, expected: str | None = None) -> None:
        super().__init__(f"malformed YAML: {reason}")
        self.line = line
        self.expected = expected


class YamlTree:
    """The first document of a YAML text.

    Lines such as `%YAML:1.0` and `%YAML 1.2` before it count as comments, wherever they stand.

    Args:
        data: content of the file.
        aliases: `nodes`: an alias is the same node again. `scalars`: an alias of a collection is an
            empty list, whatever the collection holds. `refused`: malformed.
        max_depth: most collections within one another.

    Attributes:
        root: the tree as far as it could be read; None if there is none.
        mappings: every mapping of the file, once each.
        malformed: the error that ended the reading.
        second_document: line in which another document begins, which is not read.
    """

    def __init__(
        self, data: bytes, *, aliases: Aliases = "nodes", max_depth: int = MAX_DEPTH
    ) -> None:
        self.root: Node | None = None
        self.mappings: list[MapNode] = []
        self.malformed: MalformedError | None = None
        self.second_document: int | None = None
        self._aliases = aliases
        self._max_depth = max_depth
        self._depth = 0
        self._anchors: dict[str, Node] = {}
        if head := _HEAD.match(data):
            data = head[0].replace(b"%YAML", b"#YAML") + data[head.end() :]
        try:
            self._events: Iterator[Any] = yaml.parse(data, Loader=_LOADER)
            self._read()
        except MalformedError as error:
            self.malformed = error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            reason = ", ".join(part for part in (error.context, error.problem) if part)
            self.malformed = MalformedError(mark.line + 1 if mark else 1, quoted(reason, limit=200))
        except (yaml.YAMLError, UnicodeError) as error:
            # errors of the encoding (bad UTF-8, control characters) know an offset, not a line
            line = data.count(b"\n", 0, getattr(error, "position", 0) or 0) + 1
            reason = str(getattr(error, "reason", error))
            self.malformed = MalformedError(line, quoted(reason, limit=200), "UTF-8 text")

    def report(self, document: Document) -> None:
        """Report the error of the file, and further documents in it."""
        if self.malformed is not None:
            error = self.malformed
            document.refuse(error.line, str(error), error.expected, code="syntax")
        if self.second_document is not None:
            text = "only the first document of a YAML file is read"
            document.remark(self.second_document, text, code="second-document")

    def _read(self) -> None:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                break
        else:
            return
        self._node(next(self._events), self._place_root)
        next(self._events)  # DocumentEnd
        extra = next(self._events, None)
        if isinstance(extra, yaml.DocumentStartEvent):
            self.second_document = _line_of(extra)

    def _place_root(self, node: Node) -> None:
        self.root = node

    def _node(self, event: Any, receiver: Callable[[Node], None]) -> None:
        """Read one node; `receiver` gets it first, so that an error leaves the part before it."""
        if isinstance(event, yaml.AliasEvent):
            receiver(self._alias(event))
            return
        line = _line_of(event)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = TextNode(event.value, line, not event.style, event.tag)
        else:
            node = SeqNode(line) if isinstance(event, yaml.SequenceStartEvent) else MapNode(line)
        receiver(node)
        if event.anchor is not None:  # of a collection that is not complete: an empty list
            self._anchors[event.anchor] = node if isinstance(node, TextNode) else SeqNode(line)
        if not isinstance(node, TextNode):
            self._content(node)
            if event.anchor is not None and self._aliases == "nodes":
                self._anchors[event.anchor] = node

    def _content(self, node: SeqNode | MapNode) -> None:
        self._depth += 1
        if self._depth > self._max_depth:
            raise MalformedError(node.line, f"nested deeper than {self._max_depth}")
        if isinstance(node, SeqNode):
            self._items(node)
        else:
            self.mappings.append(node)
            self._pairs(node)
        self._depth -= 1

    def _items(self, node: SeqNode) -> None:
        while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
            self._node(item, node.items.append)

    def _pairs(self, node: MapNode) -> None:
        while not isinstance(start := next(self._events), yaml.MappingEndEvent):
            nodes: list[Node] = []
            self._node(start, nodes.append)
            if isinstance(nodes[0], TextNode):
                node.keys.append(nodes[0])
                self._node(next(self._events), node.values.append)
            else:
                node.odd_keys.append(_line_of(start))
                self._node(next(self._events), nodes.append)

    def _alias(self, event: Any) -> Node:
        if self._aliases == "refused":
            raise MalformedError(_line_of(event), "aliases are not read")
        if event.anchor not in self._anchors:
            raise MalformedError(_line_of(event), "an alias of an unknown anchor")
        return self._anchors[event.anchor]


def only_document(data: bytes) -> Node | None:
    """Return the tree of a text that holds one document without aliases.

    Raises:
        MalformedError: it holds something else.
    """
    tree = YamlTree(data, aliases="refused", max_depth=_PLAIN_DEPTH)
    if tree.malformed is not None:
        raise tree.malformed
    if tree.second_document is not None:
        raise MalformedError(tree.second_document, "another document begins")
    return tree.root


def plain_value(node: Node) -> Any:
    """Return the number, text, flag, list or mapping that a node stands for.

    Raises:
        MalformedError: a scalar is none of its type, or a key is no scalar.
    """
    if isinstance(node, SeqNode):
        return [plain_value(item) for item in node.items]
    if isinstance(node, MapNode):
        if node.odd_keys:
            raise MalformedError(node.odd_keys[0], "a key is not a text")
        return {plain_value(key): plain_value(value) for key, value in node.pairs}
    loader = _Constructor("")
    tag = node.tag
    try:
        if tag is None or tag == "!":
            tag = loader.resolve(yaml.ScalarNode, node.text, (node.plain, not node.plain))
        return loader.construct_object(yaml.ScalarNode(tag, node.text))
    except (yaml.YAMLError, ValueError) as error:
        reason = getattr(error, "problem", None) or str(error)[:200]
        raise MalformedError(node.line, reason) from None


def read_tree(data: bytes, document: Document) -> MapNode | None:
    """Read the mapping that a YAML file holds; keys that are no texts or repeated are left out.

    None when there is none to work with: then `document.problems` has the reason.
    """
    tree = YamlTree(data)
    for node in tree.mappings:
        _drop_odd_keys(node, document)
    tree.report(document)
    if tree.malformed is not None:
        return None
    if isinstance(tree.root, MapNode):
        return tree.root
    if tree.root is None or (isinstance(tree.root, TextNode) and tree.root.empty):
        document.refuse(1, "the file is empty.", _TOP_EXPECTED, code="syntax")
    else:
        problem = "the file is not a mapping."
        document.refuse(tree.root.line, problem, _TOP_EXPECTED, code="syntax")
    return None


def _drop_odd_keys(node: MapNode, document: Document) -> None:
    for line in node.odd_keys:
        document.refuse(line, "a key must be a plain text.", "key: value", code="syntax")
    first: dict[str, tuple[TextNode, Node]] = {}
    for key, value in node.pairs:
        if key.text in first:
            line = first[key.text][0].line
            document.refuse(
                key.line,
                f"{quoted(key.text)} is repeated, first in line {line}.",
                "each key once",
                code="duplicate-key",
            )
        else:
            first[key.text] = key, value
    node.keys = [key for key, _ in first.values()]
    node.values = [value for _, value in first.values()]


def top_level_keys(data: bytes) -> list[str]:
    """Return the keys of the mapping that YAML text holds, as far as it can be read."""
    root = YamlTree(data).root
    return [key.text for key in root.keys] if isinstance(root, MapNode) else []


def _line_of(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


# a group of INI as the first line that is no comment
_INI_GROUP = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?=[ \t]*\[[A-Za-z][\w-]*\][ \t]*\r?\n)")


def read_yaml(data: bytes, path: Path) -> Document:
    """Read the YAML form."""
    document = Document(path, "yaml")
    tree = YamlTree(data, aliases="scalars")  # an alias of a mapping is no group
    if isinstance(tree.root, MapNode):
        for line in tree.root.odd_keys:
            problem = "a group name must be a plain text."
            document.refuse(line, problem, "such as property:", code="syntax")
        for key, value in tree.root.pairs:
            _read_group(document, key, value)
    elif tree.root is not None and tree.malformed is None:
        problem = "the file is not a mapping."
        document.refuse(tree.root.line, problem, "groups, such as property:", code="syntax")
    if tree.malformed is not None and (ini := _INI_GROUP.match(data)):
        line, problem = ini[0].count(b"\n") + 1, "[group] is INI, and the file's name says YAML."
        expected = "group:, below it key: value; or a name that ends in .txt"
        document.refuse(line, problem, expected, code="other-form")
    tree.report(document)
    return document


def _read_group(document: Document, key: TextNode, value: Node) -> None:
    name = key.text
    first = document.groups.get(name)
    if first is not None and first.entries and isinstance(value, MapNode):
        document.refuse(
            key.line,
            f"group {quoted(name)} is repeated.",
            f"one mapping with all its keys: the first is in line {first.line}",
            code="duplicate-key",
        )
    group = document.groups.setdefault(name, Group(name, key.line))
    if isinstance(value, MapNode):
        _read_entries(document, group, value)
    elif not (isinstance(value, TextNode) and value.empty):
        problem = "is not a mapping"
        if isinstance(value, TextNode) and "=" in value.text:
            problem += ": in YAML ': ' separates key and value, not '='"
        group.entries.append(Entry("", "", key.line, problem=problem))


def _read_entries(document: Document, group: Group, node: MapNode) -> None:
    for line in node.odd_keys:
        document.refuse(line, "a key must be a plain text.", "key: value", code="syntax")
    for key, value in node.pairs:
        if isinstance(value, TextNode):
            problem = NO_VALUE if value.empty else None
            entry = Entry(key.text, value.text, key.line, value.plain, problem)
        else:
            kind = "a mapping" if isinstance(value, MapNode) else "a sequence"
            entry = Entry(key.text, "", key.line, problem=f"is {kind}")
        group.entries.append(entry)

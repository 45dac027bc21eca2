"""YAML form, as the original's reader takes it. Source: config facts, section 1.5.

A top-level mapping of groups, each a flat mapping of keys to scalars; a list is one scalar with `;`
between its items. What makes the original abort (sequences, repeated keys, malformed YAML) is
refused here.
"""

from __future__ import annotations

from pathlib import Path

from noria._core.text import quoted
from noria.config.document import Document, Entry, Group
from noria.config.yaml_nodes import MapNode, Node, TextNode, YamlTree


def read_yaml(data: bytes, path: Path) -> Document:
    """Read the YAML form.

    Args:
        data: content of the file.
        path: the file as it was named, for messages.

    Returns:
        The document; what is refused is in `problems`.
    """
    document = Document(path, "yaml")
    tree = YamlTree(data, aliases="scalars")  # an alias of a mapping is no group
    if isinstance(tree.root, MapNode):
        for line in tree.root.odd_keys:
            document.refuse(line, "a group name must be a plain text.", "such as property:")
        for key, value in tree.root.pairs:
            _read_group(document, key, value)
    elif tree.root is not None and tree.malformed is None:
        found = "the file is not a mapping."
        document.refuse(tree.root.line, found, "groups, such as property:")
    tree.report(document)
    return document


def _read_group(document: Document, key: TextNode, value: Node) -> None:
    name = key.text
    if name in document.groups:
        document.refuse(
            key.line,
            f"group {quoted(name)} is repeated.",
            f"one mapping with all its keys: the first is in line {document.groups[name].line}",
        )
    group = document.groups.setdefault(name, Group(name, key.line))
    if isinstance(value, MapNode):
        _read_entries(document, group, value)
    elif not (isinstance(value, TextNode) and value.empty):
        group.entries.append(Entry("", "", key.line, problem="is not a mapping"))


def _read_entries(document: Document, group: Group, node: MapNode) -> None:
    for line in node.odd_keys:
        document.refuse(line, "a key must be a plain text.", "key: value")
    seen: dict[str, int] = {}
    for key, value in node.pairs:
        if key.text in seen:
            document.refuse(
                key.line,
                f"{quoted(key.text)} is repeated, first in line {seen[key.text]}.",
                "each key once",
            )
        seen.setdefault(key.text, key.line)
        if isinstance(value, TextNode):
            problem = "has no value" if value.empty else None
            entry = Entry(key.text, value.text, key.line, value.plain, problem)
        else:
            kind = "a mapping" if isinstance(value, MapNode) else "a sequence"
            entry = Entry(key.text, "", key.line, problem=f"is {kind}")
        group.entries.append(entry)

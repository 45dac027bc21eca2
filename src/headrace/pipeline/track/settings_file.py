"""YAML files that configure a tracker: scalars and lists, at most one group deep.

Headrace's own and those of the original's tracker library (`ll-config-file`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from headrace._core.errors import ConfigError
from headrace._core.files import os_errors
from headrace.config.yaml_nodes import MalformedError, MapNode, Node, only_document, plain_value

_LARGEST_BYTES = 1 << 20


class FileSetting(NamedTuple):
    """A value and its line, from 1."""

    value: Any
    line: int


def read_entries(path: Path) -> dict[str, FileSetting]:
    """Read the keys of a file, as "key" or "group.key".

    What is nested deeper is passed over.
    """
    try:
        return _entries(only_document(_bytes_of(path)), path)
    except MalformedError as error:
        raise ConfigError(str(error), where=f"{path}:{error.line}") from None


def text_of(path: Path) -> str:
    """The text of a file, for a library that reads it itself.

    Raises:
        ConfigError: it cannot be read, or is no text.
    """
    try:
        return _bytes_of(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError("the file is no UTF-8", where=f"{path}: byte {error.start}") from None


def _bytes_of(path: Path) -> bytes:
    with os_errors(ConfigError, "the file cannot be read", path), path.open("rb") as file:
        data = file.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise ConfigError("the file is larger than 1 MiB", where=str(path))
    return data


def _entries(root: Node | None, path: Path) -> dict[str, FileSetting]:
    if not isinstance(root, MapNode):
        raise ConfigError(
            "the file is not a mapping",
            where=str(path),
            expected="tracker: iou and settings, or groups of the original such as BaseConfig:",
        )
    entries: dict[str, FileSetting] = {}
    for key, value in _pairs(root, path):
        if not isinstance(value, MapNode):
            entries[key] = FileSetting(plain_value(value), value.line)
            continue
        for inner, item in _pairs(value, path):
            if not isinstance(item, MapNode):
                entries[f"{key}.{inner}"] = FileSetting(plain_value(item), item.line)
    return entries


def _pairs(node: MapNode, path: Path) -> list[tuple[str, Node]]:
    if node.odd_keys:
        raise ConfigError("a key is not a text", where=f"{path}:{node.odd_keys[0]}")
    return [(key.text, value) for key, value in node.pairs]

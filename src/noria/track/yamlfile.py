"""YAML files that configure a tracker: scalars and lists, at most one group deep."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from noria._core.errors import ConfigError

_LARGEST_BYTES = 1 << 20
_DEEPEST = 20  # the composer of PyYAML needs stack for each level
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry(NamedTuple):
    """A value and its line, from 1."""

    value: Any
    line: int


def read_entries(path: Path) -> dict[str, Entry]:
    """The keys of a file, as "key" or "group.key".

    OpenCV's first line `%YAML:1.0`, which the original's samples have, is no YAML and is passed
    over, and so is what is nested deeper.

    Raises:
        ConfigError: the file cannot be read, or is no YAML mapping.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"the file cannot be read: {error.strerror or error}", where=str(path)
        ) from None
    if len(data) > _LARGEST_BYTES:
        raise ConfigError("the file is larger than 1 MiB", where=str(path))
    if data.startswith(b"%YAML:"):
        data = b"#" + data[1:]
    loader = None
    try:
        _refuse_bombs(data)
        loader = _Loader(data)
        return _entries(loader, loader.get_single_node(), path)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(
            f"malformed YAML: {error.problem or error.context}", where=f"{path}{line}"
        ) from None
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise ConfigError(f"malformed YAML: {str(error)[:200]}", where=str(path)) from None
    finally:
        if loader is not None:
            loader.dispose()


def _refuse_bombs(data: bytes) -> None:
    """Raise for what a small file could blow up with."""
    depth = 0
    for event in yaml.parse(data, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise yaml.YAMLError(f"nested deeper than {_DEEPEST}")
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")


def _entries(loader: Any, root: Any, path: Path) -> dict[str, Entry]:
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(
            "the file is not a mapping",
            where=str(path),
            expected="tracker: iou and settings, or groups of the original such as BaseConfig:",
        )
    entries: dict[str, Entry] = {}
    for key, value in root.value:
        _require_text(key, path)
        if isinstance(value, yaml.MappingNode):
            for inner, scalar in value.value:
                _require_text(inner, path)
                if not isinstance(scalar, yaml.MappingNode):
                    entries[f"{key.value}.{inner.value}"] = _entry(loader, scalar)
        else:
            entries[key.value] = _entry(loader, value)
    return entries


def _require_text(key: Any, path: Path) -> None:
    if not isinstance(key, yaml.ScalarNode):
        raise ConfigError("a key is not a text", where=f"{path}:{key.start_mark.line + 1}")


def _entry(loader: Any, node: Any) -> Entry:
    return Entry(loader.construct_object(node, deep=True), node.start_mark.line + 1)

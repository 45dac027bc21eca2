"""Config files of the original's message converter: sensors, places, analytics modules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.text import quoted
from headrace.config.document import report
from headrace.config.reading import read_bytes, read_document
from headrace.config.values import is_utf8
from headrace.config.yaml_nodes import NO_VALUE

ConverterConfig = Mapping[str, Mapping[str, str]]
"""Sections of a msgconv config file (`sensor0`, `place0`, `analytics0`), each with its keys."""


def read_converter_config(path: Path) -> ConverterConfig:
    """Read a config file of the original's message converter, in INI or YAML form.

    Raises:
        ConfigError: it cannot be read, or has another form.
    """
    document = read_document(read_bytes(path), path)
    config = {}
    for name, group in document.groups.items():
        for entry in group.entries:
            problem = entry.problem if is_utf8(entry.text) else "is not UTF-8"
            if problem not in (None, NO_VALUE):
                key = f"{name}: {entry.key}" if entry.key else name
                document.refuse(entry.line, f"{quoted(key)} {problem}.", "a text or a number")
        config[name.lower()] = {e.key.lower(): e.text.strip() for e in group.entries}
    report(path, document.problems)
    return config


def read_adaptor_config(path: Path) -> Mapping[str, str]:
    """Read `[message-broker]` of a config file of the original's protocol adaptors.

    Raises:
        ConfigError: it cannot be read, or has no such section.
    """
    entries = read_converter_config(path).get("message-broker")
    if entries is None:
        raise ConfigError("the section is missing", where=str(path), expected="[message-broker]")
    return entries


def section(config: ConverterConfig, name: str, number: int) -> Mapping[str, str] | None:
    """The enabled section of a name and number; None without it."""
    entries = config.get(f"{name}{number}")
    return None if entries is None or entries.get("enable", "1").strip() == "0" else entries


def numbers(text: str, names: str) -> dict[str, float]:
    """`lat;lon;alt` or `x;y;z` of a config file; 0 for parts that are absent or no number."""
    parts = text.split(";")
    coordinates = {}
    for index, name in enumerate(names.split()):
        try:
            value = float(parts[index])
        except (IndexError, ValueError):
            value = 0.0
        coordinates[name] = (
            value if abs(value) < float("inf") else 0.0
        )  # NaN and infinity are no JSON
    return coordinates


def sensor_object(config: ConverterConfig, number: int, source: str) -> dict[str, object]:
    """The `sensor` of the full schema; without a section its id is the source."""
    entries = section(config, "sensor", number) or {}
    return {
        "id": entries.get("id", source),
        "type": entries.get("type", ""),
        "description": entries.get("description", ""),
        "location": numbers(entries.get("location", ""), "lat lon alt"),
        "coordinate": numbers(entries.get("coordinate", ""), "x y z"),
    }


def analytics_object(config: ConverterConfig, number: int) -> dict[str, object] | None:
    """The `analyticsModule` of the full schema; None without a section."""
    entries = section(config, "analytics", number)
    if entries is None:
        return None
    return {key: entries.get(key, "") for key in ("id", "description", "source", "version")}


def place_object(
    config: ConverterConfig,
    number: int,
    name: str = "place-sub-field",
    fields: tuple[str, str, str] = ("id", "name", "level"),
) -> dict[str, object] | None:
    """The `place` of the full schema; None without a section.

    Args:
        config: the sections.
        number: of the section.
        name: of the part that holds the sub-fields; the original names it by the event's type.
        fields: names of the three sub-fields.
    """
    entries = section(config, "place", number)
    if entries is None:
        return None
    part: dict[str, object] = {
        key: entries.get(f"place-sub-field{i}", "") for i, key in enumerate(fields, 1)
    }
    return {
        "id": entries.get("id", ""),
        "name": entries.get("name", ""),
        "type": entries.get("type", ""),
        "location": numbers(entries.get("location", ""), "lat lon alt"),
        name: part | {"coordinate": numbers(entries.get("coordinate", ""), "x y z")},
    }

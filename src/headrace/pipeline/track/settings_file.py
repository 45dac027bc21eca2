"""YAML files that configure a tracker: scalars and lists, at most one group deep.

Also the config file of the original's tracker library (`ll-config-file`), as far as it maps: its
keys are found in whichever group they stand, since generations moved them. Facts: the comments of
the sample configs and the Gst-nvtracker manual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from headrace._core.errors import ConfigError
from headrace._core.files import os_errors
from headrace._core.findings import Finding
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
    with os_errors(ConfigError, "the file cannot be read", path), path.open("rb") as file:
        data = file.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise ConfigError("the file is larger than 1 MiB", where=str(path))
    try:
        return _entries(only_document(data), path)
    except MalformedError as error:
        raise ConfigError(str(error), where=f"{path}:{error.line}") from None


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


Read = Callable[[float], dict[str, object]]

_ACTS: Mapping[str, Read] = {
    "minDetectorConfidence": lambda v: {"min_confidence": max(v, -1.0)},
    "maxTargetsPerStream": lambda v: {"max_tracks": v},
    "minIouDiff4NewTarget": lambda v: {"max_new_iou": v},
    # "if the age exceeds this": the first detection is age 1
    "probationAge": lambda v: {"min_hits": v + 1},
    # "exceeds this limit", but on probation "reaches this threshold"
    "maxShadowTrackingAge": lambda v: {"max_age": v},
    "earlyTerminationAge": lambda v: {"max_probation_misses": max(v - 1, 0)},
    "checkClassMatch": lambda v: {"match_classes": bool(v)},
    "minMatchingScore4Iou": lambda v: {"min_iou": v},
    "stateEstimatorType": lambda v: {} if v else {"velocity_gain": 0.0},
    "associationMatcherType": lambda v: {},  # with the next
    "tentativeDetectorConfidence": lambda v: {"min_new_confidence": v},
}
_ALWAYS_SO = {
    "preserveStreamUpdateOrder",  # ids come in a fixed order anyway
    "useUniqueID",  # ids are unique over all sources and never used again
    "dataAssociatorType",
    "useBufferedOutput",
}
KEYS_ACTED_ON = tuple(_ACTS)


def settings_from(
    entries: Mapping[str, FileSetting], where: str
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Settings of the `iou` tracker, and one notice that names the keys without effect, if any.

    `entries` are by "group.key"; keys outside of groups have no "group.".
    """
    settings: dict[str, Any] = {}
    ignored, cascaded = [], False
    for path, entry in entries.items():
        name = path.rpartition(".")[2]
        if name in _ACTS:
            try:
                number = float(entry.value)
            except (TypeError, ValueError):
                raise ConfigError(
                    f"{name}: {entry.value!r} is not a number",
                    where=f"{where}:{entry.line}",
                    expected="a number",
                ) from None
            settings |= _ACTS[name](number)
            cascaded |= name == "associationMatcherType" and number == 1
        elif name not in _ALWAYS_SO:
            ignored.append(name)
    if not cascaded:  # only the cascaded matcher tells tentative detections apart
        settings.pop("min_new_confidence", None)
    notices = []
    if ignored:
        names = ", ".join(dict.fromkeys(ignored))
        notices.append(
            Finding(
                "tracker-settings",
                "warning",
                f"tracked by overlap and constant velocity; without effect: {names}",
                where,
            )
        )
    return settings, tuple(notices)

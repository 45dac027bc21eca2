"""From a tracker file of the original, or one of its samples by name, to values of the core."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.near import did_you_mean, nearest
from headrace.pipeline.track.original_keys import (
    OLD_SECTION,
    OriginalKey,
    find_key,
    original_keys,
)
from headrace.pipeline.track.settings_file import FileSetting

_PRESETS = Path(__file__).with_name("original_presets.toml")

SIDES = {1: 12, 2: 18, 3: 24, 4: 30, 5: 36}
"""Sides of the square of features by `featureImgSizeLevel`."""
_DEEPSORT_LOC, _DEEPSORT_VEL = 0.05, 0.00625  # Wojke 2017: 1/20 and 1/160 of the height


@cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """The samples by name: a line of `text`, and values by key."""
    return MappingProxyType(tomllib.loads(_PRESETS.read_text("utf-8")))


def preset_entries(name: str) -> dict[str, FileSetting]:
    """The keys of a sample."""
    values = presets()[name]
    return {key: FileSetting(value, 0) for key, value in values.items() if key != "text"}


@dataclass(frozen=True, slots=True)
class OriginalTracker:
    """The tracker that a file asks for.

    Attributes:
        name: `nviou`, `nvsort`, `nvdcf` or `nvdeepsort`: the modules that are switched on.
        values: by the column `to` of the keys' table, all of them.
        notices: what is not, or not quite, as the file asks.
        where: the file, for messages.
        given: those of `values` that the file states.
    """

    name: str
    values: Mapping[str, Any]
    notices: tuple[Finding, ...]
    where: str
    given: frozenset[str]


def read_original(
    entries: Mapping[str, FileSetting],
    where: str,
    overrides: Mapping[str, object] = MappingProxyType({}),
) -> OriginalTracker:
    """Read the keys of a file.

    Args:
        entries: by `section.key`, or key alone.
        where: the file, for messages.
        overrides: more keys, which win; one that does not exist is an error.

    Raises:
        ConfigError: a value that a key cannot have.
    """
    unknown = [path for path in entries if find_key(path) is None]
    for path in overrides:
        if find_key(path) is None:
            known = [key.name for key in original_keys().values()]
            raise ConfigError(
                f"no tracker of the original has the key {path!r}",
                where=where,
                expected="a key of the table in docs/tracking.md",
                fix=did_you_mean(nearest(path, known)),
            )
    old = any(path.startswith(f"{OLD_SECTION}.") for path in entries)
    values = _defaults(old)
    given: set[str] = set()
    no: list[str] = []
    every = {path: entry for path, entry in entries.items() if path not in unknown}
    every |= {path: FileSetting(value, 0) for path, value in overrides.items()}
    for path, entry in every.items():
        key = find_key(path)
        assert key is not None
        value = value_of(key, entry, where)
        if key.to:
            values[key.to] = value
            given.add(key.to)
        elif key.acts == "no" and not key.asks_for_nothing(value):
            no.append(key.name)
    name = _name(_settled(values, old))
    notices = _notices(no, unknown, where, name)
    return OriginalTracker(name, values, tuple(notices), where, frozenset(given))


def value_of(key: OriginalKey, entry: FileSetting, where: str) -> Any:
    """The value that a file gives to a key.

    Raises:
        ConfigError: the key cannot have it.
    """
    try:
        return key.read(entry.value)
    except (TypeError, ValueError, OverflowError):
        if not key.to:  # nothing acts on it, whatever its value
            return entry.value
        raise ConfigError(
            f"{key.name}={entry.value} is not possible",
            where=f"{where}:{entry.line}" if entry.line else where,
            expected=key.expected,
        ) from None


def _defaults(old: bool) -> dict[str, Any]:
    """Values of a file without keys: the later section wins, that of generation 5 if it is one."""
    values: dict[str, Any] = {
        "weight_age": 0.0,
        "min_size": 0,
        "duplicate_interval": 0,
        "duplicate_iou": 1.0,
        "global": False,
        "smoothing": True,
        "old_motion": 1,
        "smooth_loc": 0.5,
        "smooth_scale": 0.3,
        "smooth_vel": 0.05,
        "process_scale": 1.0,
        "measurement_scale": 1.0,
    }
    for key in original_keys().values():
        if key.to and (key.section != OLD_SECTION or old):
            values[key.to] = key.default
    if old:
        values |= {"visual": 1, "match_classes": True, "motion": 0}
    return values


def _settled(values: dict[str, Any], old: bool) -> dict[str, Any]:
    """Bring values into the forms of the core, in place."""
    values["side"] = SIDES[values["side"]]
    if values["global"]:
        values["matcher"] = 2
    if old:
        # 1 is a moving average, 2 a Kalman filter; the core numbers them 4 and 1
        motion = {0: 0, 1: 4, 2: 1}[values["old_motion"]]
        values["motion"] = motion if values["smoothing"] else 0
    for name, deviation in (("weight_loc", _DEEPSORT_LOC), ("weight_vel", _DEEPSORT_VEL)):
        if values[name] <= 0:
            values[name] = deviation
    if values["visual"] and not (values["colors"] or values["edges"]):
        values["colors"] = True
    values["history"] = history_of(values)
    return values


def history_of(values: Mapping[str, Any]) -> int:
    """Frames of its way that are kept of a target."""
    lost = values["probation"] + 2  # frames until it counts as lost, in which its way goes on
    return int(values["rejoin_prepared"] + lost) if values["rejoin"] else 0


def _name(values: Mapping[str, Any]) -> str:
    """The original's name for the modules that are on."""
    if values["visual"]:
        return "nvdcf"
    if values["reid"] in (1, 3):
        return "nvdeepsort"
    return "nvsort" if values["motion"] else "nviou"


def _notices(no: Collection[str], unknown: Iterable[str], where: str, name: str) -> list[Finding]:
    notices = []
    if without := ", ".join(dict.fromkeys(no)):
        text = f"without effect: {without}"
        if "segmenterType" in no and name in ("nviou", "nvsort"):
            text += f"; without its masks, MaskTracker runs as {name}, which follows boxes"
        notices.append(Finding("tracker-settings", "warning", text, where))
    if strange := ", ".join(dict.fromkeys(unknown)):
        text = f"no tracker of the original has: {strange}; nothing is done with them"
        notices.append(Finding("tracker-key-unknown", "warning", text, where))
    return notices

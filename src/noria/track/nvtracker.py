"""The config file of the original's tracker library (`ll-config-file`), as far as it maps.

Keys are found in whichever group they stand, since generations moved them. Facts: the comments of
the sample configs and the Gst-nvtracker manual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noria._core.errors import ConfigError
from noria._core.notices import Notice
from noria.track.settings_file import FileSetting

Read = Callable[[float], dict[str, Any]]

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
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """Settings of the `iou` tracker from the keys of a file.

    Args:
        entries: "group.key" -> value and line; keys outside of groups have no "group.".
        where: the file, for messages.

    Returns:
        The settings, and one notice that names the keys without effect, if there are any.

    Raises:
        ConfigError: a value that is no number.
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
            Notice(
                "warning",
                f"tracked by overlap and constant velocity; without effect: {names}",
                where,
            )
        )
    return settings, tuple(notices)

"""Settings of trackers: names, types and limits, checked with an error that helps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.near import did_you_mean, nearest

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a tracker.

    Attributes:
        name: as it is written.
        default: its default, whose type (bool, int, float, str) is the setting's; a tuple of int
            for a list of numbers.
        help: one line.
        low, high: limits of a number, both allowed.
    """

    name: str
    default: Any
    help: str = ""
    low: float = -math.inf
    high: float = math.inf


def settings_of(kind: type[Any]) -> tuple[Setting, ...]:
    """The settings that a dataclass declares by its fields (metadata `help`, `low`, `high`)."""
    return tuple(Setting(f.name, f.default, **f.metadata) for f in dataclasses.fields(kind))


def check_settings(
    values: Mapping[str, Any], allowed: Sequence[Setting], *, tracker: str, where: str
) -> dict[str, Any]:
    """Values of the right type and within their limits; texts are converted.

    `tracker` and `where` are for messages.
    """
    by_name = {setting.name: setting for setting in allowed}
    checked = {}
    for name, value in values.items():
        setting = by_name.get(name)
        if setting is None:
            raise ConfigError(
                f"the tracker {tracker} has no setting {name!r}",
                where=where,
                expected="one of " + ", ".join(by_name),
                fix=did_you_mean(nearest(name, by_name)),
            )
        checked[name] = _value(value, setting, where)
    return checked


def _value(value: object, setting: Setting, where: str) -> Any:
    default = setting.default
    try:
        if isinstance(default, tuple):
            return _numbers(value)
        if isinstance(default, bool):
            return _truth(value)
        if isinstance(default, str):
            return str(value)
        number = _number(value, whole=isinstance(default, int))
        if setting.low <= number <= setting.high:  # never true of NaN
            return number
    except (TypeError, ValueError, OverflowError):  # the last of inf as a whole number
        pass
    raise ConfigError(
        f"{setting.name}={value} is not possible", where=where, expected=_expected(setting)
    )


def _expected(setting: Setting) -> str:
    if isinstance(setting.default, tuple):
        return "numbers with ; between them, such as 0;2"
    if isinstance(setting.default, bool):
        return "true or false"
    kind = "a whole number" if isinstance(setting.default, int) else "a number"
    if setting.low > -math.inf and setting.high < 1e9:
        return f"{kind} from {setting.low:g} to {setting.high:g}"
    return f"{kind} of at least {setting.low:g}" if setting.low > -math.inf else kind


def _number(value: Any, *, whole: bool) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not whole:
        return number
    if number != int(number):
        raise ValueError
    return int(number)


def _truth(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise ValueError
    return text in _TRUE


def _numbers(value: object) -> tuple[int, ...]:
    if isinstance(value, str):
        value = [part for part in value.replace(":", ";").split(";") if part.strip()]
    elif not isinstance(value, Sequence):
        value = [value]
    return tuple(int(_number(part, whole=True)) for part in value)

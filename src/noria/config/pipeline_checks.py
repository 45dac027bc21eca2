"""Checks of pipeline specs, whoever makes them: values in range, texts that a file can hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from noria._core.text import quoted
from noria.config.key import Key
from noria.config.pipeline_keys import COLORS, SECTIONS, TOP_KEYS
from noria.config.uris import absolute_uri, uri_trouble
from noria.config.values import BadValueError, Kind

_SECTION_OF = {
    "SourceSpec": "sources",
    "ModelSpec": "models",
    "TrackerSpec": "tracker",
    "TilerSpec": "tiler",
    "OsdSpec": "osd",
    "SinkSpec": "sinks",
}
_TRACKER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_COLOR_KEY = Key(
    name="color",
    group="pipeline",
    kind=Kind.FLOATS,
    default=None,
    meaning="",
    counts=(4,),
    low=0,
    high=1,
)


def check_spec_field(spec: str, field: str, value: Any) -> Any:
    """A field's value as it is kept: paths absolute.

    Args:
        spec: name of the spec's type.
        field: name of the field.
        value: of the right type.

    Raises:
        ValueError: the value is outside what the key allows.
    """
    key = spec_key(spec, field)
    if key is None or value is None:
        return value
    name = key.name
    if name == "uri":
        trouble = uri_trouble(value)
        if trouble is None:
            try:
                return absolute_uri(value)
            except BadValueError as bad:
                trouble = bad.noun
    elif name in COLORS:
        trouble = next(filter(None, map(color_trouble, value, value.values())), None)
    elif name == "settings":
        trouble = next(filter(None, map(setting_trouble, value, value.values())), None)
    elif spec == "TrackerSpec" and name == "name":
        trouble = None if _TRACKER_NAME.fullmatch(value) else "the name of a tracker"
    else:
        texts = value if isinstance(value, tuple) else (value,)
        found = [text_trouble(str(t)) for t in texts if isinstance(t, str | Path)]
        trouble = next(filter(None, found), None) or key.trouble(value)
        if trouble is None and isinstance(value, Path) and str(value) != "-":
            return value.absolute()
    if trouble:
        raise ValueError(f"is not {trouble}")
    return value


def text_trouble(text: str) -> str | None:
    """Describe the fault of a name or path, to stand behind "is not"; else None."""
    return "a text: it is empty" if not text else uri_trouble(text)


def color_trouble(number: int, color: tuple[float, ...]) -> str | None:
    """Describe the fault of one colour of a class, to stand behind "is not"; else None."""
    if number < -1:
        return f"about a class: {number} is none"
    trouble = _COLOR_KEY.trouble(color)
    return trouble and f"{trouble}: a colour is r, g, b, a, each 0 to 1"


def setting_trouble(name: str, value: str) -> str | None:
    """Describe the fault of one setting of a tracker, to stand behind "is not"; else None."""
    if not _SETTING.fullmatch(name):
        return f"usable: {quoted(name)!r} is not the name of a setting"
    if not value or "," in value or value != value.strip():
        return f"usable: the value of {name} is empty, or holds a comma or outer blanks"
    return uri_trouble(value)


def spec_key(spec: str, field: str) -> Key | None:
    """Look up the key of a pipeline file that sets a field of a spec's type."""
    section = _SECTION_OF.get(spec)
    keys = SECTIONS[section].keys if section else TOP_KEYS
    return next((key for key in keys.values() if key.field == field), None)

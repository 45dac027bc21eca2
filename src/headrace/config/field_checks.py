"""Checks of values from files and programs: in range, and such that a file can hold them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.text import quoted
from headrace.config.class_attrs import ClassAttrs
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.config.paths import absolute_uri, uri_trouble
from headrace.config.pipeline_keys import COLORS, SECTIONS, TOP_KEYS
from headrace.config.values import BadValueError, Kind, is_utf8

if TYPE_CHECKING:
    from headrace.config.model_fields import ModelFields

KEY_OF_FIELD = {key.field: key for key in PROPERTY_KEYS.values() if key.field}
_CLASS_BY_FIELD = {key.field: key for key in CLASS_KEYS.values() if key.field}


def check_field(name: str, value: Any) -> Any:
    """A field's value as it is kept: paths absolute, nothing as None."""
    key = KEY_OF_FIELD.get(name)
    if key is None or value == key.default:
        return value
    if key.kind is Kind.PATH:
        value = Path(value).absolute()
    elif key.kind is Kind.PATHS:
        value = tuple(Path(item).absolute() for item in value)
    elif key.kind is Kind.STRING and not value:
        return None
    elif name == "infer_dims" and 0 in value:
        return None  # a zero counts as absent
    if value is not None:
        texts = value if isinstance(value, tuple) else (value,)
        if not all(is_utf8(str(text)) for text in texts if isinstance(text, str | Path)):
            raise ValueError("is not UTF-8 text")
        if trouble := key.trouble(value):
            raise ValueError(f"is not {trouble}")
    return value


def check_classes(cfg: ModelFields) -> None:
    """Per-class settings: in range, of an existing class, and such that a file can say them."""
    if not cfg.network_type.has_class_attrs and (cfg.classes or cfg.all_classes != ClassAttrs()):
        raise ValueError(f"network-type {cfg.network_type} has no per-class settings")
    _check_attrs("class-attrs-all", cfg.all_classes)
    for number, attrs in cfg.classes.items():
        group = f"class-attrs-{number}"
        if not 0 <= number < cfg.num_detected_classes:
            raise ValueError(f"{group}: num-detected-classes is {cfg.num_detected_classes}")
        _check_attrs(group, attrs)
        # what nothing can be written for, a class cannot take back from class-attrs-all
        if attrs.topk < 0 <= cfg.all_classes.topk or (
            attrs.bg_color is None and cfg.all_classes.bg_color is not None
        ):
            raise ValueError(f"{group}: topk or bg-color of class-attrs-all cannot be taken back")


def _check_attrs(group: str, attrs: ClassAttrs) -> None:
    for item in fields(attrs):
        key, value = _CLASS_BY_FIELD[item.name], getattr(attrs, item.name)
        if value != key.default and (trouble := key.trouble(value)):
            raise ValueError(f"{group}: {key.name}={value} is not {trouble}")


TRACKER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_COLOR_KEY = SECTIONS["osd"].keys["text-color"]


def check_spec_field(section: str, field: str, value: Any) -> Any:
    """A field's value as it is kept: paths absolute."""
    key = spec_key(section, field)
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
    elif section == "tracker" and name == "name":
        trouble = None if TRACKER_NAME.fullmatch(value) else "the name of a tracker"
    else:
        texts = value if isinstance(value, tuple) else (value,)
        troubles = [text_trouble(str(t)) for t in texts if isinstance(t, str | Path)]
        trouble = next(filter(None, troubles), None) or key.trouble(value)
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


def spec_key(section: str, field: str) -> Key | None:
    """Look up the key of a pipeline file that sets a field; `section` is empty at its top."""
    keys = SECTIONS[section].keys if section else TOP_KEYS
    return next((key for key in keys.values() if key.field == field), None)

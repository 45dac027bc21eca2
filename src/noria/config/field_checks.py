"""Checks of values that do not come from a file: constructor arguments and overrides."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria.config.class_attrs import ClassAttrs
from noria.config.key import Key
from noria.config.keys import CLASS_KEYS, PROPERTY_KEYS
from noria.config.values import Kind

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

KEY_OF_FIELD = {key.field: key for key in PROPERTY_KEYS.values() if key.field}
_CLASS_BY_FIELD = {key.field: key for key in CLASS_KEYS.values() if key.field}


def check_field(name: str, value: Any) -> Any:
    """A field's value as it is kept: paths absolute, nothing as None.

    Raises:
        ValueError: the value is outside what the key allows.
    """
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
    _refuse_trouble(key, value)
    return value


def _refuse_trouble(key: Key, value: Any) -> None:
    if value is None:
        return
    texts = value if isinstance(value, tuple) else (value,)
    for text in texts:
        if isinstance(text, str | Path) and not _is_utf8(str(text)):
            raise ValueError("is not UTF-8 text")
    trouble = key.trouble(value)
    if trouble:
        raise ValueError(f"is not {trouble}")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_classes(cfg: ModelConfig) -> None:
    """Per-class settings: in range, of an existing class, and such that a file can say them.

    Raises:
        ValueError: one of them is not.
    """
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

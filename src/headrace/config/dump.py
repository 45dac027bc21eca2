"""Writing a `ModelConfig` as a config file that reads back to the same values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from headrace._core.errors import ConfigError
from headrace.config.class_attrs import ClassAttrs
from headrace.config.enums import NamedValue
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.config.model_files import darknet_cfg
from headrace.config.values import Kind

if TYPE_CHECKING:
    from headrace.config.model_fields import ModelFields

Form = Literal["ini", "yaml"]


def dump(cfg: ModelFields, form: Form) -> str:
    """The config file text: everything that was set or differs from its default; paths absolute."""
    lines: list[str] = []
    for name, pairs in _groups(cfg):
        if form == "ini":
            lines += [f"[{name}]", *(f"{k.name}={value_text(k, v, form)}" for k, v in pairs), ""]
        else:
            body = [f"  {k.name}: {value_text(k, v, form)}" for k, v in pairs]
            lines += [f"{name}:" if body else f"{name}: {{}}", *body]
    return "\n".join(lines) + ("" if form == "ini" else "\n")


def _groups(cfg: ModelFields) -> Iterator[tuple[str, list[tuple[Key, Any]]]]:
    """Groups with the keys worth writing."""
    pairs = []
    for key in PROPERTY_KEYS.values():
        if key.field is None:
            continue
        value = getattr(cfg, key.field)
        written = cfg.origin(key.field).kind != "default"
        if value is not None and value != () and (written or value != key.default):
            pairs.append((key, value))
    yield "property", pairs
    if cfg.all_classes != ClassAttrs():
        yield "class-attrs-all", _class_pairs(cfg.all_classes, ClassAttrs())
    for number, attrs in sorted(cfg.classes.items()):
        yield f"class-attrs-{number}", _class_pairs(attrs, cfg.all_classes)


def _class_pairs(attrs: ClassAttrs, base: ClassAttrs) -> list[tuple[Key, Any]]:
    fields = [(key, key.field) for key in CLASS_KEYS.values() if key.field]
    return [(k, getattr(attrs, f)) for k, f in fields if getattr(attrs, f) != getattr(base, f)]


def effective(cfg: ModelFields) -> Iterator[tuple[str, str, str, str]]:
    """(group, key, text, origin) of every value in use; classes without own group are left out."""
    for key in PROPERTY_KEYS.values():
        if key.field:
            value = getattr(cfg, key.field)
            if key.field == "custom_network_config" and value:
                file = darknet_cfg(cfg)
                value = file if os.path.isfile(file) else value  # a library's text, or a path
            yield "property", key.name, value_text(key, value, "show"), str(cfg.origin(key.field))
    if not cfg.network_type.has_class_attrs:
        return
    for number in (None, *sorted(cfg.classes)):
        attrs = cfg.all_classes if number is None else cfg.classes[number]
        group = "class-attrs-all" if number is None else f"class-attrs-{number}"
        for key in CLASS_KEYS.values():
            if key.field:
                # -1 asks for the settings that all classes share
                origin = cfg.origin(key.field, class_id=-1 if number is None else number)
                value = getattr(attrs, key.field)
                yield group, key.name, value_text(key, value, "show"), str(origin)


def value_text(key: Key, value: Any, form: Literal["ini", "yaml", "show"]) -> str:
    """One value as a file of this form writes it; `show` is INI that never fails."""
    if value is None:
        return ""
    if key.kind in (Kind.STRING, Kind.PATH):
        return yaml_text(str(value)) if form == "yaml" else ini_text(str(value))
    if key.kind in (Kind.STRINGS, Kind.PATHS):
        return _texts(key, [str(item) for item in value], form)
    if isinstance(value, tuple):
        return ";".join(_number(item) for item in value)
    if key.kind is Kind.PERCENT and value == int(value):
        return str(int(value))
    if key.kind is Kind.PERCENT and form == "ini":
        raise _unwritable(key, f"{value}", "INI", "integers only; dump it as YAML")
    if form == "show" and isinstance(value, NamedValue):
        return str(value)
    return _number(value)


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


def _texts(key: Key, items: list[str], form: str) -> str:
    if form == "yaml":
        if any(";" in item for item in items):
            raise _unwritable(key, ";".join(items), "YAML", "items without semicolons")
        return yaml_text(";".join(items))
    # the closing semicolon keeps an empty last item
    return "".join(ini_text(item).replace(";", "\\;") + ";" for item in items)


def ini_text(text: str) -> str:
    """A text as INI writes it, with its escapes."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    escaped = escaped.replace("\r", "\\r")
    if escaped.startswith(" "):
        escaped = "\\s" + escaped[1:]
    return escaped[:-1] + "\\s" if escaped.endswith(" ") else escaped


def yaml_text(text: str) -> str:
    """Any text as a quoted YAML scalar."""
    escaped = re.sub(r'["\\]', r"\\\g<0>", text)
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def _unwritable(key: Key, text: str, form: str, expected: str) -> ConfigError:
    return ConfigError(f"{text!r} cannot be written in {form}.", where=key.name, expected=expected)

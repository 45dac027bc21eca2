"""Writing a `PipelineSpec` as a Noria pipeline file that reads back to the same spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria.config.dump import yaml_text
from noria.config.enums import ProcessMode
from noria.config.pipeline_keys import COLORS, SECTIONS, TOP_KEYS, Section

if TYPE_CHECKING:
    from noria.config.pipeline_spec import PipelineSpec


def dump_pipeline(spec: PipelineSpec) -> str:
    """Return the file's text: values that are no defaults, with absolute paths."""
    lines: list[str] = []
    for section in SECTIONS.values():
        value = getattr(spec, section.name)
        if section.many and value:
            lines.append(f"{section.name}:")
            for item in value:
                body = list(_pairs(section, item))
                lines += [f"  - {body[0]}", *(f"    {line}" for line in body[1:])]
        elif not section.many and value is not None:
            body = list(_pairs(section, value))
            if body:
                lines += [f"{section.name}:", *(f"  {line}" for line in body)]
            elif section.name != "osd":
                lines.append(f"{section.name}: {{}}")
    for key in TOP_KEYS.values():
        value = getattr(spec, key.field or "")
        if value != key.default:
            lines.append(f"{key.name}: {_value(value)}")
    return "\n".join(lines) + "\n"


def _pairs(section: Section, item: Any) -> Iterator[str]:
    """`key: value` of what differs from the defaults, the required key in any case."""
    for key in section.keys.values():
        value = getattr(item, key.field or "")
        default = item.FIELDS[key.field or ""]
        if value == default and key.name != section.required:
            continue
        if key.name in COLORS:
            pairs = (f"{'all' if n < 0 else n}: {_value(color)}" for n, color in value.items())
            yield f"{key.name}: {{{', '.join(pairs)}}}"
        elif isinstance(value, Mapping):
            pairs = (f"{yaml_text(name)}: {yaml_text(text)}" for name, text in value.items())
            yield f"{key.name}: {{{', '.join(pairs)}}}"
        else:
            yield f"{key.name}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ProcessMode):
        return value.name.lower()
    if isinstance(value, str | Path):
        return yaml_text(str(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)

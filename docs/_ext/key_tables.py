"""Entries of keys in docs/configuration.md and docs/pipeline-files.md."""

from __future__ import annotations

from headrace.config.enums import NetworkType
from headrace.config.key import Key
from headrace.config.keys import CLASS_ROWS, PROPERTY_ROWS
from headrace.config.pipeline_keys import COLORS, SECTIONS, TOP_KEYS
from headrace.config.values import Kind

_BEGIN = "<!-- keys: written by make schema -->"
_END = "<!-- keys end -->"


def rewritten(page: str, tables: str) -> str:
    """Return a page with `tables` between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    head, found, rest = page.partition(_BEGIN)
    _, closed, tail = rest.partition(_END)
    if not (found and closed):
        raise ValueError(f"no {_BEGIN} ... {_END} in the page")
    return f"{head}{_BEGIN}\n\n{tables}\n\n{_END}{tail}"


def _model_entries(group: str) -> str:
    """Return one entry for each key of a group: a table of its columns is wider than a page."""
    keys = PROPERTY_ROWS if group == "property" else CLASS_ROWS
    return "\n\n".join(_entry(key) for key in keys)


def _entry(key: Key) -> str:
    kind = "choice" if key.enum or key.choices else key.kind.value
    values = key.expected().removeprefix("one of ")
    plain = {kind, f"a {kind}", f"an {kind}", "0 or 1"}
    lines = [f"```{{confval}} {key.name}", f":type: {kind if values in plain else values}"]
    if default := _default_text(key):
        lines.append(f":default: {default}")
    return "\n".join([*lines, "", _sentence(key.meaning), *_limits(key), "```"])


def _sentence(text: str) -> str:
    text = text.replace("\n", " ").replace("*", "\\*")
    return text[0].upper() + text[1:] + "."


def _limits(key: Key) -> list[str]:
    """Return a line on where a key counts, and one on what Headrace does not do with it."""
    limits = []
    if key.extension:
        limits.append("Headrace's own key")
    elif key.since != "4.0.1":
        limits.append(f"since {key.since}")
    if key.until:
        limits.append(f"until {key.until}")
    if not key.in_yaml:
        limits.append("INI only")
    limits += [NetworkType(t).name.lower().replace("_", " ") for t in key.types]
    limits += [f"{key.mode} models"] if key.mode else []
    if key.legacy:
        does = "converted" if key.acts else "reported"
    else:
        does = "" if key.acts else "not applicable" if key.reason else "not yet"
    if key.acts_for:
        does = f"acts on {', '.join(map(str, key.acts_for))}"
    limits += [f"**{does}**"] if does else []
    return [f"({', '.join(limits)})"] if limits else []


def _default_text(key: Key) -> str:
    if key.default is None or key.default == ():
        return ""
    if isinstance(key.default, tuple):
        return ";".join(f"{item:g}" for item in key.default)
    if isinstance(key.default, float):
        return f"{key.default:g}"
    return str(int(key.default)) if isinstance(key.default, int) else str(key.default)


def model_tables() -> str:
    """Return the entries of docs/configuration.md: `[property]` and `[class-attrs-*]`."""
    sections = (
        ("`[property]`", "property"),
        ("`[class-attrs-all]`, `[class-attrs-<n>]`", "class-attrs"),
    )
    return "\n\n".join(f"### {title}\n\n{_model_entries(group)}" for title, group in sections)


def pipeline_tables() -> str:
    """Return the tables of docs/pipeline-files.md, one for each section."""
    parts = []
    for section in SECTIONS.values():
        kind = "list" if section.many else "one"
        lines = [f"### `{section.name}`", "", f"Short form: {section.short_says} ({kind}).", ""]
        lines += ["| Key | Values | Default | Meaning |", "|---|---|---|---|"]
        lines += [
            _pipeline_row(key, required=key.name == section.required)
            for key in section.keys.values()
        ]
        parts.append("\n".join(lines))
    lines = ["### Batches", "", "| Key | Values | Default | Meaning |", "|---|---|---|---|"]
    parts.append("\n".join([*lines, *(_pipeline_row(key) for key in TOP_KEYS.values())]))
    return "\n\n".join(parts)


def _pipeline_row(key: Key, *, required: bool = False) -> str:
    values = key.expected().removeprefix("one of ")
    if key.name in COLORS or key.kind is Kind.FLOATS:
        values = "r, g, b, a, each 0 to 1"
    elif key.name == "settings":
        values = "a mapping"
    elif key.kind is Kind.FLAG:
        values = "true or false"
    elif key.enum is not None:
        values = ", ".join(member.name.lower() for member in key.enum)
    elif key.kind in (Kind.STRING, Kind.PATH) and not key.choices:
        values = "a text" if key.kind is Kind.STRING else "a path"
    elif key.kind is Kind.INTS:
        values = "a list of integers"
    default = "" if key.default is None or key.default == () else str(key.default).lower()
    if key.group != "pipeline":
        default = ""  # the model's own file has the default
    default = "required" if required else default
    return f"| `{key.name}` | {values} | {default} | {key.meaning} |".replace("\n", " ")

"""Tables of keys in docs/configuration.md and docs/pipeline-files.md."""

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


def _model_table(group: str) -> str:
    """Return the keys of one group as a Markdown table."""
    lines = [
        "| Key | Type | Default | Values | Since | Used by | Headrace | Meaning |",
        "|---" * 8 + "|",
    ]
    for key in PROPERTY_ROWS if group == "property" else CLASS_ROWS:
        since = "Headrace" if key.extension else "all" if key.since == "4.0.1" else key.since
        since += f", until {key.until}" if key.until else ""
        since += "" if key.in_yaml else ", INI only"
        used = ", ".join(NetworkType(t).name.lower().replace("_", " ") for t in key.types) or "all"
        used += f", {key.mode}" if key.mode else ""
        if key.legacy:
            does = "converted" if key.acts else "reported"
        else:
            does = "acts" if key.acts else "not applicable" if key.reason else "not yet"
        if key.acts_for:
            does = f"acts on {', '.join(map(str, key.acts_for))}"
        values = key.expected().removeprefix("one of ")
        kind = "choice" if key.enum or key.choices else key.kind.value
        cells = [f"`{key.name}`", kind, _default_text(key), values, since, used, does]
        lines.append("| " + " | ".join([*cells, key.meaning]).replace("\n", " ") + " |")
    return "\n".join(lines)


def _default_text(key: Key) -> str:
    if key.default is None or key.default == ():
        return ""
    if isinstance(key.default, tuple):
        return ";".join(f"{item:g}" for item in key.default)
    if isinstance(key.default, float):
        return f"{key.default:g}"
    return str(int(key.default)) if isinstance(key.default, int) else str(key.default)


def model_tables() -> str:
    """Return the tables of docs/configuration.md: keys of `[property]` and of `[class-attrs-*]`."""
    sections = (
        ("`[property]`", "property"),
        ("`[class-attrs-all]`, `[class-attrs-<n>]`", "class-attrs"),
    )
    return "\n\n".join(f"### {title}\n\n{_model_table(group)}" for title, group in sections)


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

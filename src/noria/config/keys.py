"""Finding keys: by name, the one that was meant, and all of them as a table for people.

The rows are in `key_table.py`. `python -m noria.config.keys docs/configuration.md` brings the
tables of the documentation up to date; without a file it prints them.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from noria.config.enums import NetworkType
from noria.config.key import Key
from noria.config.key_table import CLASS_ROWS, PROPERTY_ROWS
from noria.config.pages import between, bring_up_to_date

PROPERTY_KEYS: dict[str, Key] = {key.name: key for key in PROPERTY_ROWS}
CLASS_KEYS: dict[str, Key] = {key.name: key for key in CLASS_ROWS}
KEYS: tuple[Key, ...] = (*PROPERTY_ROWS, *CLASS_ROWS)

_BEGIN = "<!-- keys: written by python -m noria.config.keys docs/configuration.md -->"
_END = "<!-- keys end -->"

# Names people write for something else; seen in samples and in users' files.
_MEANT = {
    "gie-mode": "process-mode",
    "netword-mode": "network-mode",
    "clustor-mode": "cluster-mode",
    "min-boxes": "minBoxes",
    "iou-threshold": "nms-iou-threshold",
    "nms-threshold": "nms-iou-threshold",
    "confidence-threshold": "pre-cluster-threshold",
    "conf-threshold": "pre-cluster-threshold",
    "score-threshold": "pre-cluster-threshold",
    "unique-id": "gie-unique-id",
    "infer-on-gie-id": "operate-on-gie-id",
    "infer-on-class-ids": "operate-on-class-ids",
    "input-tensor-meta": "input-tensor-from-meta",
    "num-classes": "num-detected-classes",
    "label-file": "labelfile-path",
    "label-file-path": "labelfile-path",
    "clip-object-outside-roi": "",
}
_NOT_OURS = {
    "config-file": "a key of the application's own file, not of this one",
    "config-file-path": "an element property, not a key",
    "clip-object-outside-roi": "an element property without a key",
    "parse-func": "a key of generation 3 and before; nothing reads it since: "
    "name a function with parse-bbox-func-name",
}
_PROPERTIES = {"unique-id", "infer-on-gie-id", "infer-on-class-ids", "input-tensor-meta"}


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The one of `names` that looks most like `name`, if any does, whatever the case and dashes."""
    plain = {_plain(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(_plain(name[:64]), plain, n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "").lstrip(";")


def suggestion(name: str, group: str) -> str:
    """What to do about a key that its group does not know, as an end of sentence; empty if unknown.

    Args:
        name: the unknown key.
        group: `property` or `class-attrs`, where it was found.
    """
    here, there = (
        (PROPERTY_KEYS, CLASS_KEYS) if group == "property" else (CLASS_KEYS, PROPERTY_KEYS)
    )
    other = "[class-attrs-all] or [class-attrs-<n>]" if group == "property" else "[property]"
    if name in there:
        return f"it belongs into {other}"
    plain = _plain(name)
    if plain in _NOT_OURS:
        return f"it is {_NOT_OURS[plain]}"
    if name.startswith(";"):
        return "comments start with #"
    meant = _MEANT.get(plain)
    kind = "it is the name of the element property; " if plain in _PROPERTIES else ""
    if meant is None:
        usable = [k.name for k in here.values() if not k.legacy]
        meant = nearest(name, usable) or nearest(
            name, [k.name for k in there.values() if not k.legacy]
        )
    if not meant:
        return ""
    place = "" if meant in here else f" in {other}"
    return f"{kind}did you mean {meant}{place}?"


def markdown_table(group: str) -> str:
    """The keys of one group as a Markdown table."""
    lines = [
        "| Key | Type | Default | Values | Since | Used by | Noria | Meaning |",
        "|---" * 8 + "|",
    ]
    for key in PROPERTY_ROWS if group == "property" else CLASS_ROWS:
        since = "Noria" if key.extension else "all" if key.since == "4.0.1" else key.since
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


def generated() -> str:
    """Both tables as they stand between the marks of docs/configuration.md."""
    sections = (
        ("`[property]`", "property"),
        ("`[class-attrs-all]`, `[class-attrs-<n>]`", "class-attrs"),
    )
    return "\n\n".join(f"### {title}\n\n{markdown_table(group)}" for title, group in sections)


def rewritten(page: str) -> str:
    """A documentation page with the tables between its marks brought up to date.

    Raises:
        ValueError: the page has no marks.
    """
    return between(page, _BEGIN, _END, generated())


def main(arguments: Sequence[str]) -> None:
    """Print the tables, or bring them up to date in the page that is named."""
    if not arguments:
        print(generated())
    bring_up_to_date(arguments, _BEGIN, _END, generated())


if __name__ == "__main__":
    main(sys.argv[1:])

"""Find keys by name, and the key that a wrong name probably means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from noria.config.key import Key
from noria.config.key_table import CLASS_ROWS, PROPERTY_ROWS

PROPERTY_KEYS: dict[str, Key] = {key.name: key for key in PROPERTY_ROWS}
CLASS_KEYS: dict[str, Key] = {key.name: key for key in CLASS_ROWS}
KEYS: tuple[Key, ...] = (*PROPERTY_ROWS, *CLASS_ROWS)

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
    """Return the advice about a key that its group does not know, as an end of sentence, or "".

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

"""The group `tracker` of a deepstream-app config: which tracker it asks for."""

from __future__ import annotations

import re
from pathlib import Path

from headrace._core.text import quoted
from headrace.config.app import reasons as why
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.library_sources import build_command
from headrace.config.origin import Origin
from headrace.config.paths import resolve
from headrace.config.pipeline_yaml import Item
from headrace.config.values import BadValueError, Values

_ORIGINAL = re.compile(r"libnvds_(nvmultiobjecttracker|nvdcf|mot_klt|mot_iou|tracker)\w*\.so")
_SAMPLE = re.compile(
    r"config_tracker_(IOU|NvSORT|NvDCF_(?:max_perf|perf|accuracy)|NvDeepSORT)", re.IGNORECASE
)
_SIZE = ("tracker-width", "tracker-height")


def is_original_library(library: str) -> bool:
    """Tell whether `ll-lib-file` names a tracker library of the original: its files run as written.

    Any other is one of the user, which the tracker `nvmot` calls.
    """
    return _ORIGINAL.fullmatch(library.rpartition("/")[2]) is not None


def sample_tracker(path: Path) -> str:
    """Name of the tracker with the values of the original's sample file; `iou` of other files.

    A config names the sample by its place in an installation, which other machines lack.

    Args:
        path: as the config names it; it need not be there.
    """
    sample = _SAMPLE.fullmatch(path.stem)
    name = sample[1].lower().replace("_", "-") if sample else "iou"
    return "nviou" if sample and name == "iou" else name


def tracker_item(section: FoundGroup, reader: AppReader) -> Item:
    """The tracker that a group asks for, and where each of its values stands."""
    document = reader.document
    values: Values = {"name": "iou"}
    origins: dict[str, Origin] = {"name": section.origin("enable")}
    library = section.get("ll-lib-file")
    config = section.get("ll-config-file")
    own = None
    if library and not is_original_library(library):
        own = _resolved(library, "ll-lib-file", section, reader)
        if own is not None and not own.is_file():
            text = f"there is no file {quoted(str(own), limit=None)}: "
            text += "the built-in tracker iou tracks in its place"
            if (command := build_command(own)) is not None:
                text += f"; compile it from the sources beside it: {command}"
            document.remark(section.line("ll-lib-file"), text, code="tracker-library")
            own = None
    path = None
    if config:
        names = [name for name in config.split(";") if name.strip()]
        if len(names) > 1:
            text = f"only the first of {len(names)} tracker files is used"
            document.remark(section.line("ll-config-file"), text)
        if names:
            path = _resolved(names[0], "ll-config-file", section, reader)
    if own is not None:
        settings = {"library": str(own)} | ({} if path is None else {"config": str(path)})
        for key in _SIZE:
            if key in section.values:
                settings[key.replace("-", "_")] = str(section.values[key])
        values = {"name": "nvmot", "settings": settings}
        origins = dict.fromkeys(values, section.origin("ll-lib-file"))
    else:
        _own_size(section, reader)
        if path is not None and path.is_file():
            values, origins = {"config": path}, {"config": section.origin("ll-config-file")}
        elif path is not None:
            values["name"] = sample_tracker(path)
            origins = {"name": section.origin("ll-config-file")}
            document.remark(
                section.line("ll-config-file"),
                f"there is no file {quoted(str(path), limit=None)}: "
                f"the built-in tracker {values['name']} tracks in its place, with its own values",
                code="missing-file",
            )
    if "operate-on-class-ids" in section.values:
        values["operate_on_class_ids"] = section.values["operate-on-class-ids"]
        origins["operate_on_class_ids"] = section.origin("operate-on-class-ids")
    return values, origins


def _own_size(section: FoundGroup, reader: AppReader) -> None:
    """Name the keys that only a library of the user asks for."""
    for key in _SIZE:
        if key in section.values:
            reader.unused.setdefault(("", why.OWN_SIZE), []).append((section.line(key), key))


def _resolved(text: str, key: str, section: FoundGroup, reader: AppReader) -> Path | None:
    try:
        return resolve(text, reader.document.path)
    except BadValueError as bad:
        reader.document.refuse(section.line(key), f"{key} is not {bad.noun}.", bad.expected)
        return None

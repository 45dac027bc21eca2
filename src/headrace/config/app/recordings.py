"""Smart record, its messages and `[img-save]` of deepstream-app configs, as parts of pipelines."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

from headrace._core.text import quoted
from headrace.config.app.messages import LeftOut, consumer_url
from headrace.config.app.reader import FoundGroup
from headrace.config.document import Document, Group
from headrace.config.pipeline_yaml import Item
from headrace.config.values import Values

_CACHE_S, _START_S, _LENGTH_S, _INTERVAL_S = 30, 1, 10, 10  # what the original uses for 0
_LONGEST_S = 300
_CONTAINERS = ("mp4", "mkv")
_RTSP = 4  # type of source
_TIMER = 2


def recordings(
    recorded: list[tuple[FoundGroup, Item, int]], sources: list[Item], *, consumed: bool
) -> list[Item]:
    """Make an output for each source that is to be recorded.

    Args:
        recorded: groups with `smart-record`, the source of each, and the number of its camera.
        sources: all sources, in their order.
        consumed: messages come in.
    """
    items: list[Item] = []
    for section, source, camera in recorded:
        document, line = section.document, section.line("smart-record")
        if section.get("type") != _RTSP:
            text = "smart-record is for sources of type=4 (RTSP) alone, as in the original"
            document.remark(line, text, code="element-left-out")
            continue
        number = section.get("smart-record")
        timer = number == _TIMER  # all others wait for messages
        if not timer and not consumed:
            text = (
                f"smart-record={number} waits for messages, and there is no [message-consumerN]: "
            )
            text += "Pipeline.record_clip starts a recording"
            document.remark(line, text, code="key-approximated")
        index = next(i for i, item in enumerate(sources) if item is source)
        values = {"kind": "smart-record", "path": _path(section, camera, timer), "source": index}
        items.append((values, dict.fromkeys(values, section.origin("smart-record"))))
    return items


def _path(section: FoundGroup, camera: int, timer: bool) -> Path:
    def seconds(key: str, default: int) -> int:
        return int(section.get(f"smart-rec-{key}") or default)

    default_s = seconds("default-duration", _LENGTH_S)
    length_s = seconds("duration", default_s)
    if not timer or length_s >= _LONGEST_S:
        length_s = default_s
    cache_s = seconds("cache", seconds("video-cache", _CACHE_S))
    options: Values = {
        "prefix": section.get("smart-rec-file-prefix") or "Smart_Record",
        "camera": camera,
        "container": _CONTAINERS[section.get("smart-rec-container", 0)],
        "before": min(seconds("start-time", _START_S), cache_s),
        "after": min(length_s, _LONGEST_S),
        "cache": min(cache_s, 600),
    }
    if timer:
        options["interval"] = seconds("interval", _INTERVAL_S)
    folder: Path = section.get("smart-rec-dir-path") or Path.cwd()
    return folder.with_name(f"{folder.name}?{urlencode(options, quote_via=quote)}")


def consumers(sections: list[tuple[FoundGroup, Group]], document: Document) -> list[Item]:
    """Make a consumer of each group; one that has no broker is left out, with a remark."""
    items: list[Item] = []
    for section, group in sections:
        url, name = consumer_url(section), quoted(group.name)
        if isinstance(url, LeftOut):
            text = f"[{name}] is left out: {url.cause}; {url.way}"
            document.remark(group.line, text, code="element-left-out", data={"element": name})
            continue
        values: Values = {"uri": url}
        origins = {"uri": section.origin("conn-str")}
        for field, key in (("adaptor", "config-file"), ("sensors", "sensor-list-file")):
            if key in section.values:
                values[field], origins[field] = section.values[key], section.origin(key)
        items.append((values, origins))
    return items


_IMAGE_OPTIONS = {
    "save-img-full-frame": "full", "save-img-cropped-obj": "crops",
    "second-to-skip-interval": "every", "frame-to-skip-rules-path": "rules",
    "min-confidence": "sure", "max-confidence": "surest", "min-box-width": "width",
    "min-box-height": "height",
}  # fmt: skip


def saved_images(section: FoundGroup, line: int) -> Item | None:
    """Make the output of `[img-save]`; None leaves it out, with a remark.

    Paths are relative to the working directory, as in the original.
    """
    folder, document = section.get("output-folder-path"), section.document
    if not folder:
        text = "[img-save] is left out: it has no output-folder-path"
        document.remark(line, text, code="element-left-out", data={"element": "img-save"})
        return None
    options: Values = {}
    for key, option in _IMAGE_OPTIONS.items():
        value = section.get(key)
        if value is not None:
            options[option] = int(value) if isinstance(value, bool) else value
    path = Path(folder)
    if options:
        query = urlencode(options, quote_via=quote, safe="")
        path = path.with_name(f"{path.name}?{query}")
    values: Values = {"kind": "object-images", "path": path}
    return values, dict.fromkeys(values, section.origin("output-folder-path"))

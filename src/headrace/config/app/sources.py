"""The sources of a deepstream-app config: `[sourceN]`, `[source-list]`, and a CSV file."""

from __future__ import annotations

import re
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.text import quoted
from headrace.config.app.keys import (
    MOST_SURFACES,
    REST_SOURCE_KEYS,
    SOURCE_KEYS,
    AppGroup,
    group_of,
)
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.app.releases import LISTS_AGREE_SINCE, is_before
from headrace.config.document import Document, Entry, Group
from headrace.config.origin import Origin
from headrace.config.paths import absolute_uri, uri_trouble
from headrace.config.pipeline_keys import MAX_ITEMS, SOURCE
from headrace.config.pipeline_yaml import Item
from headrace.config.reading import read_bytes
from headrace.config.values import BadValueError, Values

_TYPES = {1: "a V4L2 camera", 2: "a URI", 3: "several URIs", 4: "RTSP"}
_OTHER_TYPES = {
    5: "CSI cameras of Jetson boards cannot be opened",
    6: "there is no audio",
    7: "there is no audio",
    8: "there is no audio",
}
_URIS = "file://..., rtsp://... or a path"
_LAST_NUMBER = re.compile(r"([0-9]{1,6})$")
_TCP = 4  # of RTSP's transports; 7 is every one, others have no effect
# GStreamer's names of pixel formats, FFmpeg's
_FORMATS = {
    "NV12": "nv12", "NV21": "nv21", "I420": "yuv420p", "YUY2": "yuyv422", "UYVY": "uyvy422",
    "YVYU": "yvyu422", "RGB": "rgb24", "BGR": "bgr24", "RGBA": "rgba", "BGRA": "bgra",
    "RGBx": "rgb0", "BGRx": "bgr0", "GRAY8": "gray", "GRAY16_LE": "gray16le",
}  # fmt: skip
_NUMBER = re.compile(r"%(0[0-9]{1,2})?[diu]")
_CAMERA_URI = re.compile(r"(usb|csi):([0-9]{1,4})")


class AppSources:
    """Collects the sources in the order of their numbers in the pipeline."""

    def __init__(self, reader: AppReader) -> None:
        self.reader = reader
        self.items: list[Item] = []
        self.copies: list[Item] = []  # further copies of a source come behind all others
        self.listed: list[FoundGroup] | None = None
        self.left_out: list[str] = []  # why, in words
        self.recorded: list[tuple[FoundGroup, Item, int]] = []  # with the number of the camera
        self.rest = False  # the original's element that is controlled by REST gives the sources
        self._told: set[str] = set()

    def group(self, kind: AppGroup, group: Group) -> None:
        """A `[sourceN]` group."""
        number = int(group.name.removeprefix("source")[:9])
        if self.listed is not None:
            self._over_list(kind, group, number)
            return
        section = self.reader.read(kind, group)
        if section is None:
            self.left_out.append(f"[{quoted(group.name)}] is off (line {group.line})")
        else:
            self._add(section, group.line)

    def csv(self, path: Path, line: int) -> None:
        """Read the rows of a CSV file with the keys in its header."""
        document = self.reader.document
        try:
            data = read_bytes(path, "CSV file")
            text = data.decode("utf-8")
        except ConfigError as error:
            about = error.finding.changed(prefix="csv-file-path: ", where=document.where(line))
            document.problems.append(ConfigError(about))
            return
        except UnicodeDecodeError:
            document.refuse(line, "csv-file-path: the file is not UTF-8 text.", "a CSV file")
            return
        table = Document(path, "ini")
        reader = AppReader(table, self.reader.base)
        rows = [
            (number, [cell.strip() for cell in row.split(",")])
            for number, row in enumerate(text.split("\n"), 1)
            if row.strip() and not row.lstrip().startswith("#")
        ]
        kind = group_of("source0")
        assert kind is not None
        if len(rows) > MAX_ITEMS:
            table.refuse(rows[0][0], f"the file has {len(rows)} rows.", f"{MAX_ITEMS} at most")
            rows = []
        header = rows[0][1] if rows else []
        if not rows:
            table.refuse(1, "the file has no rows.", "a header such as enable,type,uri and rows")
        elif len(header) > 100 or "uri" not in header:
            table.refuse(rows[0][0], "the header names no uri.", "keys such as enable,type,uri")
            rows = []
        for number, row in rows[1:]:
            if len(row) != len(header):
                table.remark(number, f"the row has {len(row)} cells, the header {len(header)}")
            group = Group(f"row {number}", number)
            group.entries = [
                Entry(key, cell, number)
                for key, cell in zip(header, row, strict=False)
                # keys without effect are reported for the first row
                if cell and (number == rows[1][0] or key in kind.keys)
            ]
            section = reader.read(kind, group)
            if section is not None:
                self._add(section, number)
        reader.tell_unused()
        document.problems += table.problems
        document.notices += [(line, notice) for _, notice in table.notices]

    # --- [source-list] ----------------------------------------------------------------------------

    def source_list(self, listed: FoundGroup, common: FoundGroup | None, line: int) -> None:
        """Return the URIs of `[source-list]`, each with the values of `[source-attr-all]`."""
        document = self.reader.document
        uris = listed.get("list", ())
        if not uris:
            document.remark(line, "[source-list] has no list: it adds no sources")
            return
        if len(uris) > MAX_ITEMS:
            document.refuse(
                listed.line("list"), f"list has {len(uris)} items.", f"{MAX_ITEMS} at most"
            )
            return
        free = is_before(self.reader.generation, LISTS_AGREE_SINCE)
        for key in ("num-source-bins", "sensor-id-list", "sensor-name-list"):
            value = listed.get(key)
            count = value if isinstance(value, int) else len(value or ())
            if value is not None and count != len(uris) and not free:
                what = "is" if isinstance(value, int) else "has"
                document.refuse(
                    listed.line(key),
                    f"{key} {what} {count}, but list has {len(uris)} items.",
                    f"{len(uris)}, or no {key}",
                )
        names = listed.get("sensor-name-list") or listed.get("sensor-id-list") or ()
        named = "sensor-name-list" if listed.get("sensor-name-list") else "sensor-id-list"
        self.listed, self.rest = [], bool(listed.get("use-nvmultiurisrcbin"))
        for number, uri in enumerate(uris):
            section = FoundGroup(document, listed.kind)
            if common is not None:
                section.values, section.entries = dict(common.values), dict(common.entries)
            entry = listed.entries["list"]
            if camera := _CAMERA_URI.fullmatch(uri):
                section.values["type"] = 1 if camera[1] == "usb" else 5
                section.values["camera-v4l2-dev-node"] = int(camera[2])
                section.entries["camera-v4l2-dev-node"] = entry
            else:
                section.values["type"] = 4 if uri.startswith("rtsp://") else 2
                section.values["uri"] = uri
                section.entries["uri"] = entry
            section.entries["type"] = entry
            section.values.pop("num-sources", None)
            if self.rest and listed.get("low-latency-mode"):
                section.values["low-latency-decode"] = True
                section.entries["low-latency-decode"] = listed.entries["low-latency-mode"]
            ids = listed.get("sensor-id-list") or ()
            if number < len(ids):
                section.values["sensor-id"] = ids[number]
            if number < len(names) and names[number]:
                section.values["name"] = names[number]
                section.entries["name"] = listed.entries[named]
            self.listed.append(section)

    def _over_list(self, kind: AppGroup, group: Group, number: int) -> None:
        """`[sourceN]` beside a list replaces the values of the list for source N."""
        assert self.listed is not None
        if number >= len(self.listed):
            self.reader.document.refuse(
                group.line,
                f"[{quoted(group.name)}] is beyond the {len(self.listed)} items of [source-list].",
                f"a number from 0 to {len(self.listed) - 1}",
            )
            return
        entries = {entry.key for entry in group.entries}
        if "enable" not in entries:
            group.entries.append(Entry("enable", "1", group.line))
        section = self.reader.read(kind, group)
        base = self.listed[number]
        if section is None:
            base.values["enable"] = False
        else:
            base.values |= section.values
            base.entries |= section.entries

    def finish(self) -> list[Item]:
        """All sources, those of a list included."""
        for section in self._placed():
            if section.get("enable", True):
                self._add(section, section.line("uri"))
        return self.items + self.copies

    def _placed(self) -> list[FoundGroup]:
        """The sources of a list in the order of their pads."""
        sections = self.listed or []
        mapped = [s for s in sections if self.rest and s.get("sensorID-padID-mapping")]
        if not mapped:
            return sections
        numbers = [_LAST_NUMBER.search(section.get("sensor-id", "")) for section in sections]
        places = [int(match[1]) for match in numbers if match is not None]
        if sorted(places) == list(range(len(sections))):
            order = sorted(range(len(sections)), key=places.__getitem__)
            return [sections[index] for index in order]
        line = mapped[0].line("sensorID-padID-mapping")
        text = "sensorID-padID-mapping: sources stay in the order of the list: the ids of "
        text += f"sensor-id-list do not end in the numbers 0 to {len(sections) - 1}"
        mapped[0].document.remark(line, text, code="key-approximated")
        return sections

    # --- one source -------------------------------------------------------------------------------

    def _transport(self, section: FoundGroup, values: Values, origins: dict[str, Origin]) -> None:
        """Add how an RTSP stream comes, and the keys of the element that REST controls."""
        document = section.document

        def put(field: str, value: object, key: str) -> None:
            values[field], origins[field] = value, section.origin(key)

        if section.get("udp-buffer-size"):
            put("udp_buffer_size", section.get("udp-buffer-size"), "udp-buffer-size")
        if section.get("select-rtp-protocol") == _TCP:
            put("rtp_protocol", "tcp", "select-rtp-protocol")
        names = [name for name in REST_SOURCE_KEYS if section.get(name) and name not in self._told]
        if names and not self.rest:
            self._told.update(names)
            text = f"{', '.join(names)}: counts with [source-list] use-nvmultiurisrcbin=1 alone"
            document.remark(section.line(names[0]), text, "info", code="key-approximated")
        if not self.rest:
            return
        if section.get("set-rtp-protocol") == _TCP:
            put("rtp_protocol", "tcp", "set-rtp-protocol")
        for key, field in (
            ("init-rtsp-reconnect-interval-sec", "start_interval_s"),
            ("simulate-fps-interval-ms", "pace_ms"),
        ):
            if section.get(key):
                put(field, float(section.get(key)), key)

    def _add(self, section: FoundGroup, line: int) -> None:
        document = section.document
        kind = section.get("type")
        if kind in _OTHER_TYPES:
            why = f"the source of type={kind} is left out: {_OTHER_TYPES[kind]}"
            self.left_out.append(f"{why} (line {line})")
            document.remark(line, why)
            return
        if kind is None:
            kind = 2
            document.remark(line, "the source has no type and is taken as a URI", "info")
        elif kind not in _TYPES:
            known = ", ".join(f"{n} ({what})" for n, what in _TYPES.items())
            document.refuse(
                section.line("type"), f"type={kind} is not a type of source.", f"one of {known}"
            )
            return
        values, origins = section.fields(_KEYS)
        if "name" in section.values:  # of a list
            values["name"], origins["name"] = section.values["name"], section.origin("name")
        if not values.get("live"):
            values.pop("live", None)  # files do not drop, streams do, whatever this says
            origins.pop("live", None)
        self._transport(section, values, origins)
        if kind == 1:
            _camera(section, values, origins)
            uri = f"camera:{section.get('camera-v4l2-dev-node', 0)}"
            origin_key = (
                "camera-v4l2-dev-node" if "camera-v4l2-dev-node" in section.entries else "type"
            )
        else:
            uri, origin_key = section.get("uri"), "uri"
            if uri is None:
                document.refuse(line, "the source has no uri.", "uri=file://... or rtsp://...")
                return
        count = max(section.get("num-sources", 1), 1)
        if count > 1 and kind != 3:
            document.remark(
                section.line("num-sources"), "num-sources counts for type=3 only", "info"
            )
            count = 1
        if count > MAX_ITEMS or len(self.items) + len(self.copies) + count > MAX_ITEMS:
            document.refuse(line, f"more than {MAX_ITEMS} sources.", f"{MAX_ITEMS} at most")
            return
        if trouble := uri_trouble(uri):
            document.refuse(section.line(origin_key), f"uri is not {trouble}.", _URIS)
            return
        origins["uri"] = section.origin(origin_key)
        for copy in range(count):
            text = _NUMBER.sub(lambda m, n=copy: _numbered(m, n), uri) if kind == 3 else uri  # type: ignore[misc]
            if trouble := uri_trouble(text):
                document.refuse(section.line(origin_key), f"uri is not {trouble}.", _URIS)
                return
            try:
                full = absolute_uri(text, self.reader.base)
            except BadValueError as bad:
                document.refuse(section.line(origin_key), f"uri is not {bad.noun}.", bad.expected)
                return
            item = ({**values, "uri": full}, dict(origins))
            if section.get("smart-record"):
                number = len(self.items) + len(self.copies)
                self.recorded.append((section, item, section.get("camera-id", number)))
            (self.copies if copy else self.items).append(item)


def add_dewarpers(
    items: list[Item], dewarpers: list[tuple[FoundGroup, Group]], mux: FoundGroup | None
) -> None:
    """Give sources the views of their `[dewarperN]`: N counts the sources that are on.

    Args:
        items: the sources; one more stands behind all for each further view.
        dewarpers: sections that are on, and their groups.
        mux: `[streammux]`, whose number of views counts for all sources.
    """
    count = len(items)
    for section, group in dewarpers:
        document, name = section.document, quoted(group.name)
        number = int(group.name.removeprefix("dewarper")[:9] or 0)
        if number >= count:
            text = f"[{name}] is left out: sources are numbered 0 to {count - 1}"
            document.remark(group.line, text, code="element-left-out", data={"element": name})
            continue
        if "config-file" not in section.values:
            text = f"[{name}] has no config-file."
            document.refuse(group.line, text, "config-file=, a config of nvdewarper")
            continue
        values, origins = items[number]
        values["dewarper"] = section.values["config-file"]
        origins["dewarper"] = section.origin("config-file")
        views = (mux and mux.get("num-surfaces-per-frame")) or 0
        views = views or section.get("num-surfaces-per-frame", 1)
        most = min(views, section.get("num-batch-buffers", MOST_SURFACES))
        items += [({**values, "surface": view}, dict(origins)) for view in range(1, most)]


def _camera(section: FoundGroup, values: Values, origins: dict[str, Origin]) -> None:
    """Add size, rate and format of a camera; a size or rate counts with both of its keys."""
    size = section.get("camera-width"), section.get("camera-height")
    if all(size):
        values["camera_size"], origins["camera_size"] = size, section.origin("camera-width")
    rate = section.get("camera-fps-n"), section.get("camera-fps-d")
    if all(rate):
        values["camera_fps"], origins["camera_fps"] = (
            rate[0] / rate[1],
            section.origin("camera-fps-n"),
        )
    name = section.get("video-format")
    if name is not None and name in _FORMATS:
        values["camera_format"] = _FORMATS[name]
        origins["camera_format"] = section.origin("video-format")
    elif name is not None:
        text = f"video-format={quoted(name)} is none of {', '.join(_FORMATS)}: the camera chooses"
        section.document.remark(section.line("video-format"), text, code="key-approximated")


def _numbered(match: re.Match[str], number: int) -> str:
    return f"{number:{match[1] or ''}d}"


_KEYS = [
    key
    for key in SOURCE_KEYS.values()
    if key.name not in ("uri", "camera-id", "udp-buffer-size")
    and key.field in {key.field for key in SOURCE.keys.values()}
]

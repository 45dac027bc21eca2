"""The outputs of a deepstream-app config: `[tiled-display]` and `[sinkN]`."""

from __future__ import annotations

import shlex
from enum import IntEnum
from pathlib import Path

from headrace._core.findings import Level
from headrace._core.text import quoted
from headrace.config.app_messages import LeftOut, message_url
from headrace.config.app_reader import FoundGroup
from headrace.config.document import Document, Group
from headrace.config.origin import Origin
from headrace.config.pipeline_yaml import Item
from headrace.config.values import Values

_DISPLAYS = {2: "window", 5: "screen", 7: "window"}
_RTSP_PORT = "8554"  # of the original's server, where the group names none
_CODECS = {1: "H.264", 2: "H.265", 3: "MPEG-4"}
_TILER_KEYS = ("rows", "columns", "width", "height")


class Tiling(IntEnum):
    """How the original passes frames on to sinks: `enable` of `[tiled-display]`."""

    SPLIT = 0  # each source by itself, to the sinks with its number
    TILED = 1  # one image of all, to the sinks with the number 0
    BOTH = 2  # that, and one source by itself to the first sink with link-to-demux
    BATCHED = 3  # neither


def tiling_of(section: FoundGroup | None) -> Tiling:
    """The way of a file; without the group every source is by itself."""
    number = 0 if section is None else int(section.get("enable", 0))
    return Tiling(number) if number in tuple(Tiling) else Tiling.TILED


def tiler_item(section: FoundGroup) -> Item:
    """The values of `[tiled-display]`, with their origins."""
    keys = [key for key in section.kind.keys.values() if key.name in _TILER_KEYS]
    values, origins = section.fields(keys)
    for key in ("rows", "columns"):  # 0 chooses, too
        if section.get("square-seq-grid") or not values.get(key):
            values.pop(key, None)
            origins.pop(key, None)
    return values, origins


class AppSinks:
    """Makes outputs of sinks; those that cannot run here are left out, each with one warning.

    Args:
        document: the file.
        tiling: how frames are passed on.
        sources: how many there are.
    """

    def __init__(self, document: Document, tiling: Tiling, sources: int) -> None:
        self.items: list[Item] = []
        self._document, self._tiling, self._sources = document, tiling, sources
        self._linked = False  # a sink takes the single source of `Tiling.BOTH`

    def add(self, section: FoundGroup, group: Group) -> None:
        """Add the output of one `[sinkN]`."""
        document, name, kind = self._document, quoted(group.name), section.get("type")
        if kind is None:
            document.refuse(group.line, f"[{name}] has no type.", "type=3 and output-file=...")
        elif kind == 6:  # it hangs before the tiler, and gets every source
            self._messages(section, name)
        elif (source := self._source_of(section, name)) is not None:
            if kind == 1:
                self._put({"kind": "fake"}, section.origin("type"), source, section)
            elif kind == 3:
                self._file(section, name, group.line, source)
            else:
                self._not_there(kind, section, group, name)

    def _put(self, values: Values, origin: Origin, source: int, section: FoundGroup) -> None:
        origins = dict.fromkeys(values, origin)
        if source >= 0:
            named = "source-id" if "source-id" in section.entries else "type"
            values["source"], origins["source"] = source, section.origin(named)
        self.items.append((values, origins))

    def _leave_out(
        self, line: int, name: str, cause: str, way: str = "", level: Level = "warning"
    ) -> None:
        text = f"[{name}] is left out: {cause}{'; ' if way else ''}{way}"
        self._document.remark(line, text, level, code="element-left-out", data={"element": name})

    def _source_of(self, section: FoundGroup, name: str) -> int | None:
        """Index of the source that a sink is for, -1 for all; None leaves the sink out."""
        number, linked = section.get("source-id", 0), bool(section.get("link-to-demux"))
        line = section.line("source-id")
        if self._tiling is Tiling.BOTH and linked:
            if self._linked:
                self._leave_out(line, name, "only the first sink with link-to-demux is fed")
                return None
            self._linked = True
        elif self._tiling in (Tiling.TILED, Tiling.BOTH):
            if number:
                self._leave_out(
                    line,
                    name,
                    f"with tiling on the original builds no sink of source-id={number}",
                    "[tiled-display] enable=0 gives each source a sink, and enable=2 one of them, "
                    "by link-to-demux=1",
                )
                return None
            return -1
        elif self._tiling is Tiling.BATCHED:
            if self._sources > 1 and section.get("type") == 3:
                text = f"[{name}] without a tiler (enable=3) gets the frames of source 0 alone"
                self._document.remark(line, text, code="key-approximated")
            number = 0
        if number >= self._sources:
            self._leave_out(
                line,
                name,
                f"there is no source {number}",
                f"source-id is the index of a source among those that are on, 0 to "
                f"{self._sources - 1}",
            )
            return None
        return -1 if self._sources == 1 else int(number)

    def _not_there(self, kind: int, section: FoundGroup, group: Group, name: str) -> None:
        line, run = group.line, f"headrace run {shlex.quote(str(self._document.path))}"
        if kind in _DISPLAYS:
            what = f"there is no {_DISPLAYS[kind]} to show frames in"
            self._leave_out(line, name, what, f"{run} --view shows them in a browser", "info")
        elif kind == 4:
            ports = (e.text for e in group.entries if e.key == "rtsp-port" and e.text.isdigit())
            port = next(ports, _RTSP_PORT)
            self._leave_out(
                line,
                name,
                "headrace serves no RTSP itself",
                f"{run} --view shows the images in a browser, and {run} -o "
                f"rtsp://127.0.0.1:{port}/ds-test sends them to an RTSP server that takes streams "
                "(MediaMTX)",
            )
        else:
            self._leave_out(
                section.line("type"),
                name,
                f"type={kind} is no sink of the original",
                "1 (none), 2 (window), 3 (file), 4 (RTSP), 5 (screen) and 6 (messages) are",
            )

    def _messages(self, section: FoundGroup, name: str) -> None:
        url = message_url(section)
        if isinstance(url, LeftOut):
            self._leave_out(section.line("type"), name, url.cause, url.way)
            return
        if section.get("disable-msgconv"):
            self._document.remark(
                section.line("disable-msgconv"),
                f"[{name}] makes its own messages: converters are not shared", "info",
            )  # fmt: skip
        if not section.get("msg-conv-msg2p-new-api"):
            self._document.remark(
                section.line("type"),
                f"[{name}] sends every object of every frame, as test5 does; deepstream-app sends "
                "nothing without msg-conv-msg2p-new-api=1",
                "info",
            )
        origin = section.origin("msg-broker-proto-lib")
        self.items.append(
            ({"kind": "messages", "uri": url}, dict.fromkeys(("kind", "uri"), origin))
        )

    def _file(self, section: FoundGroup, name: str, line: int, source: int) -> None:
        document, output = self._document, section.get("output-file")
        if output is None:
            document.refuse(line, f"[{name}] has no output-file.", "output-file=out.mp4")
            return
        codec = section.get("codec")
        if codec is not None and codec != 1:
            what = _CODECS.get(codec, f"codec={codec}")
            text = f"[{name}] writes H.264 instead of {what}"
            document.remark(section.line("codec"), text, code="key-approximated")
        if section.get("container") == 2 and not output.endswith(".mkv"):
            text = f"[{name}] writes what the ending of {quoted(output)} says, not Matroska"
            document.remark(section.line("container"), text, code="key-approximated")
        # the original gives the name to a file sink as it is: relative to the working directory
        values: Values = {"kind": "video", "path": Path(output)}
        self._put(values, section.origin("output-file"), source, section)

"""The outputs of a deepstream-app config: `[tiled-display]` and `[sinkN]`."""

from __future__ import annotations

import shlex
from enum import IntEnum
from pathlib import Path

from headrace._core.findings import Level
from headrace._core.text import quoted
from headrace.config.app.messages import LeftOut, message_url
from headrace.config.app.reader import FoundGroup
from headrace.config.document import Document, Group
from headrace.config.enums import Generation
from headrace.config.origin import Origin
from headrace.config.pipeline_keys import PRESETS
from headrace.config.pipeline_yaml import Item
from headrace.config.values import Values

_DISPLAYS = {2: "window", 5: "screen", 7: "window"}
_RTSP_PORT = 8554  # of the original's server, where the group names none
_OF_CONVERTER = ("msg-conv-", "multiple-payloads", "debug-payload-dir")
_CODECS = {1: "h264", 2: "h265", 3: "mpeg4"}
_CONTAINERS = {1: "mp4", 2: "matroska"}
_PROFILES = {("h264", 0): "baseline", ("h264", 2): "main", ("h264", 4): "high", ("h265", 0): "main"}
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
    # the original writes names only by stream-name-display of [source-list], into each image
    values["captions"], origins["captions"] = False, section.origin("enable")
    return values, origins


def _preset(number: int) -> str | None:
    """The speed of an encoder by its number, from 1; None for others."""
    return PRESETS[number - 1] if 0 < number <= len(PRESETS) else None


class AppSinks:
    """Makes outputs of sinks; those that cannot run here are left out, each with one warning.

    Args:
        document: the file.
        tiling: how frames are passed on.
        sources: how many there are.
        converter: `[message-converter]`, which sinks with `disable-msgconv=1` share.
        listed: `[source-list]`, which has two keys of test5's messages.
        generation: release whose payloads are made; None makes those of all.
    """

    def __init__(
        self,
        document: Document,
        tiling: Tiling,
        sources: int,
        converter: FoundGroup | None = None,
        listed: FoundGroup | None = None,
        *,
        generation: Generation | None = None,
    ) -> None:
        self._generation: Generation | None = generation
        self._converter, self._listed = converter, listed
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
            elif kind == 4:
                self._served(section, name, source)
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
        split = self._sources > 1 or self._tiling is Tiling.BOTH  # a tiler is beside this sink
        return int(number) if split else -1

    def _served(self, section: FoundGroup, name: str, source: int) -> None:
        """Serve the images as the original does: at every address of the machine, by RTSP."""
        port = section.get("rtsp-port", _RTSP_PORT)
        values: Values = {"kind": "publish", "uri": f"rtsp-server://0.0.0.0:{port}/ds-test"}
        self._put(values, section.origin("type"), source, section)
        self._coding(section, name)
        values, origins = self.items[-1]
        for key in ("container", "codec"):
            if key in values and values[key] != "h265":
                del values[key], origins[key]
        text = f"[{name}] players find it at rtsp://127.0.0.1:{port}/ds-test, those of other "
        text += "machines at this one's address"
        self._document.remark(section.line("type"), text, "info", code="stream-served")

    def _not_there(self, kind: int, section: FoundGroup, group: Group, name: str) -> None:
        line, run = group.line, f"headrace run {shlex.quote(str(self._document.path))}"
        if kind in _DISPLAYS:
            what = f"there is no {_DISPLAYS[kind]} to show frames in"
            self._leave_out(line, name, what, f"{run} --view shows them in a browser", "info")
        else:
            self._leave_out(
                section.line("type"),
                name,
                f"type={kind} is no sink of the original",
                "1 (none), 2 (window), 3 (file), 4 (RTSP), 5 (screen) and 6 (messages) are",
            )

    def _converted(self, section: FoundGroup, name: str) -> FoundGroup:
        """The group with the values of the shared converter in place of its own."""
        if self._converter is None:
            text = f"[{name}] disable-msgconv=1, and no [message-converter] is on: its own keys "
            self._document.remark(section.line("disable-msgconv"), text + "make the messages")
            return section
        shared = FoundGroup(self._document, section.kind)
        own = {k: v for k, v in section.values.items() if not k.startswith(_OF_CONVERTER)}
        shared.values, shared.entries = own, dict(section.entries)
        common = self._converter.values
        shared.values |= {k: v for k, v in common.items() if k.startswith(_OF_CONVERTER)}
        shared.entries |= self._converter.entries
        return shared

    def _messages(self, section: FoundGroup, name: str) -> None:
        if section.get("disable-msgconv"):
            section = self._converted(section, name)
        for key, shared in (
            ("dummy-payload", "msg-conv-dummy-payload"),
            ("custom-ts-to-rfc", "custom-ts-to-rfc"),
        ):
            if self._listed is not None and self._listed.get(key):
                section.values[shared] = True
        url = message_url(section, self._generation)
        if isinstance(url, LeftOut):
            self._leave_out(section.line("type"), name, url.cause, url.way)
            return
        if not section.get("msg-conv-msg2p-new-api"):
            self._document.remark(
                section.line("type"),
                f"[{name}] sends every object of every frame, as test5 does; deepstream-app sends "
                "nothing without msg-conv-msg2p-new-api=1",
                "info",
                code="key-approximated",
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
        # the original gives the name to a file sink as it is: relative to the working directory
        values: Values = {"kind": "video", "path": Path(output)}
        self._put(values, section.origin("output-file"), source, section)
        self._coding(section, name)

    def _coding(self, section: FoundGroup, name: str) -> None:
        """The codec, its settings and the container of the file that was put last."""
        values, origins = self.items[-1]
        codec = _CODECS.get(section.get("codec", 1), "")
        found = {
            "codec": ("codec", codec if codec != "h264" else None),
            "container": ("container", _CONTAINERS.get(section.get("container", 0))),
            "bitrate": ("bitrate", section.get("bitrate") or None),
            "key_frame_interval": ("iframeinterval", section.get("iframeinterval") or None),
            "profile": ("profile", _PROFILES.get((codec, section.get("profile", -1)))),
            "preset": ("sw-preset", _preset(section.get("sw-preset", 0))),
        }
        for field, (key, value) in found.items():
            if value is not None and value != "":
                values[field], origins[field] = value, section.origin(key)
        odd = {"codec": not codec, "profile": (codec, section.get("profile")) == ("h265", 1)}
        for key in (key for key, is_odd in odd.items() if is_odd):
            text = f"[{name}] {key}={section.get(key)} is not written: the usual one is"
            self._document.remark(section.line(key), text, code="key-approximated")

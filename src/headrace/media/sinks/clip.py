"""Video around events, cut from the packets of the source as they came."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import av

from headrace._core.files import PartFile
from headrace.media.frame import Frame
from headrace.media.messages.event import EventFilter
from headrace.media.sinks.base import Sink, make_folder
from headrace.media.sinks.container_file import OutputFile, open_container
from headrace.media.sinks.naming import source_labels
from headrace.media.sinks.options import SinkOptions
from headrace.media.sinks.whole_video import cut_to_whole
from headrace.media.sources.decoded import reason_of
from headrace.meta import FrameMeta

if TYPE_CHECKING:
    from headrace.media.sources.base import Source
    from headrace.media.sources.packet_ring import PacketRing

_SECONDS = {"before": 5.0, "after": 10.0, "longest": 300.0}
MP4_CODECS = ("h264", "hevc", "mpeg4", "mjpeg", "av1", "vp9")
_EVENTS = {"object": "frame", "crossing": "crossing", "call": None}


class ClipSink(Sink):
    """Records each source around its events, without decoding or encoding anything for it.

    A clip begins at the last key frame `before` seconds ahead of an event, and ends `after` seconds
    behind the last one. It is written as `NAME.mp4.part` and renamed when it is whole.

    Args:
        name: `clip:DIR?before=5&after=10&classes=person&on=object`, with `on=crossing` for objects
            that cross a line of the analytics, `on=call` for `Pipeline.record_clip` alone, and
            `longest=300`, after which the next clip begins.
        path: the folder, with the same options.

    Attributes:
        clips: files written so far.

    Raises:
        MediaError: an option is unknown or out of range; the folder cannot be made.
    """

    kind = "clip"
    fills_folder = True

    def __init__(self, name: str, path: Path) -> None:
        plain, _, query = path.name.partition("?")
        super().__init__(name, path.with_name(plain) if plain else path)
        options = SinkOptions(query, name, (*_SECONDS, "on", "classes"))
        before_s, after_s, longest_s = (
            options.number(key, default, 600, "seconds") for key, default in _SECONDS.items()
        )
        self._kept_s, self._before_ns = before_s, round(before_s * 1e9)
        self._after_ns, self._longest_ns = round(after_s * 1e9), round(longest_s * 1e9)
        every = _EVENTS[options.choice("on", _EVENTS, "object")]
        self._filter = None if every is None else EventFilter(every, options.names("classes"))
        make_folder(self.path, name)
        self._rings: dict[int, tuple[str, PacketRing]] = {}
        self._clips: dict[int, _Clip] = {}
        self._called: dict[int, tuple[int, int]] = {}  # ns ahead of the call and behind it
        self._stopped: set[int] = set()
        self._lock = threading.Lock()
        self.clips: list[Path] = []

    def begin(self, source: Source) -> None:
        """Keep the packets of a source from now on."""
        ring = source.keep_packets(self._kept_s)
        if ring is None:
            self._notice(
                "source-not-recorded",
                "warning",
                f"{source.name} has no packets of video: it is not recorded",
            )
            return
        with self._lock:
            self._rings[source.source_id] = (source_labels([source])[source.source_id], ring)

    def end(self, source_id: int) -> None:
        """Finish the clip of a source that is over, and forget the source."""
        self._close_clip(source_id)
        with self._lock:
            self._rings.pop(source_id, None)
            self._called.pop(source_id, None)
            self._stopped.discard(source_id)

    def record(
        self, source_id: int, *, back_s: float | None = None, length_s: float | None = None
    ) -> bool:
        """Record from the next frame on, as after an event; any thread.

        Args:
            source_id: the source.
            back_s: seconds ahead of now at which the clip begins; None as for events.
            length_s: seconds from there to its end; None ends it as behind events.

        Returns:
            False if the source is not there or cannot be recorded.
        """
        before_ns = self._before_ns if back_s is None else round(back_s * 1e9)
        after_ns = self._after_ns if length_s is None else round(length_s * 1e9) - before_ns
        with self._lock:
            if source_id not in self._rings:
                return False
            self._called[source_id] = before_ns, max(0, after_ns)
            return True

    def end_recording(self, source_id: int) -> bool:
        """End the clip of a source before its time; any thread.

        Returns:
            False if the source is not there or cannot be recorded.
        """
        with self._lock:
            self._called.pop(source_id, None)
            if source_id not in self._rings:
                return False
            self._stopped.add(source_id)
            return True

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        number, now = meta.source_id, meta.pts_ns
        with self._lock:
            label, ring = self._rings.get(number, ("", None))
            called = self._called.pop(number, None)
            stopped = number in self._stopped
            self._stopped.discard(number)
        if ring is None:
            return
        if stopped:
            self._close_clip(number)
        before_ns, after_ns = called or (self._before_ns, self._after_ns)
        found = self._filter is not None and self._filter.event(meta) is not None
        happened = found or called is not None
        clip = self._clips.get(number)
        if clip is not None and (clip.over(now) or clip.connection != ring.connection):
            self._close_clip(number)
            clip = None
        try:
            if happened and clip is None:
                clip = self._new(label, ring, now, before_ns)
                if clip is not None:
                    self._clips[number] = clip
                else:  # not before the next key frame
                    with self._lock:
                        self._called.setdefault(number, (before_ns, after_ns))
            if clip is not None:
                if happened:
                    clip.end_ns = min(now + after_ns, clip.begin_ns + self._longest_ns)
                clip.take(now)
        except (ValueError, RuntimeError, av.error.FFmpegError) as error:
            if isinstance(error, OSError):
                raise
            self._notice(
                "source-not-recorded",
                "warning",
                f"{meta.source} cannot be recorded: {reason_of(error)}",
            )
            self.end(number)
        ring.trim(now)
        if ring.cut:
            self._notice(
                "clips-late", "warning", "more video than is held (64 MiB): clips begin later"
            )

    def _new(self, label: str, ring: PacketRing, now: int, before_ns: int) -> _Clip | None:
        first = ring.start_of(now - before_ns)
        if first is None:
            return None
        return _Clip(self._path(label, ring), ring, first, now)

    def _path(self, label: str, ring: PacketRing) -> Path:
        """The next clip of a source, a file that is not there."""
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        suffix = "mp4" if ring.codec in MP4_CODECS else "mkv"
        path, again = self.path / f"{label}_{time}.{suffix}", 1
        while path.exists() or path.with_name(path.name + ".part").exists():
            again += 1
            path = self.path / f"{label}_{time}_{again}.{suffix}"
        return path

    def _finished(self, path: Path, length_ns: int) -> None:
        """Hear of a clip that is whole; it has lasted so long."""

    def _close_clip(self, source_id: int) -> None:
        clip = self._clips.pop(source_id, None)
        if clip is not None and clip.close():
            self.clips.append(clip.path)
            self._finished(clip.path, clip.length_ns)

    def _finish(self) -> None:
        event_filter = self._filter
        if (
            event_filter is not None
            and event_filter.every == "crossing"
            and not event_filter.counted
        ):
            text = "on=crossing, and no rules about places ran; --analytics names them"
            self._notice("output-empty", "warning", f"{text}: nothing was recorded")
        for number in list(self._clips):
            self._close_clip(number)
        if self.clips:
            self._notice("clips-written", "info", f"{len(self.clips)} clip(s) in {self.path}")


class _Clip:
    """One file that is written."""

    def __init__(self, path: Path, ring: PacketRing, first: int, now_ns: int) -> None:
        self.path = path
        self.begin_ns = self.end_ns = now_ns
        self.connection = ring.connection
        self._ring, self._next = ring, first
        self._part = PartFile(path)
        self._written = 0
        self._first_dts: int | None = None
        self._from_ns = self._last_ns = now_ns
        self._format = "mp4" if path.suffix == ".mp4" else "matroska"
        self._file = OutputFile(self._part.path, str(path))
        self._container = open_container(self._file, self._format)
        self._stream = self._container.add_stream_from_template(ring.template)

    @property
    def length_ns(self) -> int:
        """Time from the first packet to the last."""
        return self._last_ns - self._from_ns

    def over(self, now_ns: int) -> bool:
        return now_ns > self.end_ns

    def take(self, now_ns: int) -> None:
        """Write the packets up to a frame."""
        for kept in self._ring.since(self._next, min(now_ns, self.end_ns)):
            packet = kept.copy()
            self._last_ns = kept.time_ns
            if self._first_dts is None:
                self._from_ns = kept.time_ns
                self._first_dts = kept.dts if kept.dts is not None else kept.pts
            assert self._first_dts is not None
            if packet.dts is not None:
                packet.dts -= self._first_dts
            if packet.pts is not None:
                packet.pts -= self._first_dts
            packet.stream = self._stream
            self._container.mux(packet)
            self._next = kept.number + 1
            self._written += 1

    def close(self) -> bool:
        """Finish the file; False if nothing was in it."""
        try:
            self._container.close()
        except BaseException as error:
            self._file.sealed = True
            if isinstance(error, av.error.FFmpegError | ValueError) and not isinstance(
                error, OSError
            ):
                self._part.discard()
                return False  # its header could not be written: there is a notice already
            if cut_to_whole(self._part.path, self._format):
                self._part.finish()
            else:
                self._part.discard()
            raise
        finally:
            self._file.close()
        if not self._written:
            self._part.discard()
            return False
        self._part.finish()
        return True

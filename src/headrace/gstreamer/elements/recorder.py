"""Recordings of a source from its packets as they come: smart recording of nvurisrcbin."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock, Thread

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.threads import start_thread
from headrace.gstreamer.elements.bindings import Gst, structure_of

_MUXES = {"mp4": "mp4mux", "mkv": "matroskamux"}
_PARSERS = {"video/x-h264": "h264parse", "video/x-h265": "h265parse"}
_WAIT_S = 10


@dataclass(frozen=True)
class RecordingInfo:
    """A recording that is complete.

    Attributes:
        session_id: number that the start gave.
        file_directory, file_name: of the video.
        duration: in milliseconds.
        container: `mp4` or `mkv`.
        width, height: in pixels.
    """

    session_id: int
    file_directory: str
    file_name: str
    duration: int
    container: str
    width: int
    height: int


Done = Callable[[RecordingInfo], None]


@dataclass(frozen=True)
class _Packet:
    time_ns: int  # goes on where a video starts again
    is_key: bool
    buffer: Gst.Buffer


class _Recording:
    """One file that is being written."""

    def __init__(self, number: int, path: Path, caps: Gst.Caps, start_ns: int, end_ns: int) -> None:
        self.number, self.path, self._caps = number, path, caps
        self.start_ns, self.end_ns = start_ns, end_ns
        self._offset_ns: int | None = None
        self._first_ns = self._last_ns = start_ns
        parser = _PARSERS[structure_of(caps).get_name()]
        mux = _MUXES[path.suffix[1:]]
        self._pipeline = Gst.parse_launch(
            f"appsrc name=in format=time max-bytes=0 ! {parser} ! {mux} ! filesink name=out"
        )
        self._source = self._pipeline.get_by_name("in")
        self._source.set_property("caps", caps)
        self._pipeline.get_by_name("out").set_property("location", str(path))
        self._pipeline.set_state(Gst.State.PLAYING)

    def write(self, packet: _Packet) -> None:
        """Append a packet."""
        buffer = packet.buffer.copy_deep()
        known = [t for t in (buffer.dts, buffer.pts) if t != Gst.CLOCK_TIME_NONE]
        shift_ns = packet.time_ns - min(known, default=0)  # where a video started again
        if self._offset_ns is None:
            self._offset_ns, self._first_ns = packet.time_ns, packet.time_ns
        move_ns = shift_ns - self._offset_ns
        if buffer.pts != Gst.CLOCK_TIME_NONE:
            buffer.pts = max(0, buffer.pts + move_ns)
        if buffer.dts != Gst.CLOCK_TIME_NONE:
            buffer.dts = max(0, buffer.dts + move_ns)
        self._last_ns = packet.time_ns
        if buffer.duration != Gst.CLOCK_TIME_NONE:
            self._last_ns += buffer.duration
        self._source.emit("push-buffer", buffer)

    def finish(self) -> RecordingInfo:
        """Complete the file; waits for it.

        Raises:
            MediaError: it cannot be written.
        """
        self._source.emit("end-of-stream")
        kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR
        message = self._pipeline.get_bus().timed_pop_filtered(_WAIT_S * Gst.SECOND, kinds)
        self._pipeline.set_state(Gst.State.NULL)
        if message is None or message.type == Gst.MessageType.ERROR:
            why = "it does not end" if message is None else message.parse_error()[0].message
            raise MediaError(f"a recording cannot be written: {why}", where=str(self.path))
        structure = structure_of(self._caps)
        width, height = (structure.get_int(key)[1] for key in ("width", "height"))
        length_ms = (self._last_ns - self._first_ns) // 1_000_000
        directory, name = str(self.path.parent), self.path.name
        return RecordingInfo(
            self.number, directory, name, length_ms, self.path.suffix[1:], width, height
        )


class PacketRecorder:
    """Keeps the last packets of a source, and writes recordings that begin with them.

    Args:
        folder: of the files.
        prefix: of their names, before number, date and process.
        container: `mp4` or `mkv`.
        cache_s: seconds that are kept.
        default_s: length of a recording that names none, in seconds.
        failed: gets an error of a recording.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        container: str,
        cache_s: int,
        default_s: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._folder, self._prefix, self._container = folder, prefix, container
        self._cache_ns, self._default_s, self._failed = cache_s * 10**9, default_s, failed
        self._packets: deque[_Packet] = deque()
        self._caps: Gst.Caps | None = None
        self._time_ns = self._shift_ns = 0
        self._running: dict[int, tuple[_Recording, Done]] = {}
        self._numbers = count()
        self._ending: list[Thread] = []
        self._lock = Lock()

    @property
    def is_recording(self) -> bool:
        """True while a recording is under way."""
        return bool(self._running)

    def packet(self, buffer: Gst.Buffer, caps: Gst.Caps) -> None:
        """Take a packet of the source.

        Args:
            buffer: in the order of decoding.
            caps: of H.264 or H.265.
        """
        with self._lock:
            self._caps = caps
            known = [t for t in (buffer.dts, buffer.pts) if t != Gst.CLOCK_TIME_NONE]
            time_ns = min(known, default=self._time_ns - self._shift_ns) + self._shift_ns
            if time_ns < self._time_ns - Gst.SECOND:  # the video started again
                self._shift_ns += self._time_ns - time_ns
                time_ns = self._time_ns
            self._time_ns = time_ns
            is_key = not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT)
            packet = _Packet(time_ns, is_key, buffer)
            self._packets.append(packet)
            self._forget()
            for number, (recording, done) in list(self._running.items()):
                if packet.time_ns >= recording.end_ns:
                    self._end(number, recording, done)
                else:
                    recording.write(packet)

    def _forget(self) -> None:
        """Drop the packets before the last key frame that is old enough."""
        old_ns = self._time_ns - self._cache_ns
        keys = [i for i, one in enumerate(self._packets) if one.is_key and one.time_ns <= old_ns]
        for _ in range(keys[-1] if keys else 0):
            self._packets.popleft()

    def start(self, start_s: int, duration_s: int, done: Done) -> int:
        """Begin a recording at a key frame, and return its number.

        Args:
            start_s: seconds before now, as far as they are kept.
            duration_s: seconds after now; 0: the default.
            done: is called when the file is complete, in a thread of its own.

        Raises:
            MediaError: no packet of H.264 or H.265 came yet, or the folder is not there.
        """
        with self._lock:
            if self._caps is None or structure_of(self._caps).get_name() not in _PARSERS:
                raise MediaError(
                    "nothing can be recorded yet",
                    expected="packets of H.264 or H.265, which the source gives once it plays",
                )
            if not self._folder.is_dir():
                raise MediaError("there is no such folder", where=str(self._folder))
            number = next(self._numbers)
            date = time.strftime("%Y%m%d-%H%M%S")
            name = f"{self._prefix}_{number:05d}_{date}_{os.getpid()}.{self._container}"
            start_ns = self._time_ns - start_s * 10**9
            end_ns = self._time_ns + (duration_s or self._default_s) * 10**9
            recording = _Recording(number, self._folder / name, self._caps, start_ns, end_ns)
            kept = list(self._packets)
            keys = [i for i, one in enumerate(kept) if one.is_key]
            first = max(
                (i for i in keys if kept[i].time_ns <= start_ns), default=min(keys, default=0)
            )
            for packet in kept[first:]:
                recording.write(packet)
            self._running[number] = recording, done
            return number

    def stop(self, number: int) -> bool:
        """End a recording now; False if there is none of that number."""
        with self._lock:
            if number not in self._running:
                return False
            self._end(number, *self._running[number])
            return True

    def close(self) -> None:
        """End all recordings, and wait for their files."""
        with self._lock:
            for number, (recording, done) in list(self._running.items()):
                self._end(number, recording, done)
            ending = list(self._ending)
        for thread in ending:
            thread.join(_WAIT_S)

    def _end(self, number: int, recording: _Recording, done: Done) -> None:
        del self._running[number]
        finish = partial(self._finish, recording, done)
        self._ending = [thread for thread in self._ending if thread.is_alive()]
        self._ending.append(start_thread(finish, name="headrace-recording", failed=self._failed))

    def _finish(self, recording: _Recording, done: Done) -> None:
        try:
            info = recording.finish()
        except HeadraceError as error:
            self._failed(error)
        else:
            done(info)

"""Video files by PyAV."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import av

from headrace._core.errors import MediaError
from headrace.media.names import sniff
from headrace.media.sources.containers import open_file
from headrace.media.sources.decoded import (
    DecodedSource,
    Decoding,
    Timeline,
    pick_stream,
    reason_of,
    turn_of,
)
from headrace.media.sources.gpu_decoding import ON_GPU, gpu_decoding
from headrace.media.sources.playlists import PlaylistReach

_WHOLE = 0.9  # of the frames that a length promises: rates vary, and sound may be longer
_TEXT = "tty"  # FFmpeg draws text files as images of a terminal


class VideoSource(DecodedSource):
    """Frames of the first video stream of a file, decoded by FFmpeg.

    Planes of yuv420p, nv12, gray, rgb24 and bgr24 images are read-only views on decoder memory,
    kept alive by `frame.owner`; other formats are converted and a notice says so once.

    Args:
        path: a file; read to where it ends now, also if it grows.
        name: how to call it in messages.
        threads: decoder threads; None means 2.
        fps: rate of video without time stamps.
        gpu, reach: see `open_source`.
        decoding: what the decoder leaves out.

    Attributes:
        path: of the file.

    Raises:
        MediaError: it cannot be opened or holds no video.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        source_id: int = 0,
        threads: int | None = None,
        fps: float | None = None,
        gpu: int | None = None,
        reach: PlaylistReach = "public",
        decoding: Decoding | None = None,
    ) -> None:
        super().__init__(name, source_id, threads, fps, gpu=gpu)
        self.path, self._reach = path, reach
        self._size = _size(path)
        self._container = self._open()
        try:
            stream = pick_stream(
                self._container, name, threads=threads, live=False, decoding=decoding or Decoding()
            )
        except MediaError:
            self._container.close()
            raise
        self._stream = stream
        self._describe(self._container, stream)
        self._expected = stream.frames or None  # only an exact count can show a missing end
        if decoding is not None and decoding.key_frames_only:
            self._expected = self.frames = None  # how many key frames there are nobody says
        self._received = self._discarded = 0
        self._cut = False
        self._begun: Iterator[av.Packet[av.VideoStream]] | None = (
            None  # packets from the first one on
        )
        self._first: Any = None  # time stamps and place of the first packet

    def rewind(self) -> bool:
        """Go to the first packet and keep the decoder, which a GPU takes 0.1 s to make."""
        with self._reading:
            if self._closing.is_set() or self._first is None or self._packet_ring is not None:
                return False
            stream = self._stream
            try:
                self._container.seek(self._first[1] or 0, stream=stream, backward=True)
                packets = self._container.demux(stream)
                packet = next(packets)
                if _place(packet) != self._first:
                    return False
                stream.codec_context.flush_buffers()
            except (av.error.FFmpegError, OSError, ValueError, StopIteration):
                return False
            self._begun, self._generator = chain([packet], packets), None
            self.given = self.skipped = self._received = self._discarded = 0
            self._cut, self._timeline = False, Timeline(self._timeline.step_ns)
        return True

    def _open(self) -> Any:
        try:
            container = open_file(self.path, self._reach, **gpu_decoding(self._gpu))
            if container.format.name != _TEXT:
                return container
            container.close()
        except (av.error.FFmpegError, OSError, ValueError):
            pass
        raise MediaError(
            f"is not a video that can be read: it is {sniff(self.path)}",
            where=self.name,
            expected="a video file (mp4, mkv, mov, avi, webm, ts, …) or an image",
        )

    def _packets(self) -> Iterator[av.Packet[av.VideoStream]]:
        """Packets of the stream; a read error ends it with a notice."""
        packets = self._begun or self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
                if self._first is None and packet is not None:
                    self._first = _place(packet)
            except (av.error.FFmpegError, OSError) as error:
                self._notice("reading-stopped", "warning", f"reading stopped: {reason_of(error)}")
                yield self._flush()
                return
            if packet is None:
                return
            yield packet

    def _flush(self) -> Any:
        """An empty packet: the decoder gives the frames that it still holds, in the right time."""
        packet: Any = av.Packet()
        packet.stream, packet.time_base = self._stream, self._stream.time_base
        return packet

    def _seen(self, packet: av.Packet[av.VideoStream]) -> None:
        self._cut = packet.is_corrupt
        self._received += not packet.is_corrupt
        self._discarded += bool(getattr(packet, "is_discard", False))

    def _images(self) -> Generator[av.VideoFrame, None, None]:
        gave_up = yield from self._decode(self._stream, self._packets())
        if gave_up:
            self._notice("reading-stopped", "warning", gave_up)

    def _finished(self) -> None:
        if self._cut and self.skipped:
            self.skipped -= 1  # the packet that the end of the file cut through is not damage
        accounted = self.given + self.skipped + self._discarded
        # Decoder threads can lose an error at the end: what came in must have come out.
        silent = min(self._expected or 0, self._received) - accounted
        if silent > 0:
            self.skipped += silent
            accounted += silent
        super()._finished()
        if self._expected and accounted < self._expected:
            self._notice(
                "ended-early", "warning", f"ended early, at frame {self.given} of {self._expected}"
            )
        elif not self._expected and self.frames and self.given < _WHOLE * self.frames:
            text = f"gave {self.given} frames where its length promises about {self.frames}"
            self._notice("ended-early", "warning", f"{text}: it may be cut off")
        if _size(self.path) > self._size:
            self._notice(
                "file-grew",
                "warning",
                "the file grew while it was read: what came later may be missing",
            )

    def _release(self) -> None:
        super()._release()
        self._container.close()
        self._begun = self._generator = None
        held = [self._stream, self._container]
        del self._stream, self._container
        if self._gpu is not None and self.decoder == ON_GPU:
            turn_of(self._gpu).end(held)  # PyAV ends the decoder with its last reference


def _place(packet: av.Packet[av.VideoStream]) -> tuple[Any, ...]:
    """The mark of a video's first packet."""
    return packet.pts, packet.dts, packet.pos, packet.size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

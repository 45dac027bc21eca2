"""Video by PyAV: files, network streams, cameras."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from noria.errors import MediaError
from noria.media.frame import Frame
from noria.media.names import sniff
from noria.media.pixels import FrameReader
from noria.media.sources.base import Source

__all__ = ["VideoSource"]

DEFAULT_FPS = 25.0
MAX_ERRORS_IN_A_ROW = 250  # a stream that gives nothing but errors is not worth waiting for


class VideoSource(Source):
    """Frames of the first video stream, decoded by FFmpeg.

    Planes of yuv420p, nv12, gray, rgb24 and bgr24 pictures are read-only views on decoder memory,
    kept alive by `frame.owner`; other formats are converted and a notice says so once.

    Args:
        target: path, URL or device as FFmpeg opens it.
        name: how to call it in messages; must not hold credentials.
        threads: decoder threads; None means 2.
        live: do not trade delay for speed.
        options: FFmpeg options of the demuxer.
        timeout_s: give up when nothing arrives for so long (network and devices).

    Raises:
        MediaError: it cannot be opened or holds no video.
    """

    def __init__(
        self,
        target: str,
        name: str,
        *,
        source_id: int = 0,
        threads: int | None = None,
        live: bool = False,
        format: str | None = None,
        options: dict[str, str] | None = None,
        timeout_s: float | None = None,
        fps: float | None = None,
    ) -> None:
        super().__init__(name, source_id)
        self.live = live
        self._path = Path(target) if timeout_s is None else None
        self._reader = FrameReader()
        self._container = self._open(target, format, options, timeout_s)
        streams = self._container.streams.video
        if not streams:
            kinds = ", ".join(sorted({s.type for s in self._container.streams})) or "no streams"
            self._container.close()
            raise MediaError(
                f"there is no video in it ({kinds})",
                where=name,
                expected="a file or stream with a video track",
            )
        self._stream = stream = streams[0]
        context = stream.codec_context
        if context is None:
            self._container.close()
            raise MediaError("its video codec is unknown to this FFmpeg", where=name)
        context.thread_count = threads or 2
        context.thread_type = "SLICE" if live else "AUTO"
        self.width, self.height = context.width, context.height
        rate: Fraction | None = stream.average_rate or stream.guessed_rate
        self.fps = fps or (float(rate) if rate else None)
        self.frames = self._expected_frames()
        self._expected = stream.frames or None  # only an exact count can show a missing end
        self._received = self._discarded = 0
        self._cut = False

    def _open(
        self,
        target: str,
        format: str | None,
        options: dict[str, str] | None,
        timeout_s: float | None,
    ) -> Any:
        import av

        if self._path is not None:
            target = f"file:{target}"  # a colon in a name would be taken for a protocol
        try:
            return av.open(target, format=format, options=options or {}, timeout=timeout_s)
        except (av.error.FFmpegError, OSError, ValueError) as error:
            reason = _reason(error)
        # Raised outside the handler: FFmpeg's errors carry the URL with its credentials.
        if self._path is None:
            raise MediaError(
                f"cannot be opened: {reason}",
                where=self.name,
                expected="a stream or device that answers",
                fix="check the address, the network, user and password",
            )
        raise MediaError(
            f"is not a video that can be read: it is {sniff(self._path)}",
            where=self.name,
            expected="a video file (mp4, mkv, mov, avi, webm, ts, …) or an image",
        )

    def _expected_frames(self) -> int | None:
        if self.live:
            return None
        if self._stream.frames:
            return int(self._stream.frames)
        if not self.fps:
            return None
        seconds = 0.0
        if self._stream.duration:
            seconds = float(self._stream.duration * self._stream.time_base)
        elif self._container.duration:
            seconds = float(self._container.duration) / 1e6
        return round(seconds * self.fps) or None

    def _packets(self) -> Iterator[Any]:
        """Packets of the stream; a read error ends it with a notice."""
        import av

        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except (av.error.FFmpegError, OSError) as error:
                self._notice("warning", f"reading stopped: {_reason(error)}")
                yield None  # the decoder may still hold frames
                return
            if packet is None:
                return
            yield packet

    def _pictures(self) -> Iterator[Any]:
        """Whole pictures; damaged ones are counted and left out."""
        import av

        context = self._stream.codec_context
        errors_in_a_row = 0
        for packet in self._packets():
            if packet is not None and packet.size:
                self._cut = packet.is_corrupt and not self.live
                self._received += not packet.is_corrupt
                self._discarded += bool(getattr(packet, "is_discard", False))
            try:
                pictures = context.decode(packet)
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, ValueError):
                self.skipped += 1
                errors_in_a_row += 1
                if errors_in_a_row == MAX_ERRORS_IN_A_ROW:
                    self._notice("warning", f"gave up after {errors_in_a_row} broken frames")
                    return
                continue
            for picture in pictures:
                errors_in_a_row = 0
                if picture.is_corrupt:
                    self.skipped += 1
                else:
                    yield picture

    def _read(self) -> Generator[Frame, None, None]:
        number = 0
        last_ns: int | None = None
        step_ns = round(1e9 / (self.fps or DEFAULT_FPS))
        for picture in self._pictures():
            base = picture.time_base
            if picture.pts is not None and base:
                pts_ns = round(picture.pts * base.numerator * 1_000_000_000 / base.denominator)
            else:
                pts_ns = 0 if last_ns is None else last_ns + step_ns
                self._notice(
                    "info", f"frames without a time stamp are timed at {1e9 / step_ns:g} fps"
                )
            last_ns = pts_ns
            if number == 0:
                self.width, self.height = picture.width, picture.height
                if getattr(picture, "rotation", 0):
                    self._notice(
                        "info",
                        f"the file asks players to turn it by {picture.rotation} degrees;"
                        " frames are used as they are stored",
                    )
            frame = self._reader.read(
                picture, pts_ns=pts_ns, frame=number, source=self.name, source_id=self.source_id
            )
            if number == 0 and self._reader.converted:
                name, target = self._reader.converted
                self._notice("info", f"pixel format {name} is converted to {target}")
            number += 1
            del picture  # one frame less alive while the consumer works
            yield frame
        self._account(number)

    def _account(self, number: int) -> None:
        """Say at the end what was damaged or missing."""
        if self._cut and self.skipped:
            self.skipped -= 1  # the packet that the end of the file cut through is not damage
        given = number + self.skipped + self._discarded
        # Decoder threads can lose an error at the end: what came in must have come out.
        silent = min(self._expected or 0, self._received) - given
        if silent > 0:
            self.skipped += silent
            given += silent
        if self.skipped:
            plural = "s were" if self.skipped > 1 else " was"
            self._notice("warning", f"{self.skipped} damaged frame{plural} left out")
        if self._expected and given < self._expected:
            self._notice("warning", f"ended early, at frame {number} of {self._expected}")
        if number == 0:
            raise MediaError(
                "not one frame could be decoded",
                where=self.name,
                fix=[str(n.message) for n in self.notices],
            )

    def _release(self) -> None:
        self._container.close()


def _reason(error: BaseException) -> str:
    """What FFmpeg said, without the address it said it about."""
    text = getattr(error, "strerror", None)
    if not text:
        return "time-out" if isinstance(error, TimeoutError) else type(error).__name__
    return str(text).lower()

"""A part of a video as a source: frames, numbers and times are those of the video read whole."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import av

from headrace._core.errors import MediaError
from headrace.media.frame import Frame
from headrace.media.sources.video import VideoSource
from headrace.media.sources.video_structure import VideoSpan


class SpanDoubtError(MediaError):
    """A part of a video came out otherwise than its packets promised: read the video whole."""


class VideoSpanSource(VideoSource):
    """Frames of a video from one cut to the next, numbered as in the video.

    Args:
        path: the video.
        name: how to call it in messages.
        span: as `VideoStructure.spans` gives it.
        source_id: copied into the frames.
        threads: decoder threads; None means 2.
        gpu: see `open_source`.

    Raises:
        MediaError: it cannot be opened. `SpanDoubtError` at the end of reading: frames are
            missing or times shift, so that the video has to be read whole.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        span: VideoSpan,
        *,
        source_id: int = 0,
        threads: int | None = None,
        gpu: int | None = None,
    ) -> None:
        super().__init__(path, name, source_id=source_id, threads=threads, gpu=gpu)
        self._span = span
        self._decoder_threads = threads
        self.frames = span.frames
        self.given = span.start.frame

    def _packets(self) -> Iterator[av.Packet[av.VideoStream]]:
        """Packets from the first frame of the span up to its end, then an empty one to flush."""
        start, end = self._span.start, self._span.end
        if start.frame and not self._seek():
            self._reopen()
        begun = False
        for packet in super()._packets():
            if not packet.size:
                yield packet
                continue
            if end is not None and packet.pts == end.pts:
                yield self._flush()
                return
            begun = begun or packet.pts == start.pts
            if begun:
                yield packet

    def _seek(self) -> bool:
        """Go to the start of the span or before it; False if the container has no way there."""
        target = self._span.start.pts
        try:
            self._container.seek(target, stream=self._stream, backward=True)
            packet = next(self._container.demux(self._stream), None)
            if packet is None or packet.pts is None or packet.pts > target:
                return False
            self._container.seek(target, stream=self._stream, backward=True)
        except (av.error.FFmpegError, OSError):
            return False
        return True

    def _reopen(self) -> None:
        """Begin at the start of the video: packets before the span are read and thrown away."""
        self._container.close()
        self._container = self._open()
        self._stream = self._container.streams.video[0]
        self._stream.codec_context.thread_count = self._decoder_threads or 2
        self._stream.codec_context.thread_type = "AUTO"

    def _read(self) -> Generator[Frame, None, None]:
        yield from super()._read()
        if self._closing.is_set():
            return
        span, timeline = self._span, self._timeline
        count = self.given - span.start.frame
        if self.skipped or count != span.frames or timeline.missing or timeline.shifted:
            raise SpanDoubtError(
                f"{count} frames came of the {span.frames} from frame {span.start.frame} on",
                where=self.name,
                fix="read the video whole",
            )

    def _finished(self) -> None:
        """Add no notices: a span that is not complete is refused."""

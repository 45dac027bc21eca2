"""Video in MP4, MOV or Matroska, H.264 unless another codec is asked for."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from headrace._core.errors import MediaError
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, part_of
from headrace.media.sinks.coding import Coding
from headrace.media.sinks.container_file import OutputFile, open_container
from headrace.media.sinks.frame_encoder import FrameEncoder
from headrace.media.sinks.naming import VIDEO_FORMATS
from headrace.media.sinks.whole_video import cut_to_whole
from headrace.media.sources.decoded import reason_of
from headrace.meta import FrameMeta


class VideoSink(Sink):
    """Encodes frames with the times they have, so variable frame rates stay as they are.

    Written beside its destination as `NAME.part` and renamed when finished. Until then an MP4 is
    fragmented: even after a power cut everything plays but two seconds and what the encoder holds:
    a dozen frames, and one for each of its threads; none of a camera below 8 fps.
    After a failure, as on a full disk, the file is cut behind the last part that plays. Odd sizes
    are padded to even ones; frames of another size than the first are fitted into it with black
    bars. Sound is not carried over.

    Args:
        fps: expected frame rate, for rate control and the length of the last frame.
        crf: quality, 0 (lossless) to 51; 23 is the encoder's usual.
        preset: speed of the encoder against size.
        threads: encoder threads; None lets the encoder choose.
        coding: the codec and its settings; None is H.264.
        container: `mp4` or `matroska`; None is what the name ends in.
    """

    kind = "video"
    needs_pixels = True

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        fps: float | None = None,
        crf: int = 23,
        preset: str = "veryfast",
        threads: int | None = None,
        coding: Coding | None = None,
        container: str | None = None,
    ) -> None:
        super().__init__(name, path)
        self._coding = coding
        self._rate = Fraction(fps or 25.0).limit_denominator(1001)
        self._crf, self._preset, self._threads = crf, preset, threads
        self._format = container or VIDEO_FORMATS.get(path.suffix.lower(), "mp4")
        self._part = part_of(path, name, "video")
        self._container: Any = None
        self._encoder: FrameEncoder | None = None
        self._file: OutputFile | None = None

    def _start(self, frame: Frame) -> FrameEncoder:
        self._container = self._open()
        return FrameEncoder(
            self._container, frame, rate=self._rate, name=str(self.path), notice=self._notice,
            options={"crf": str(self._crf), "preset": self._preset}, threads=self._threads,
            coding=self._coding,
        )  # fmt: skip

    def _open(self) -> Any:
        """The container, beside its destination."""
        self._file = OutputFile(self._part.path, self.name)
        return open_container(self._file, self._format)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if self._encoder is None:
            self._encoder = self._start(frame)
        try:
            self._container.mux(self._encoder.encode(frame, meta))
        except (MediaError, ValueError, RuntimeError, av.error.FFmpegError) as error:
            if isinstance(error, OSError):
                raise
            self._broken = True
            if isinstance(error, MediaError):
                raise
            raise MediaError(
                f"frame {meta.frame} cannot be written: {reason_of(error)}", where=str(self.path)
            ) from error
        if self._file is not None and self._file.interrupted:
            self._file.interrupted = False
            raise KeyboardInterrupt

    def _finish(self) -> None:
        if self._container is None:
            if not self._broken:
                self._notice("output-empty", "warning", "no frame came, so no video was written")
            return
        assert self._file is not None
        failure: OSError | None = None
        try:
            if not self._broken:
                assert self._encoder is not None
                self._container.mux(self._encoder.flush())
        except (OSError, ValueError, RuntimeError, av.error.FFmpegError) as error:
            failure = error if isinstance(error, OSError) else OSError(str(error))
        if self._broken or failure:
            # Nothing may touch the fragments on the disk now, FFmpeg's index least of all.
            self._file.sealed = True
        try:
            self._container.close()
        except (OSError, ValueError, RuntimeError, av.error.FFmpegError) as error:
            if not self._file.sealed:
                self._file.sealed = True
                failure = error if isinstance(error, OSError) else OSError(str(error))
        self._file.close()
        self._encoder = self._container = None  # the encoder has this sink's notices
        if self._file.sealed:
            self.kept = self._cut()
        if self.kept == 0 or not self.frames:
            self._part.discard()
        else:
            self._part.finish()
        if failure is not None:
            raise failure

    def _cut(self) -> int:
        """Cut the file behind the last part that plays; return the frames in it."""
        try:
            return min(cut_to_whole(self._part.path, self._format), self.frames)
        except OSError:  # it was removed
            return 0

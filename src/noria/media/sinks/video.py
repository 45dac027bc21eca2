"""H.264 video in MP4, MOV or Matroska."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.video.reformatter import VideoReformatter

from noria._core.errors import MediaError
from noria.media.frame import Frame
from noria.media.pixel_format import PixelFormat, is_full, matrix_code
from noria.media.pixels import plane_array, to_av
from noria.media.sinks.base import Sink, create, part_of
from noria.media.sinks.naming import VIDEO_FORMATS
from noria.media.sinks.whole_film import whole_matroska, whole_mp4
from noria.meta import FrameMeta

_ENCODERS = ("libx264", "libopenh264", "h264")
_TIME_BASE = Fraction(1, 90_000)  # fine enough for any frame rate, exact for the usual ones
_HYBRID_SINCE = (61, 7, 0)  # FFmpeg 7.1
_HD_HEIGHT = 720  # from here on RGB becomes BT.709, as players assume


class VideoSink(Sink):
    """Encodes frames with the times they have, so variable frame rates stay as they are.

    Written beside its destination as `NAME.part` and renamed when finished. Until then an MP4 is
    fragmented: even after a power cut everything up to the last two seconds plays. After a failure,
    as on a full disk, the file is cut behind the last part that plays. Odd sizes are padded to even
    ones; frames of another size than the first are fitted into it with black bars. Sound is not
    carried over.

    Args:
        fps: expected frame rate, for rate control and the length of the last frame.
        crf: quality, 0 (lossless) to 51; 23 is the encoder's usual.
        preset: speed of the encoder against size.
        threads: encoder threads; None lets the encoder choose.
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
    ) -> None:
        super().__init__(name, path)
        self._rate = Fraction(fps or 25.0).limit_denominator(1001)
        self._crf, self._preset, self._threads = crf, preset, threads
        self._format = VIDEO_FORMATS.get(path.suffix.lower(), "mp4")
        self._target, self._part = part_of(path, name, "video")
        self._container: Any = None
        self._stream: Any = None
        self._fit: Any = None
        self._last_pts: int | None = None
        self._source_id = 0
        self._file: _Output | None = None

    def _start(self, frame: Frame) -> None:
        encoder = next((e for e in _ENCODERS if e in av.codecs_available), None)
        if encoder is None:
            raise MediaError("this FFmpeg has no H.264 encoder", where=self.name)
        self._file = _Output(self._part, self.name)
        options = {}
        if self._format != "matroska" and av.library_versions["libavformat"] >= _HYBRID_SINCE:
            # delay_moov: without it there is no edit list, and times shift by the B-frames.
            options["movflags"] = "hybrid_fragmented+delay_moov"
        self._container = av.open(self._file, "w", format=self._format, container_options=options)
        width, height = frame.width + frame.width % 2, frame.height + frame.height % 2
        if (width, height) != (frame.width, frame.height):
            self._notice(
                "info",
                f"frames of {frame.width}x{frame.height} are padded to {width}x{height}:"
                " H.264 needs even sizes",
            )
        stream = self._container.add_stream(encoder, rate=self._rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = _TIME_BASE
        context = stream.codec_context
        context.time_base = _TIME_BASE
        context.gop_size = max(1, round(2 * self._rate))
        if encoder == "libx264":
            stream.options = {"crf": str(self._crf), "preset": self._preset}
        if self._threads:
            context.thread_count = self._threads
        self._stream = stream
        if frame.format in (PixelFormat.I420, PixelFormat.NV12):
            self._matrix, self._full = matrix_code(frame.color), is_full(frame.color)
        else:
            self._matrix, self._full = (1 if height >= _HD_HEIGHT else 6), False
        context.colorspace = self._matrix
        context.color_range = 2 if self._full else 1

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if self._stream is None:
            self._start(frame)
            self._source_id = frame.source_id
        elif frame.source_id != self._source_id:
            self._notice(
                "warning",
                "frames of several sources follow each other in one video; with {source} in its"
                " name, each has its own",
            )
        picture = self._picture(frame)
        pts = round(frame.pts_ns * _TIME_BASE.denominator / 1e9)
        if self._last_pts is not None and pts <= self._last_pts:
            step = round(_TIME_BASE.denominator / float(self._rate))
            self._notice("info", "times that do not increase are replaced by the frame rate")
            pts = self._last_pts + step
        self._last_pts = pts
        picture.pts, picture.time_base = pts, _TIME_BASE
        try:
            self._container.mux(self._stream.encode(picture))
        except (ValueError, RuntimeError, av.error.FFmpegError) as error:
            if isinstance(error, OSError):
                raise
            self._broken = True
            size = f"{self._stream.width}x{self._stream.height}"
            raise MediaError(
                f"the encoder refuses frame {meta.frame} of {size}: {error}", where=str(self.path)
            ) from error
        if self._file is not None and self._file.interrupted:
            self._file.interrupted = False
            raise KeyboardInterrupt

    def _picture(self, frame: Frame) -> Any:
        """`frame` as the encoder takes it."""
        width, height = self._stream.width, self._stream.height
        padded = (frame.width + frame.width % 2, frame.height + frame.height % 2)
        planar = frame.format in (PixelFormat.I420, PixelFormat.NV12)
        picture = to_av(frame, width=padded[0], height=padded[1])
        same_color = not planar or (
            (matrix_code(frame.color), is_full(frame.color)) == (self._matrix, self._full)
        )
        if padded != (width, height):
            self._notice("warning", "frames change size: later ones are fitted into the first")
            return self._fitted(picture, width, height)
        if frame.format is PixelFormat.I420 and same_color:
            return picture
        return self._reformat(picture, width, height)

    def _reformat(self, picture: Any, width: int, height: int) -> Any:
        if self._fit is None:
            self._fit = VideoReformatter()
        return self._fit.reformat(
            picture,
            width=width,
            height=height,
            format="yuv420p",
            dst_colorspace=self._matrix,
            dst_color_range=2 if self._full else 1,
            interpolation="BILINEAR",
        )

    def _fitted(self, picture: Any, width: int, height: int) -> Any:
        """`picture` scaled into a black one of `width` x `height`, keeping its shape."""
        ratio = min(width / picture.width, height / picture.height)
        w = max(2, int(picture.width * ratio) // 2 * 2)
        h = max(2, int(picture.height * ratio) // 2 * 2)
        small = self._reformat(picture, w, h)
        canvas = av.VideoFrame(width, height, "yuv420p")
        x, y = (width - w) // 4 * 2, (height - h) // 4 * 2
        for i, black in enumerate((0 if self._full else 16, 128, 128)):
            shift = int(i > 0)
            to, source = canvas.planes[i], small.planes[i]
            out = plane_array(to, (to.height, to.width))
            inner = plane_array(source, (source.height, source.width))
            out[:] = black
            top, left = y >> shift, x >> shift
            out[top : top + source.height, left : left + source.width] = inner
        canvas.colorspace, canvas.color_range = self._matrix, 2 if self._full else 1
        return canvas

    def _finish(self) -> None:
        if self._container is None:
            if not self._broken:
                self._notice("warning", "no frame came, so no video was written")
            return
        assert self._file is not None
        failure: OSError | None = None
        try:
            if not self._broken:
                self._container.mux(self._stream.encode(None))
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
        if self._file.sealed:
            self.kept = self._cut()
        if self.kept == 0 or not self.frames:
            self._part.unlink(missing_ok=True)
        else:
            os.replace(self._part, self._target)
        if failure is not None:
            raise failure

    def _cut(self) -> int:
        """Cut the file behind the last part that plays; return the frames in it."""
        try:
            with self._part.open("r+b") as file:
                whole = whole_matroska if self._format == "matroska" else whole_mp4
                end, frames = whole(file)
                file.truncate(end)
        except OSError:  # it was removed
            return 0
        return min(frames, self.frames)


class _Output:
    """The file under FFmpeg: system errors keep their number, and a failed file stays as it is.

    Every byte has its explicit place, so a write that Ctrl-C broke into is simply done again; the
    interrupt is raised when FFmpeg is done.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._fd = create(path, name, follow=False)
        self._at = self._end = 0
        self.sealed = False
        self.interrupted = False

    def write(self, data: bytes) -> int:
        view, at = memoryview(data), self._at
        end = at + len(view)
        while at < end and not self.sealed:
            try:
                at += os.pwrite(self._fd, view[at - end :], at)
            except KeyboardInterrupt:
                self.interrupted = True
        self._at, self._end = end, max(self._end, end)
        return len(view)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        os.close(self._fd)

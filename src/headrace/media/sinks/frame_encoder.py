"""Encoded video of frames of any size, format and time: H.264, or another codec if asked."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import av
from av.video.reformatter import VideoReformatter

from headrace._core.errors import MediaError
from headrace._core.findings import Level
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, is_full, matrix_code
from headrace.media.pixels import plane_array, to_av
from headrace.media.sinks.coding import CODEC_NAMES, ENCODERS, Coding
from headrace.media.sources.decoded import reason_of
from headrace.meta import FrameMeta

_WITH_OPTIONS = ("libx264", "libx265")
_TIME_BASE = Fraction(1, 90_000)  # fine enough for any frame rate, exact for the usual ones
_COARSE_BASE = Fraction(1, 60_000)  # MPEG-4 has 16 bits for it
_SLOW_FPS = 8.0  # above it an encoder holds two seconds at most
_HD_HEIGHT = 720  # from here on RGB becomes BT.709, as players assume
_ended: list[bool] = []  # an entry for each encoder that nobody has any more


class FrameEncoder:
    """Encodes the frames of one source into a stream of a container.

    Odd sizes are padded to even ones; frames of another size than the first are fitted into it with
    black bars. Frames keep their times, as long as these rise.

    Args:
        container: of FFmpeg, open for writing.
        frame: the first one; not encoded yet.
        rate: expected frames per second.
        name: of the output, for errors.
        notice: called with each decision.
        options: of libx264.
        threads: encoder threads; None lets the encoder choose.
        gop_s: seconds from one key frame to the next.
        coding: the codec and its settings; None is H.264.

    Raises:
        MediaError: this FFmpeg has no H.264 encoder.
    """

    def __init__(
        self,
        container: Any,
        frame: Frame,
        *,
        rate: Fraction,
        name: str,
        notice: Callable[[str, Level, str], None],
        options: Mapping[str, str],
        threads: int | None = None,
        gop_s: float = 2.0,
        coding: Coding | None = None,
    ) -> None:
        if _ended:
            # PyAV's containers and streams hold each other: tens of MB of an encoder would wait for
            # the next full collection, which a service of few objects does not see for hours
            _ended.clear()
            gc.collect()
        weakref.finalize(self, _ended.append, True).atexit = False
        coding = coding or Coding()
        known = ENCODERS[coding.codec]
        encoder = next((e for e in known if e in av.codecs_available), None)
        if encoder is None:
            raise MediaError(f"this FFmpeg has no {CODEC_NAMES[coding.codec]} encoder", where=name)
        self._name, self._rate, self._notice = name, rate, notice
        self._time_base = _COARSE_BASE if coding.codec == "mpeg4" else _TIME_BASE
        self._fit: VideoReformatter | None = None
        self._last_pts: int | None = None
        self._source_id = frame.source_id
        width, height = frame.width + frame.width % 2, frame.height + frame.height % 2
        if (width, height) != (frame.width, frame.height):
            self._notice(
                "frames-padded",
                "info",
                f"frames of {frame.width}x{frame.height} are padded to {width}x{height}:"
                f" {CODEC_NAMES[coding.codec]} needs even sizes",
            )
        stream: av.VideoStream = container.add_stream(encoder, rate=self._rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = self._time_base
        context = stream.codec_context
        context.time_base = self._time_base
        context.gop_size = coding.gop or max(1, round(gop_s * float(self._rate)))
        if encoder in _WITH_OPTIONS:
            usual = dict(options)
            if frame.live and min(float(rate), frame.fps or float(rate)) < _SLOW_FPS:
                usual["tune"] = (
                    "zerolatency"  # else a kill loses the dozen frames of its look-ahead
                )
            stream.options = {**coding.options(usual)}
        if coding.bitrate is not None:
            context.bit_rate = coding.bitrate
        if threads:
            context.thread_count = threads
        self._stream = stream
        if frame.format in (PixelFormat.I420, PixelFormat.NV12):
            self._matrix, self._full = matrix_code(frame.color), is_full(frame.color)
        else:
            self._matrix, self._full = (1 if height >= _HD_HEIGHT else 6), False
        context.colorspace = self._matrix
        context.color_range = 2 if self._full else 1

    def encode(self, frame: Frame, meta: FrameMeta) -> list[av.Packet[av.VideoStream]]:
        """The packets that are ready after one more frame.

        Raises:
            MediaError: the encoder refuses it.
        """
        if frame.source_id != self._source_id:
            self._notice(
                "sources-in-one-video",
                "warning",
                "frames of several sources follow each other in one video; with {source} in its"
                " name, each has its own",
            )
        image = self._image(frame)
        pts = round(frame.pts_ns * self._time_base.denominator / 1e9)
        if self._last_pts is not None and pts <= self._last_pts:
            step = round(self._time_base.denominator / float(self._rate))
            self._notice(
                "times-replaced",
                "info",
                "frames whose time does not rise follow the one before at the usual distance",
            )
            pts = self._last_pts + step
        self._last_pts = pts
        image.pts, image.time_base = pts, self._time_base
        try:
            return self._stream.encode(image)
        except (ValueError, RuntimeError, av.error.FFmpegError) as error:
            if isinstance(error, OSError):
                raise
            size = f"{self._stream.width}x{self._stream.height}"
            raise MediaError(
                f"the encoder refuses frame {meta.frame} of {size}: {reason_of(error)}",
                where=self._name,
            ) from error

    def flush(self) -> list[av.Packet[av.VideoStream]]:
        """The packets that the encoder still holds."""
        return self._stream.encode(None)

    def _image(self, frame: Frame) -> av.VideoFrame:
        """`frame` as the encoder takes it."""
        width, height = self._stream.width, self._stream.height
        padded = (frame.width + frame.width % 2, frame.height + frame.height % 2)
        planar = frame.format in (PixelFormat.I420, PixelFormat.NV12)
        image = to_av(frame, width=padded[0], height=padded[1])
        same_color = not planar or (
            (matrix_code(frame.color), is_full(frame.color)) == (self._matrix, self._full)
        )
        if padded != (width, height):
            self._notice(
                "frames-resized",
                "warning",
                "frames change size: later ones are fitted into the first",
            )
            return self._fitted(image, width, height)
        if frame.format is PixelFormat.I420 and same_color:
            return image
        return self._reformat(image, width, height)

    def _reformat(self, image: av.VideoFrame, width: int, height: int) -> av.VideoFrame:
        if self._fit is None:
            self._fit = VideoReformatter()
        return self._fit.reformat(
            image,
            width=width,
            height=height,
            format="yuv420p",
            dst_colorspace=self._matrix,
            dst_color_range=2 if self._full else 1,
            interpolation="BILINEAR",
        )

    def _fitted(self, image: av.VideoFrame, width: int, height: int) -> av.VideoFrame:
        """`image` scaled into a black one of `width` x `height`, keeping its shape."""
        ratio = min(width / image.width, height / image.height)
        w = max(2, int(image.width * ratio) // 2 * 2)
        h = max(2, int(image.height * ratio) // 2 * 2)
        small = self._reformat(image, w, h)
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

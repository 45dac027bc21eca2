"""Base of decoded sources: packets to images, images to frames with rising times."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from queue import SimpleQueue
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import av
from av.codec.context import Flags
from av.video.reformatter import VideoReformatter

from headrace._core.errors import MediaError
from headrace._core.gpu.cuda import decoder_begins, decoder_ends
from headrace._core.gpu.driver_turn import DriverTurn
from headrace._core.text import error_text
from headrace.media.device_planes import DevicePlanes
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat, color_space
from headrace.media.pixels import views_of
from headrace.media.sources.base import Source
from headrace.media.sources.gpu_decoding import ON_GPU, on_cpu_instead
from headrace.media.sources.packet_ring import PacketRing
from headrace.media.sources.parameter_sets import reference_images
from headrace.media.sources.wall_clock import wall_time_of_zero

if TYPE_CHECKING:
    from fractions import Fraction


_FROM_ZERO = ("matroska,webm",)  # their length is the time of the end, wherever they begin
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG


class _Turns:
    """Lets at most `count` threads through at once.

    Others sleep in C. A `threading.Semaphore` wakes them in Python, where they also take turns for
    its lock: with 32 of 60 threads through, that cost 262 us of a processor a frame, this 214.
    """

    def __init__(self, count: int) -> None:
        free: SimpleQueue[None] = SimpleQueue()
        for _ in range(count):
            free.put(None)
        self._take, self._leave = free.get, free.put

    def __enter__(self) -> None:
        self._take()

    def __exit__(self, *_: object) -> None:
        self._leave(None)


@cache
def _turns(gpu: int, live: bool) -> _Turns:
    """Decoders of videos, or of live streams, that call the driver for a GPU at once.

    It serves one at a time, and its video unit is busy with 8. A live image is waited for within
    the call, and the engine's calls wait behind it.
    """
    return _Turns(8 if live else 32)


_VIEWS = {
    "yuv420p": PixelFormat.I420,
    "yuvj420p": PixelFormat.I420,
    "nv12": PixelFormat.NV12,
    "gray": PixelFormat.GRAY,
    "rgb24": PixelFormat.RGB,
    "bgr24": PixelFormat.BGR,
}
# Layouts of images on a GPU: whether their samples have 16 bits.
_SURFACES = {"nv12": False, "p010le": True, "p012le": True, "p016le": True}


turn_of = cache(DriverTurn)
"""The turn of a GPU."""


class FrameReader:
    """Turns decoded `av.VideoFrame`s into `Frame`s; keeps one swscale context for odd formats.

    Args:
        gpu: number of the GPU that decodes, if one does.

    Attributes:
        converted: pixel format of the last frame that had to be converted and what it became.
    """

    def __init__(self, gpu: int | None = None) -> None:
        self._gpu = gpu or 0
        self.converted: tuple[str, str] | None = None
        self._reformatter: av.video.reformatter.VideoReformatter | None = None

    def read(
        self,
        image: Any,  # PyAV's types know no frame on a GPU
        *,
        pts_ns: int,
        frame: int,
        source: str = "",
        source_id: int = 0,
        wall_ns: int | None = None,
        fps: float | None = None,
        live: bool = False,
    ) -> Frame:
        """A `Frame` over `image`: read-only views, no copy for the common formats."""
        name = image.format.name
        if name == ON_GPU:
            known = self._on_gpu(image)
            if known is not None:
                full = int(image.color_range) == _FULL_RANGE
                color = color_space(int(image.colorspace), full)
                size = image.width, image.height
                return Frame(
                    known, known.format, *size, color, pts_ns, frame, source, source_id,
                    wall_ns=wall_ns, fps=fps, live=live,
                )  # fmt: skip
            image = image.reformat(format=image.sw_format.name)  # copies it to the host
            name = image.format.name
        full = name.startswith("yuvj") or int(image.color_range) == _FULL_RANGE
        format = _VIEWS.get(name)
        planes = image.planes  # makes new objects each time
        if format is None or any(plane.line_size < 0 for plane in planes):
            image, format = self._convert(image, full)
            planes = image.planes
        width, height = image.width, image.height
        return Frame(
            views_of(planes, format, width, height),
            format,
            width,
            height,
            color_space(int(image.colorspace), full),
            pts_ns,
            frame,
            source,
            source_id,
            image,
            wall_ns,
            fps,
            live,
        )

    def _on_gpu(self, image: Any) -> DevicePlanes | None:
        """The planes where they are; None of a layout that only the host reads."""
        wide = _SURFACES.get(image.sw_format.name)
        return None if wide is None else DevicePlanes(image, wide=wide, gpu=self._gpu)

    def _convert(self, image: av.VideoFrame, full: bool) -> tuple[av.VideoFrame, PixelFormat]:
        if self._reformatter is None:
            self._reformatter = VideoReformatter()
        name = image.format.name
        if image.format.is_rgb or name == "pal8":
            target, format = "rgb24", PixelFormat.RGB
        elif len(image.format.components) < 3:
            target, format = "gray", PixelFormat.GRAY
        else:
            # The range stays what it was: yuvj420p is full-range I420 to swscale.
            target, format = ("yuvj420p" if full else "yuv420p"), PixelFormat.I420
        self.converted = (name, target)
        matrix = image.colorspace
        image = self._reformatter.reformat(image, format=target)
        if format is PixelFormat.I420:
            image.colorspace = matrix
        return image, format


DEFAULT_FPS = 25.0
MAX_ERRORS_IN_A_ROW = 250  # a stream that gives nothing but errors is not worth waiting for

Images = Generator["av.VideoFrame", None, str | None]


def reason_of(error: BaseException) -> str:
    """FFmpeg's reason, without the address it is about; of others, kind and text."""
    text = getattr(error, "strerror", None)
    if text:
        return str(text).lower()
    if isinstance(error, OSError):
        return "time-out" if isinstance(error, TimeoutError) else type(error).__name__
    return error_text(error)


class Decoding(NamedTuple):
    """Shortcuts of a decoder.

    Attributes:
        key_frames_only: it decodes no image that needs another one.
        low_delay: it gives each image at once; images that need later ones come in wrong order.
    """

    key_frames_only: bool = False
    low_delay: bool = False


_WHOLE = Decoding()


def pick_stream(
    container: av.container.InputContainer,
    name: str,
    *,
    threads: int | None,
    live: bool,
    decoding: Decoding = _WHOLE,
) -> av.VideoStream:
    """The first video stream of an open container, its decoder set up.

    Raises:
        MediaError: there is none, or this FFmpeg cannot decode it.
    """
    streams = container.streams.video
    if not streams:
        kinds = ", ".join(sorted({s.type for s in container.streams})) or "no streams"
        raise MediaError(
            f"there is no video in it ({kinds})",
            where=name,
            expected="a file or stream with a video track",
        )
    context = streams[0].codec_context
    if context is None:
        raise MediaError("its video codec is unknown to this FFmpeg", where=name)
    context.thread_count = 1 if context.is_hwaccel else threads or 2
    context.thread_type = "SLICE" if live or decoding.low_delay else "AUTO"
    if decoding.low_delay:
        context.flags |= Flags.low_delay
    if decoding.key_frames_only:
        context.skip_frame = "NONKEY"
    return streams[0]


class Timeline:
    """Times that always rise, also where those of the stream do not.

    A missing time follows the last by one frame. A time that does not rise shifts itself and all
    that follow, so that distances stay what they are. After `away` the next image follows the
    last by as long as that took.

    Attributes:
        missing, shifted: whether either has happened.
    """

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self.missing = False
        self.shifted = False
        self._last_ns: int | None = None
        self._last_at_ns = 0
        self._offset_ns = 0
        self._away = False

    @property
    def offset_ns(self) -> int:
        """Nanoseconds by which times are shifted at present."""
        return self._offset_ns

    def away(self) -> None:
        """The next image comes from a new connection, with times of its own."""
        self._away = True

    def next_ns(self, pts: int | None, base: Fraction | None) -> int:
        """The time of an image in nanoseconds: `pts` in units of the fraction `base` seconds."""
        last = self._last_ns
        if pts is None or not base:
            self.missing = True
            time_ns = 0 if last is None else last + self.step_ns
            if self._away:
                time_ns += max(0, monotonic_ns() - self._last_at_ns - self.step_ns)
        else:
            raw_ns = round(pts * base.numerator * 1_000_000_000 / base.denominator)
            time_ns = raw_ns + self._offset_ns
            if last is not None and self._away:
                time_ns = last + max(self.step_ns, monotonic_ns() - self._last_at_ns)
            elif last is not None and time_ns <= last:
                self.shifted = True
                time_ns = last + self.step_ns
            self._offset_ns = time_ns - raw_ns
        self._away = False
        self._last_ns, self._last_at_ns = time_ns, monotonic_ns()
        return time_ns


class DecodedSource(Source):
    """A source decoded by FFmpeg. Frames are views where `FrameReader` can.

    Attributes:
        given: frames given so far.
        reference_images: how many the decoder keeps for others; 0 where the video does not say.
    """

    def __init__(
        self,
        name: str,
        source_id: int,
        threads: int | None,
        fps: float | None,
        *,
        gpu: int | None = None,
    ) -> None:
        super().__init__(name, source_id)
        self._gpu, self.begins_late = gpu, gpu is not None
        self.given = self.reference_images = 0
        self._threads = threads
        self._asked_fps = fps
        self._reader = FrameReader(gpu)
        self._timeline = Timeline(round(1e9 / DEFAULT_FPS))
        self._packet_ring: PacketRing | None = None
        self._shift_ns = 0  # of the times in the ring
        self._first_number = 0  # frames given when the numbers began anew
        self._began_ns: int | None = None  # wall-clock time of the presentation time 0

    def _wall_ns(self, pts_ns: int, pts: int | None) -> int | None:
        """When an image was taken; `pts` is its time in the stream."""
        if self.live:
            return time_ns()
        return None if self._began_ns is None else self._began_ns + pts_ns

    def keep_packets(self, before_s: float) -> PacketRing | None:
        """Keep the video's last packets, for clips."""
        self._packet_ring = self._packet_ring or PacketRing(before_s)
        return self._packet_ring

    def go_on_keeping(self, ring: PacketRing, shift_ns: int) -> None:
        """Keep packets in the ring of the source that this one follows."""
        self._packet_ring, self._shift_ns = ring, shift_ns

    def _describe(self, container: av.container.InputContainer, stream: av.VideoStream) -> None:
        """Take size, rate and length from an open container."""
        context = stream.codec_context
        self.width, self.height = context.width, context.height
        known = reference_images(context.codec.canonical_name, context.extradata or b"")
        self.reference_images = known or 0
        self._began_ns = None if self.live else wall_time_of_zero(container, stream)
        rate = stream.average_rate or stream.guessed_rate
        self.fps = self._asked_fps or (float(rate) if rate else None)
        self.frames = None if self.live else self._expected_frames(container, stream)
        self._timeline.step_ns = round(1e9 / (self.fps or DEFAULT_FPS))

    def _expected_frames(self, container: av.container.InputContainer, stream: Any) -> int | None:
        if stream.frames:
            return int(stream.frames)
        if not self.fps:
            return None
        seconds = 0.0
        if stream.duration:
            seconds = float(stream.duration * stream.time_base)
        elif container.duration:
            seconds = float(container.duration) / 1e6
            if container.format.name in _FROM_ZERO and stream.start_time:
                seconds -= float(stream.start_time * stream.time_base)
        return round(seconds * self.fps) or None

    @abstractmethod
    def _images(self) -> Generator[av.VideoFrame, None, None]:
        """Whole `av.VideoFrame`s in display order."""

    def _release(self) -> None:
        decoder_ends(self)

    def _finished(self) -> None:
        """Add notices of damaged and missing frames at the end."""
        if self.skipped:
            plural = "s were" if self.skipped > 1 else " was"
            self._notice(
                "frames-damaged", "warning", f"{self.skipped} damaged frame{plural} left out"
            )

    def _seen(self, packet: av.Packet[av.VideoStream]) -> None:
        """A packet with data is about to be decoded."""

    def _turn(self) -> AbstractContextManager[None]:
        on_gpu = self._gpu is not None and self.decoder == ON_GPU
        return _turns(self._gpu or 0, self.live) if on_gpu else nullcontext()

    def _decode(
        self, stream: av.VideoStream, packets: Iterable[av.Packet[av.VideoStream] | None]
    ) -> Images:
        """Whole images; damaged ones are counted and left out.

        Returns:
            Why it gave up, or None at the end of `packets` (whose last may be None: to flush).
        """
        context, errors_in_a_row = stream.codec_context, 0
        makes = self.begins_late and not (self.live or self.decoder)
        keys_only = context.skip_frame == "NONKEY"
        if self._packet_ring is not None:
            self._packet_ring.begin(stream)
        for packet in packets:
            if self._closing.is_set():
                return None
            if packet is not None and packet.size:
                self._seen(packet)
                if self._packet_ring is not None:
                    self._packet_ring.add(packet)
                if keys_only and not packet.is_keyframe:
                    continue  # some decoders give them all the same
            try:
                with turn_of(self._gpu or 0) if makes else self._turn():
                    images = context.decode(packet)
            except av.error.EOFError:
                return None
            except (av.error.FFmpegError, ValueError):
                self.skipped += 1
                errors_in_a_row += 1
                if errors_in_a_row == MAX_ERRORS_IN_A_ROW:
                    return f"gave up after {errors_in_a_row} broken frames"
                continue
            makes = False
            for image in images:
                errors_in_a_row = 0
                if image.is_corrupt:
                    self.skipped += 1
                else:
                    yield image
        return None

    def _read(self) -> Generator[Frame, None, None]:
        timeline, first = self._timeline, True
        for image in self._images():
            pts_ns = timeline.next_ns(image.pts, image.time_base)
            if self._packet_ring is not None:
                self._packet_ring.offset_ns = timeline.offset_ns + self._shift_ns
            if timeline.missing:
                self._notice(
                    "times-replaced",
                    "info",
                    f"frames without a time stamp are timed at {1e9 / timeline.step_ns:g} fps",
                )
            if timeline.shifted:
                self._notice(
                    "times-replaced",
                    "info",
                    "times that went back are shifted, so that they always rise",
                )
            if first:
                self.width, self.height = image.width, image.height
                self.decoder = ON_GPU if image.format.name == ON_GPU else "cpu"
                if self.decoder == ON_GPU:
                    decoder_begins(self)
                if self._gpu is not None and self.decoder != ON_GPU:
                    self._notice(
                        "decoded-on-cpu", "info", on_cpu_instead(image.format.name, self._gpu)
                    )
                if getattr(image, "rotation", 0):
                    self._notice(
                        "rotation-ignored",
                        "warning",
                        f"the file asks players to turn it by {image.rotation} degrees;"
                        " frames are used as they are stored",
                    )
            frame = self._reader.read(
                image,
                pts_ns=pts_ns,
                frame=self.given - self._first_number,
                source=self.name,
                source_id=self.source_id,
                wall_ns=self._wall_ns(pts_ns, image.pts),
                fps=self.fps,
                live=self.live,
            )
            if first and self._reader.converted:
                name, target = self._reader.converted
                self._notice(
                    "pixels-converted", "info", f"pixel format {name} is converted to {target}"
                )
            first = False
            self.given += 1
            del image  # one frame less alive while the consumer works
            yield frame
        if self._closing.is_set():
            return
        self._finished()
        if self.given == 0:
            raise MediaError(
                "not one frame could be decoded",
                where=self.name,
                fix=[f"{n:brief}" for n in self.notices],
            )

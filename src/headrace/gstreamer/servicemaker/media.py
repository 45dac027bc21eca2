"""Frames of videos for an application, in queues: `MediaExtractor` and its parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread, current_thread
from types import TracebackType
from typing import Any

from headrace._core.errors import ConfigError, MediaError
from headrace._core.threads import say_failure, start_thread
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.register import register
from headrace.gstreamer.servicemaker.tensor import Buffer, Tensor

_POLL_NS = 200_000_000
_POLL_S = 0.2
_FAR_NS = 2_000_000_000  # a jump of the decoder pays from here


@dataclass(frozen=True)
class MediaChunk:
    """A part of a video.

    Attributes:
        source: path or address.
        start_pts: of the first frame, in ns.
        duration: in ns; -1: to the end.
        interval: between two frames, in ns; 0: every frame.
    """

    source: str
    start_pts: int = 0
    duration: int = -1
    interval: int = 0


class VideoFrame:
    """A decoded frame; `tensor` is (height, width, 3) uint8, RGB.

    Args:
        data: the tensor.
        timestamp: in ns; -1 if it is not known.
    """

    def __init__(self, data: Tensor, timestamp: int = -1) -> None:
        self._data, self._timestamp = data, timestamp

    @property
    def timestamp(self) -> int:
        """Time of presentation, in ns."""
        return self._timestamp

    @property
    def tensor(self) -> Tensor:
        """The pixels."""
        return self._data


class FrameSampler:
    """Chooses the frames of a part.

    Args:
        chunk: the part.
        seek_fn: is called with a time in ns where the next frame lies far ahead.
    """

    def __init__(self, chunk: MediaChunk, seek_fn: Callable[[int], object] | None = None) -> None:
        self._chunk, self._seek = chunk, seek_fn
        self._next_ns = chunk.start_pts
        self._done = False

    @property
    def done(self) -> bool:
        """True once a frame behind the part came."""
        return self._done

    def sample(self, buffer: Buffer, pts: int) -> VideoFrame | None:
        """Take a frame that the part asks for; None for another one.

        Args:
            buffer: with the image.
            pts: its time, in ns.
        """
        chunk = self._chunk
        if chunk.duration >= 0 and pts >= chunk.start_pts + chunk.duration:
            self._done = True
            return None
        if pts < self._next_ns:
            return None
        if chunk.interval > 0:
            passed = (pts - chunk.start_pts) // chunk.interval + 1
            self._next_ns = chunk.start_pts + passed * chunk.interval
            if self._seek is not None and self._next_ns - pts > _FAR_NS:
                self._seek(self._next_ns)
        return VideoFrame(buffer.extract(0).clone(), pts)


class MediaExtractor:
    """Decodes parts of videos in threads of its own; each part has a queue of frames.

    `None` ends a queue. A video that cannot be read ends its queue at once, and stderr names it.

    Args:
        chunks: the parts; without, `append` adds them while it runs.
        batch_size: parts that are decoded at the same time at least; 0: as `n_thread` says.
        scaling: width and height of the frames, in pixels.
        n_thread: parts that are decoded at the same time.
        q_size: frames that wait in a queue.
        enable_seek: jump where frames lie far apart, instead of decoding all.
        blocking: wait while a queue is full; False drops the frame.

    Raises:
        ConfigError: a size or a number does not fit.
    """

    def __init__(
        self,
        chunks: Sequence[MediaChunk] | None = None,
        batch_size: int = 0,
        scaling: tuple[int, int] = (1920, 1080),
        n_thread: int = 1,
        q_size: int = 1,
        enable_seek: bool = False,
        blocking: bool = False,
    ) -> None:
        if min(*scaling, n_thread, q_size) < 1 or batch_size < 0:
            raise ConfigError(
                f"scaling {scaling}, n_thread {n_thread}, q_size {q_size}, batch_size {batch_size}",
                expected="positive numbers; a batch_size of 0 or more",
            )
        self._size, self._room = scaling, q_size
        self._seeks, self._blocks = enable_seek, blocking
        self._fixed = chunks is not None
        self._work: Queue[tuple[MediaChunk, Queue[VideoFrame | None]]] = Queue()
        self._queues = [self._add(chunk) for chunk in chunks or ()]
        self._number = max(n_thread, batch_size)
        self._threads: list[Thread] = []
        self._parts: dict[Thread, tuple[MediaChunk, Queue[VideoFrame | None]]] = {}  # at work
        self._starting = Lock()
        self._closed = Event()

    def _add(self, chunk: MediaChunk) -> Queue[VideoFrame | None]:
        queue: Queue[VideoFrame | None] = Queue(self._room)
        self._work.put((chunk, queue))
        return queue

    def __call__(self) -> list[Queue[VideoFrame | None]]:
        """Start, and return the queue of each part."""
        with self._starting:
            while len(self._threads) < self._number and not self._closed.is_set():
                self._threads.append(
                    start_thread(self._run, name="headrace-media", failed=self._failed)
                )
        return self._queues

    def append(self, chunk: MediaChunk) -> Queue[VideoFrame | None]:
        """Add a part, and return its queue.

        Raises:
            ConfigError: the extractor was made with parts.
        """
        if self._fixed:
            raise ConfigError(
                "an extractor that was made with chunks takes no more", fix="chunks=None"
            )
        queue = self._add(chunk)
        self()
        return queue

    def __enter__(self) -> MediaExtractor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all decoding; queues may keep frames."""
        self._closed.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        me = current_thread()
        while not self._closed.is_set():
            try:
                chunk, queue = self._parts[me] = self._work.get(timeout=_POLL_S)
            except Empty:
                if self._fixed:
                    return
                continue
            try:
                self._extract(chunk, queue)
            except BaseException as error:  # the queue ends, whatever it is
                say_failure(f"MediaExtractor: {chunk.source}", error)
            self._put(queue, None, wait=True)
            del self._parts[me]

    def _failed(self, error: Exception) -> None:
        """End the queue of a thread that failed, and those that no thread is left for."""
        say_failure("MediaExtractor", error)
        me = current_thread()
        parts = [self._parts[me]] if me in self._parts else []
        if not any(thread.is_alive() for thread in self._threads if thread is not me):
            with suppress(Empty):
                while True:
                    parts.append(self._work.get_nowait())
        for _, queue in parts:
            self._put(queue, None, wait=True)

    def _put(
        self, queue: Queue[VideoFrame | None], frame: VideoFrame | None, *, wait: bool
    ) -> None:
        while not self._closed.is_set():
            try:
                queue.put(frame, timeout=_POLL_S if wait else 0)
            except Full:
                if wait:
                    continue
            return

    def _extract(self, chunk: MediaChunk, queue: Queue[VideoFrame | None]) -> None:
        video = _Video(chunk.source, self._size)
        try:
            if self._seeks and chunk.start_pts > 0:
                video.seek(chunk.start_pts)
            sampler = FrameSampler(chunk, video.seek if self._seeks else None)
            while not (self._closed.is_set() or sampler.done):
                read = video.read(self._closed)
                if read is None:
                    return
                frame = sampler.sample(*read)
                if frame is not None:
                    self._put(queue, frame, wait=self._blocks)
        finally:
            video.close()


class _Video:
    """A video that is decoded to RGB of one size, frame by frame."""

    def __init__(self, source: str, size: tuple[int, int]) -> None:
        uri = source if "://" in source else Path(os.path.abspath(source)).as_uri()
        register()
        self._pipeline = Gst.parse_launch(
            "nvurisrcbin name=source ! nvvideoconvert ! "
            f"video/x-raw, format=RGB, width={size[0]}, height={size[1]} ! "
            "appsink name=sink sync=false max-buffers=2"
        )
        self._pipeline.get_by_name("source").set_property("uri", uri)
        self._sink = self._pipeline.get_by_name("sink")
        self._pipeline.set_state(Gst.State.PLAYING)

    def seek(self, time_ns: int) -> None:
        """Jump to a time; frames before it do not come."""
        self._pipeline.get_state(10 * Gst.SECOND)
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE
        self._pipeline.seek_simple(Gst.Format.TIME, flags, time_ns)

    def read(self, closed: Event) -> tuple[Buffer, int] | None:
        """Return the next frame and its time from the start of the video, in ns; None at the end.

        Raises:
            MediaError: the video cannot be read.
        """
        while not closed.is_set():
            sample: Any = self._sink.emit("try-pull-sample", _POLL_NS)
            if sample is not None:
                buffer = sample.get_buffer()
                time_ns = sample.get_segment().to_stream_time(Gst.Format.TIME, buffer.pts)
                return Buffer.of(buffer, sample.get_caps()), int(time_ns)
            message = self._pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            if message is not None:
                raise MediaError(message.parse_error()[0].message)
            if self._sink.get_property("eos"):
                return None
        return None

    def close(self) -> None:
        """Stop decoding."""
        self._pipeline.set_state(Gst.State.NULL)

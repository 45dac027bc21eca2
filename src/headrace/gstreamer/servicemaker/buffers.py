"""Buffers of a pipeline: those that an application takes out, and those that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace.gstreamer.elements.bindings import Gst, GstVideo
from headrace.gstreamer.elements.surface import CapsReader, packed
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.servicemaker.metadata import BatchMetadata
from headrace.gstreamer.servicemaker.tensor import Tensor


class Buffer:
    """A buffer with its metadata; without arguments an empty one, which ends a stream.

    Attributes:
        gst: GStreamer's buffer; None if it is empty.
    """

    def __init__(self, data: Sequence[int] | bytes | None = None) -> None:
        self.gst: Any = None if data is None else Gst.Buffer.new_wrapped(bytes(data))
        self._caps: Any = None

    @classmethod
    def of(cls, gst: Any, caps: Any = None) -> Buffer:
        """Show a buffer that is there; its caps tell the layout of its pictures."""
        made = cls()
        made.gst, made._caps = gst, caps
        return made

    def __bool__(self) -> bool:
        return self.gst is not None

    @property
    def timestamp(self) -> int:
        """Time of presentation, in nanoseconds."""
        return int(self.gst.pts)

    @property
    def batch_meta(self) -> BatchMetadata:
        """The metadata of its batch.

        Raises:
            MediaError: the buffer comes before the multiplexer and has none.
        """
        found = bridge().get(hash(self.gst))
        if found is None:
            raise MediaError("a buffer before nvstreammux has no metadata of a batch")
        return BatchMetadata.of(found)

    @property
    def batch_size(self) -> int:
        """Number of pictures."""
        found = bridge().get(hash(self.gst))
        return 1 if found is None else len(found.surfaces)

    def get_chunk_id(self, batch_id: int) -> int:
        """Return 0: no source here numbers its pieces."""
        return 0

    def extract(self, batch_id: int) -> Tensor:
        """Return a picture: (height, width, channels) uint8, in the format of the caps.

        The pixels of RGBA are the buffer's own: what is written is shown. YUV comes as RGB.

        Raises:
            MediaError: the buffer has no such picture.
        """
        batch = bridge().get(hash(self.gst))
        if not 0 <= batch_id < self.batch_size:
            raise MediaError(f"batch_id {batch_id} of a buffer of {self.batch_size} pictures")
        format = self._caps.get_structure(0).get_string("format") if self._caps else "RGB"
        if batch is None:
            if self._caps is None:
                raise MediaError("the buffer has no caps: its layout is unknown")
            surface = CapsReader(self._caps).surface(self.gst)
        else:
            surface = batch.surfaces[batch_id]
        if format == "RGBA" and batch is not None:
            return Tensor(surface.rgba(), "HWC")
        kept = format if format in ("RGB", "BGR", "RGBA") else "RGB"
        return Tensor(packed(surface.frame(), kept), "HWC")


def picture_buffer(values: npt.NDArray[np.uint8], format: str) -> Buffer:
    """Make a buffer of a picture.

    Args:
        values: (height, width[, channels]); NV12 and I420 have half as many rows again.
        format: GStreamer's name.
    """
    rows, width = values.shape[:2]
    height = rows * 2 // 3 if format in ("NV12", "I420") else rows
    info = GstVideo.VideoInfo.new()
    info.set_format(GstVideo.VideoFormat.from_string(format), width, height)
    flat = values.reshape(rows, -1)
    if info.size == flat.size:
        data = flat.tobytes()
    elif format == "I420" or format == "NV12":
        raise MediaError(f"{format} of {width} x {height}: width and height must be multiples of 4")
    else:  # GStreamer starts each row at a multiple of four bytes
        padded = np.zeros((rows, info.size // rows), np.uint8)
        padded[:, : flat.shape[1]] = flat
        data = padded.tobytes()
    return Buffer.of(Gst.Buffer.new_wrapped(data))


class BufferProvider:
    """Makes the pictures of an `appsrc`; a subclass has `generate`.

    Attributes:
        format: of the pictures, such as `RGB`.
        width, height: in pixels.
        framerate: pictures a second.
        device: `gpu` labels them as NVMM memory.
    """

    format = "RGB"
    width, height = 1280, 720
    framerate = 30
    device = "cpu"

    def generate(self, size: int) -> Buffer:
        """Return the next buffer; an empty one ends the stream.

        Args:
            size: bytes that the pipeline asks for.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method generate(size)")


class BufferRetriever:
    """Takes the buffers of an `appsink`; a subclass has `consume`."""

    def consume(self, buffer: Buffer) -> int:
        """Take a buffer.

        Returns:
            1; a negative number ends the pipeline with an error.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method consume(buffer)")


class Feeder:
    """Connects a provider to an `appsrc`."""

    def __init__(self, name: str, provider: BufferProvider) -> None:
        self.name, self._provider = name, provider

    def connect(self, element: Any, failed: Callable[[BaseException], None]) -> Callable[[], None]:
        """Answer each request of the element with a buffer.

        Args:
            element: an `appsrc`.
            failed: gets an exception of the provider; the stream ends.

        Returns:
            A function that takes the provider off.
        """
        if element.get_property("format") == Gst.Format.BYTES:
            element.set_property("format", Gst.Format.TIME)
        ended = False

        def feed(source: Any, size: int) -> None:
            nonlocal ended
            if ended:
                return
            buffer = None
            try:
                buffer = self._provider.generate(size)
            except Exception as error:  # the application's
                failed(error)
            if buffer:
                source.emit("push-buffer", buffer.gst)
            else:
                ended = True
                source.emit("end-of-stream")

        handler = element.connect("need-data", feed)
        return lambda: element.disconnect(handler)


class Receiver:
    """Connects a retriever to an `appsink`."""

    def __init__(self, name: str, retriever: BufferRetriever) -> None:
        self.name, self._retriever = name, retriever

    def connect(self, element: Any, failed: Callable[[BaseException], None]) -> Callable[[], None]:
        """Hand each buffer of the element over.

        Args:
            element: an `appsink`.
            failed: gets an exception of the retriever; the stream ends.

        Returns:
            A function that takes the retriever off.
        """
        element.set_property("emit-signals", True)

        def take(sink: Any) -> Any:
            sample = sink.emit("pull-sample")
            if sample is None:
                return Gst.FlowReturn.EOS
            try:
                code = self._retriever.consume(Buffer.of(sample.get_buffer(), sample.get_caps()))
            except Exception as error:  # the application's
                failed(error)
                return Gst.FlowReturn.ERROR
            return Gst.FlowReturn.ERROR if isinstance(code, int) and code < 0 else Gst.FlowReturn.OK

        handler = element.connect("new-sample", take)
        return lambda: element.disconnect(handler)

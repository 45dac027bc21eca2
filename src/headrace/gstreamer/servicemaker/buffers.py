"""Buffers that an application makes for a pipeline, and those that it takes out."""

from __future__ import annotations

from collections.abc import Callable

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.servicemaker.tensor import Buffer


class BufferProvider:
    """Makes the images of an `appsrc`; a subclass has `generate`.

    Attributes:
        format: of the images, such as `RGB`.
        width, height: in pixels.
        framerate: frames a second.
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

    def connect(
        self, element: Gst.Element, failed: Callable[[BaseException], None]
    ) -> Callable[[], None]:
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

        def feed(source: Gst.Element, size: int) -> None:
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

    def connect(
        self, element: Gst.Element, failed: Callable[[BaseException], None]
    ) -> Callable[[], None]:
        """Hand each buffer of the element over.

        Args:
            element: an `appsink`.
            failed: gets an exception of the retriever; the stream ends.

        Returns:
            A function that takes the retriever off.
        """
        element.set_property("emit-signals", True)

        def take(sink: Gst.Pad) -> Gst.FlowReturn:
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

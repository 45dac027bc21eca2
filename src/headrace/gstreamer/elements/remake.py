"""Base of the elements that make a new batch, of another size, of each one."""

from __future__ import annotations

from headrace.gstreamer.elements.bindings import BaseTransform, Gst
from headrace.gstreamer.elements.convert import relabelled
from headrace.gstreamer.elements.element import NvElement, guarded
from headrace.gstreamer.elements.streammux import DUMMY_BYTES
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsBatchMeta


class Remaking(NvElement, BaseTransform):
    """Gives for each batch another one, of the size that `width` and `height` name.

    Attributes:
        FRAMES: names of caps that the output does not share with the input.
    """

    FRAMES: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        # Else elements before it are asked for its own size first, and scale to it.
        self.set_prefer_passthrough(False)
        self.setup()

    def remade(self, batch: NvDsBatchMeta) -> NvDsBatchMeta:
        """Return the batch for the output."""
        raise NotImplementedError

    def do_transform_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, filter_caps: Gst.Caps | None
    ) -> Gst.Caps:
        """The output has the element's own size."""
        sizes = None
        if direction == Gst.PadDirection.SINK:
            sizes = {"width": int(self.values["width"]), "height": int(self.values["height"])}
        new_caps = relabelled(caps, True, ("width", "height", *self.FRAMES), sizes)
        return new_caps if filter_caps is None else filter_caps.intersect(new_caps)

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(self, buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        """Give out the remade batch in a buffer of its own."""
        batch = self.batch_of(buffer)
        outbuf = Gst.Buffer.new_allocate(None, DUMMY_BYTES, None)
        outbuf.pts, outbuf.duration = buffer.pts, buffer.duration
        bridge().attach(hash(outbuf), self.remade(batch))
        return Gst.FlowReturn.OK, outbuf

    def do_transform(self, buffer: Gst.Buffer, outbuf: Gst.Buffer) -> Gst.FlowReturn:
        """Do nothing: the output was made whole."""
        return Gst.FlowReturn.OK

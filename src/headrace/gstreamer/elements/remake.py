"""Base of the elements that make a new batch, of another size, of each one."""

from __future__ import annotations

from headrace.gstreamer.elements.bindings import BaseTransform, Gst, structure_of
from headrace.gstreamer.elements.convert import relabelled
from headrace.gstreamer.elements.element import NvElement, guarded, reported
from headrace.gstreamer.elements.tree import batch_buffer
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
        self._format = "NV12"
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

    @reported(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        """Note the format of the images."""
        self._format = structure_of(outcaps).get_string("format")
        return True

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(self, buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        """Give out the remade batch in a buffer of its own."""
        outbuf = batch_buffer(self.remade(self.batch_of(buffer)), self._format)
        outbuf.pts, outbuf.duration = buffer.pts, buffer.duration
        return Gst.FlowReturn.OK, outbuf

    def do_transform(self, buffer: Gst.Buffer, outbuf: Gst.Buffer) -> Gst.FlowReturn:
        """Do nothing: the output was made whole."""
        return Gst.FlowReturn.OK

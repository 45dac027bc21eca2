"""nvdewarper: views of wide lenses' images, one behind the other in a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.app.keys import MOST_SURFACES
from headrace.config.dewarper_file import DewarperConfig, load_dewarper
from headrace.gstreamer.elements.bindings import BaseTransform, Gst, structure_of
from headrace.gstreamer.elements.convert import relabelled
from headrace.gstreamer.elements.element import (
    NVMM,
    SYSTEM,
    NvElement,
    guarded,
    reported,
    through,
)
from headrace.gstreamer.elements.properties import COMMON, Property, interpolation
from headrace.gstreamer.elements.surface import (
    VIEWS,
    CapsReader,
    Surface,
    system_bytes,
    video_info,
)
from headrace.media.dewarping import Dewarper

if TYPE_CHECKING:
    from headrace.gstreamer.elements.bindings import GstVideo


class NvDewarper(NvElement, BaseTransform):
    """Makes up to four views of each image; nvstreammux num-surfaces-per-frame takes them."""

    __gtype_name__ = "GstNvDewarper"
    ABOUT = ("NvDewarper", "Filter/Video", "Dewarps images of wide lenses")
    __gsttemplates__ = through(NVMM, SYSTEM)
    PROPERTIES = {
        "gpu-id": COMMON["gpu-id"],
        "config-file": Property("str", None, "the file of surfaces"),
        "silent": Property("bool", False, "accepted; it prints nothing"),
        "dewarper-lib-version": Property("str", None, "accepted; no library is loaded"),
        "source-id": Property("uint", 0, "accepted; nvstreammux numbers sources"),
        "num-output-buffers": Property("uint", 4, "accepted; buffers are made as needed"),
        "num-batch-buffers": Property("uint", MOST_SURFACES, "views at most", 1, MOST_SURFACES),
        "nvbuf-memory-type": COMMON["nvbuf-memory-type"],
        "interpolation-method": interpolation(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self._config: DewarperConfig | None = None
        self._dewarper: Dewarper | None = None
        self._reader: CapsReader | None = None
        self._info: GstVideo.VideoInfo = None
        self.setup()

    @reported(False)
    def do_start(self) -> bool:
        """Read the file."""
        config = load_dewarper(self.file_of("config-file", "surfaces"))
        self.post_notices(config.notices)
        most = self.values["num-batch-buffers"]
        self._config = DewarperConfig(config.surfaces[:most], config.size)
        self._dewarper = Dewarper(self._config)
        return True

    def do_transform_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, filter_caps: Gst.Caps | None
    ) -> Gst.Caps:
        """Give views the size of the file; an image of any size goes in."""
        put: dict[str, object] = {}
        if direction == Gst.PadDirection.SINK and self._config is not None:
            put = dict(zip(("width", "height"), self._config.size, strict=True))
            kinds = (f"{one.projection}:{one.index}" for one in self._config.surfaces)
            put[VIEWS] = " ".join(kinds)
        new_caps = relabelled(caps, None, ("width", "height", VIEWS), put)
        if filter_caps is None:
            return new_caps
        return filter_caps.intersect_full(new_caps, Gst.CapsIntersectMode.FIRST)

    @reported(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        """Take up the images' size and format."""
        self._reader, self._info = CapsReader(incaps), video_info(outcaps)
        self._format = str(structure_of(outcaps).get_string("format"))
        return True

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(
        self, buffer: Gst.Buffer
    ) -> tuple[Gst.FlowReturn, Gst.Buffer | None]:
        """Make the views of a buffer."""
        assert self._reader is not None  # caps came
        assert self._dewarper is not None  # it has started
        frame = self._reader.surface(buffer).frame()
        views = (Surface(view) for view in self._dewarper.views(frame))
        data = b"".join(system_bytes(view, self._format, self._info) for view in views)
        outbuf = Gst.Buffer.new_wrapped(data)
        outbuf.pts, outbuf.dts, outbuf.duration = buffer.pts, buffer.dts, buffer.duration
        outbuf.offset, outbuf.offset_end = buffer.offset, buffer.offset_end
        return Gst.FlowReturn.OK, outbuf

    def do_transform(self, buffer: Gst.Buffer, outbuf: Gst.Buffer) -> Gst.FlowReturn:
        """Do nothing: the output was made whole."""
        return Gst.FlowReturn.OK

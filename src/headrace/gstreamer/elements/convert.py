"""nvvideoconvert, and the label `memory:NVMM` on plain images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.gstreamer.elements.bindings import BaseTransform, Gst, structure_of
from headrace.gstreamer.elements.element import (
    FORMATS,
    NVMM,
    SYSTEM,
    NvElement,
    guarded,
    reported,
    through,
)
from headrace.gstreamer.elements.geometry import (
    QUARTERS,
    WHOLE,
    Box,
    cropped,
    placed,
    read_box,
    turned,
)
from headrace.gstreamer.elements.properties import COMMON, Choices, Property, choice
from headrace.gstreamer.elements.surface import (
    CapsReader,
    Surface,
    system_bytes,
    video_info,
)
from headrace.gstreamer.elements.tree import batch_buffer, with_surfaces
from headrace.gstreamer.pyds.bridge import bridge
from headrace.media.resizing import scaled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.gstreamer.elements.bindings import GstVideo


_FEATURE = "memory:NVMM"
UNTAGGED = "bt601"
"""Colours of a video that names none; GStreamer: BT.709 from 720 lines on. Source: spec A.3."""

_FLIPS = (
    "GstNvDsVideoFlipMethod", "none", "counterclockwise", "rotate-180", "clockwise",
    "horizontal-flip", "upper-right-diagonal", "vertical-flip", "upper-left-diagonal",
)  # fmt: skip
PROPERTIES = COMMON | {
    "src-crop": Property("str", "0:0:0:0", "area to take: left:top:width:height"),
    "dest-crop": Property("str", "0:0:0:0", "where to put it: left:top:width:height; else black"),
    "flip-method": choice(
        0,
        "1: a quarter turn against the clock, 2: half a turn, 3: with the clock, 4: left for right,"
        " 5: over the diagonal from the upper right, 6: top for bottom, 7: from the upper left",
        *_FLIPS,
    ),
    "copy-hw": Property(
        "enum",
        1,
        "accepted; the processor copies",
        choices=Choices("GstNvCopyHWType", ((1, "GPU"), (2, "VIC"))),
    ),
    "output-buffers": Property("uint", 4, "accepted; buffers are made as needed", 1),
    "disable-passthrough": Property("bool", False, "accepted; images are the same either way"),
    "bl-output": Property("bool", False, "accepted; images lie row by row"),
    "allow-odd-crop": Property("bool", True, "accepted; areas begin at even pixels"),
    "contiguous-buffers": Property("bool", False, "accepted; images lie row by row"),
    "silent": Property("bool", False, "accepted; it prints nothing"),
}


def is_nvmm(caps: Gst.Caps) -> bool:
    """True for caps that say `memory:NVMM`."""
    features = caps.get_features(0)
    return features is not None and features.contains(_FEATURE)


FREE_FIELDS = (
    "format", "width", "height", "colorimetry", "chroma-site", "pixel-aspect-ratio", "batch-size",
    "num-surfaces-per-frame", "interlace-mode", "multiview-mode", "multiview-flags",
)  # fmt: skip
"""What a conversion may change."""
_FORMATS = Gst.Caps.from_string(f"video/x-raw, format=(string){FORMATS}")


def relabelled(
    caps: Gst.Caps,
    nvmm: bool | None,
    drop: tuple[str, ...] = (),
    put: Mapping[str, object] | None = None,
) -> Gst.Caps:
    """Copy caps with another memory feature, and without some fields.

    Args:
        caps: the original.
        nvmm: True labels them, False takes the label off, None gives both.
        drop: names of fields.
        put: fields that are set, by name.
    """
    new_caps = Gst.Caps.new_empty()
    for label in (True, False) if nvmm is None else (nvmm,):
        for i in range(caps.get_size()):
            structure = structure_of(caps, i)
            for name in drop:
                structure.remove_field(name)
            for name, value in (put or {}).items():
                structure.set_value(name, value)
            features = Gst.CapsFeatures.from_string(_FEATURE) if label else None
            new_caps.append_structure_full(structure, features)
    return new_caps


class NvmmTag(NvElement, BaseTransform):
    """Puts the label on caps, or takes it off; buffers never reach Python."""

    __gtype_name__ = "GstHeadraceNvmmTag"
    ABOUT = ("NVMM label", "Generic", "Labels images as NVMM memory")
    __gsttemplates__ = through(NVMM, SYSTEM)
    PROPERTIES = {
        "to-nvmm": Property("bool", True, "put the label on; else take it off"),
        "untagged": Property("bool", False, "the stream names no colours: GStreamer's guess goes"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.set_passthrough(True)
        self.setup()

    def do_transform_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, filter_caps: Gst.Caps | None
    ) -> Gst.Caps:
        """Swap the label."""
        forwards = direction == Gst.PadDirection.SINK
        put = {"colorimetry": UNTAGGED} if self.values["untagged"] and forwards else None
        drop = ("colorimetry",) if self.values["untagged"] else ()
        new_caps = relabelled(caps, self.values["to-nvmm"] == forwards, drop, put)
        return new_caps if filter_caps is None else filter_caps.intersect(new_caps)


class NvVideoConvert(NvElement, BaseTransform):
    """Converts between NVMM and system memory, formats and sizes; a batch gives its first frame."""

    __gtype_name__ = "GstNvVideoConvert"
    ABOUT = ("Video converter", "Filter/Converter/Video", "Converts images")
    __gsttemplates__ = through(NVMM, SYSTEM)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._reader: CapsReader | None = None
        self._info: GstVideo.VideoInfo = None
        self._format, self._to_nvmm = "", False
        self._areas: tuple[Box, Box] | None = None  # src-crop and dest-crop once they are read
        self.setup()

    def changed(self, name: str) -> None:
        """Take up another area, and another size of the output where a flip changes it."""
        if name in ("src-crop", "dest-crop"):
            self._areas = None
        elif name == "flip-method":
            self.reconfigure_src()

    def do_transform_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, filter_caps: Gst.Caps | None
    ) -> Gst.Caps:
        """Allow any format, size and memory; the caps as they are come first."""
        new_caps = (
            caps.copy() if self.values["flip-method"] not in QUARTERS else Gst.Caps.new_empty()
        )
        formats = {"format": structure_of(_FORMATS).get_value("format")}
        new_caps.append(relabelled(caps, None, FREE_FIELDS, formats))
        if filter_caps is None:
            return new_caps
        return filter_caps.intersect_full(new_caps, Gst.CapsIntersectMode.FIRST)

    def do_fixate_caps(
        self, direction: Gst.PadDirection, caps: Gst.Caps, other: Gst.Caps
    ) -> Gst.Caps:
        """Keep the input's size, rate and format where the output leaves them open."""
        known, structure = structure_of(caps), structure_of(other)
        sides = ("width", "height")
        turns = self.values["flip-method"] in QUARTERS
        for name, of_known in zip(sides, reversed(sides) if turns else sides, strict=True):
            present, value = known.get_int(of_known)
            if present and structure.has_field(name):
                structure.fixate_field_nearest_int(name, value)
            elif present:
                structure.set_value(name, value)
        present, top, bottom = known.get_fraction("framerate")
        if present and structure.has_field("framerate"):
            structure.fixate_field_nearest_fraction("framerate", top, bottom)
        elif present:
            structure.set_value("framerate", Gst.Fraction(top, bottom))
        if (format := known.get_string("format")) and structure.has_field("format"):
            structure.fixate_field_string("format", format)
        new_caps = Gst.Caps.new_empty()
        new_caps.append_structure_full(structure, other.get_features(0).copy())
        return new_caps.fixate()

    @reported(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        """Prepare the conversion."""
        self._reader = CapsReader(incaps)
        self._format = structure_of(outcaps).get_string("format")
        self._to_nvmm = is_nvmm(outcaps)
        self._info = video_info(outcaps)
        return True

    def _shaped(self, surface: Surface) -> Surface:
        """The image cut, turned and placed as asked, at the output's size."""
        if self._areas is None:
            source, target = (
                read_box(name, self.values[name]) for name in ("src-crop", "dest-crop")
            )
            self._areas = source, target
        source, target = self._areas
        flip, size = self.values["flip-method"], (self._info.width, self._info.height)
        if source == target == WHOLE and not flip and (surface.width, surface.height) == size:
            return surface
        frame = surface.frame()
        frame = turned(frame if source == WHOLE else cropped(frame, source), flip)
        return Surface(scaled(frame, *size) if target == WHOLE else placed(frame, target, *size))

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(self, buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        """Convert a buffer into one that is made for it."""
        if self.is_passthrough():
            return Gst.FlowReturn.OK, buffer
        batch = bridge().get(hash(buffer))
        if batch is None:
            assert self._reader is not None
            surface = self._reader.surface(buffer)
        elif self._to_nvmm:
            surfaces = [self._shaped(one) for one in batch.surfaces]
            if surfaces != batch.surfaces:  # behind a tee the batch is another branch's, too
                batch = with_surfaces(batch, surfaces)
            return Gst.FlowReturn.OK, self._finished(batch_buffer(batch, self._format), buffer)
        else:
            surface = batch.surfaces[0]
        data = system_bytes(self._shaped(surface), self._format, self._info)
        outbuf = Gst.Buffer.new_wrapped(data)
        if batch is not None:
            bridge().attach(hash(outbuf), batch)
        return Gst.FlowReturn.OK, self._finished(outbuf, buffer)

    def _finished(self, outbuf: Gst.Buffer, buffer: Gst.Buffer) -> Gst.Buffer:
        outbuf.pts, outbuf.dts, outbuf.duration = buffer.pts, buffer.dts, buffer.duration
        outbuf.offset, outbuf.offset_end = buffer.offset, buffer.offset_end
        return outbuf

    def do_transform(self, buffer: Gst.Buffer, outbuf: Gst.Buffer) -> Gst.FlowReturn:
        """Do nothing: the output was made whole."""
        return Gst.FlowReturn.OK


class NvVidConv(NvVideoConvert):
    """The converter of embedded machines, under its own name."""

    __gtype_name__ = "Gstnvvconv"
    ABOUT = ("Converter", "Filter/Converter/Video", "Converts images")
    __gsttemplates__ = through(NVMM, SYSTEM)

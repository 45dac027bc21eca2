"""nvvideoconvert, and the label `memory:NVMM` on plain pictures."""

from __future__ import annotations

from typing import Any

from noria.gst.bindings import BaseTransform, Gst, GstVideo
from noria.gst.element import (
    COMMON,
    FORMATS,
    NO_EFFECT,
    NVMM,
    SYSTEM,
    NvElement,
    Property,
    gproperties,
    guarded,
    pad,
)
from noria.gst.streammux import DUMMY_BYTES
from noria.gst.surface import CapsReader, Surface, scaled, system_bytes
from noria.pyds.bridge import bridge

_FEATURE = "memory:NVMM"
UNTAGGED = "bt601"
"""Colours of a film that names none; GStreamer takes BT.709 from 720 lines on. Source: spec A.3."""

PROPERTIES = COMMON | {
    "src-crop": Property("str", "0:0:0:0", NO_EFFECT),
    "dest-crop": Property("str", "0:0:0:0", NO_EFFECT),
    "flip-method": Property("int", 0, NO_EFFECT),
    "copy-hw": Property("int", 1, "accepted"),
    "output-buffers": Property("uint", 4, "accepted"),
    "disable-passthrough": Property("bool", False, "accepted"),
    "bl-output": Property("bool", True, "accepted"),
}


def is_nvmm(caps: Any) -> bool:
    """True for caps that say `memory:NVMM`."""
    features = caps.get_features(0)
    return features is not None and features.contains(_FEATURE)


# what a conversion may change
_FREE = (
    "format", "width", "height", "colorimetry", "chroma-site", "pixel-aspect-ratio", "batch-size",
    "num-surfaces-per-frame", "interlace-mode", "multiview-mode", "multiview-flags",
)  # fmt: skip
_FORMATS = Gst.Caps.from_string(f"video/x-raw, format=(string){FORMATS}")


def relabelled(caps: Any, nvmm: bool | None, drop: tuple[str, ...] = (), put: Any = None) -> Any:
    """Copy caps with another memory feature, and without some fields.

    Args:
        caps: the original.
        nvmm: True labels them, False takes the label off, None gives both.
        drop: names of fields.
        put: fields that are set, by name.
    """
    made = Gst.Caps.new_empty()
    for label in (True, False) if nvmm is None else (nvmm,):
        for i in range(caps.get_size()):
            structure = caps.get_structure(i).copy()
            for name in drop:
                structure.remove_field(name)
            for name, value in (put or {}).items():
                structure.set_value(name, value)
            features = Gst.CapsFeatures.from_string(_FEATURE) if label else None
            made.append_structure_full(structure, features)
    return made


class NvmmTag(NvElement, BaseTransform):
    """Puts the label on caps, or takes it off; buffers never reach Python."""

    __gtype_name__ = "GstNoriaNvmmTag"
    __gstmetadata__ = ("NVMM label", "Generic", "Labels pictures as NVMM memory", "Noria")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM), pad("src", "src", "always", NVMM, SYSTEM)
    )  # fmt: skip
    PROPERTIES = {
        "to-nvmm": Property("bool", True, "put the label on; else take it off"),
        "untagged": Property("bool", False, "the stream names no colours: GStreamer's guess goes"),
    }
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        self.set_passthrough(True)
        self.setup()

    def do_transform_caps(self, direction: Any, caps: Any, filter_caps: Any) -> Any:
        """Swap the label."""
        forwards = direction == Gst.PadDirection.SINK
        put = {"colorimetry": UNTAGGED} if self.values["untagged"] and forwards else None
        drop = ("colorimetry",) if self.values["untagged"] else ()
        made = relabelled(caps, self.values["to-nvmm"] == forwards, drop, put)
        return made if filter_caps is None else filter_caps.intersect(made)


class NvVideoConvert(NvElement, BaseTransform):
    """Converts between NVMM and system memory, formats and sizes; a batch gives its first frame."""

    __gtype_name__ = "GstNvVideoConvert"
    __gstmetadata__ = ("Video converter", "Filter/Converter/Video", "Converts pictures", "Noria")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM), pad("src", "src", "always", NVMM, SYSTEM)
    )  # fmt: skip
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        self._reader: CapsReader | None = None
        self._info: Any = None
        self._format, self._to_nvmm = "", False
        self.setup()

    def do_transform_caps(self, direction: Any, caps: Any, filter_caps: Any) -> Any:
        """Allow any format, size and memory; the caps as they are come first."""
        made = caps.copy()
        formats = {"format": _FORMATS.get_structure(0).get_value("format")}
        made.append(relabelled(caps, None, _FREE, formats))
        if filter_caps is None:
            return made
        return filter_caps.intersect_full(made, Gst.CapsIntersectMode.FIRST)

    def do_fixate_caps(self, direction: Any, caps: Any, other: Any) -> Any:
        """Keep the input's size, rate and format where the output leaves them open."""
        known, structure = caps.get_structure(0), other.get_structure(0).copy()
        for name in ("width", "height"):
            found, value = known.get_int(name)
            if found and structure.has_field(name):
                structure.fixate_field_nearest_int(name, value)
            elif found:
                structure.set_value(name, value)
        found, top, bottom = known.get_fraction("framerate")
        if found and structure.has_field("framerate"):
            structure.fixate_field_nearest_fraction("framerate", top, bottom)
        elif found:
            structure.set_value("framerate", Gst.Fraction(top, bottom))
        if (format := known.get_string("format")) and structure.has_field("format"):
            structure.fixate_field_string("format", format)
        made = Gst.Caps.new_empty()
        made.append_structure_full(structure, other.get_features(0).copy())
        return made.fixate()

    def do_set_caps(self, incaps: Any, outcaps: Any) -> bool:
        """Prepare the conversion."""
        try:
            self._reader = CapsReader(incaps)
            self._format = outcaps.get_structure(0).get_string("format")
            self._to_nvmm = is_nvmm(outcaps)
            self._info = GstVideo.VideoInfo.new_from_caps(outcaps)
        except Exception as error:  # PyGObject would print it and go on
            self.post_error(error)
            return False
        return True

    def _output(self, buffer: Any) -> Any:
        if self.is_passthrough():
            return Gst.FlowReturn.OK, buffer
        batch = bridge().get(hash(buffer))
        size = self._info.width, self._info.height
        if batch is None:
            assert self._reader is not None
            surface = self._reader.surface(buffer)
        elif self._to_nvmm:
            for place, one in enumerate(batch.surfaces):
                if (one.width, one.height) != size:
                    batch.surfaces[place] = Surface(scaled(one.frame(), *size))
            made = Gst.Buffer.new_allocate(None, DUMMY_BYTES, None)
            return Gst.FlowReturn.OK, self._finished(made, buffer, batch)
        else:
            surface = batch.surfaces[0]
        data = system_bytes(surface, self._format, self._info)
        return Gst.FlowReturn.OK, self._finished(Gst.Buffer.new_wrapped(data), buffer, batch)

    def _finished(self, made: Any, buffer: Any, batch: Any) -> Any:
        made.pts, made.dts, made.duration = buffer.pts, buffer.dts, buffer.duration
        made.offset, made.offset_end = buffer.offset, buffer.offset_end
        if batch is not None:
            bridge().attach(hash(made), batch)
        return made

    do_prepare_output_buffer = guarded(_output, (Gst.FlowReturn.ERROR, None))

    def do_transform(self, buffer: Any, made: Any) -> Any:
        """Do nothing: the output was made whole."""
        return Gst.FlowReturn.OK


class NvVidConv(NvVideoConvert):
    """The converter of embedded machines, under its own name."""

    __gtype_name__ = "Gstnvvconv"
    __gstmetadata__ = ("Converter", "Filter/Converter/Video", "Converts pictures", "Noria")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM), pad("src", "src", "always", NVMM, SYSTEM)
    )  # fmt: skip

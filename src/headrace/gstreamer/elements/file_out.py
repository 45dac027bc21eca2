"""nvvideoencfilesinkbin: encodes images into a file."""

from __future__ import annotations

from itertools import pairwise

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.bins import PartsBin
from headrace.gstreamer.elements.element import NVMM, SYSTEM, pad, reported
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Choices, Property, choice

_CONTAINERS = Choices("GstNvDsVideoEncContainerType", ((1, "mp4"), (2, "mkv")))
_CODECS = Choices("GstNvDsVideoEncCodecType", ((1, "h264"), (2, "h265"), (3, "mpeg4")))
_MUXERS = {1: "mp4mux", 2: "matroskamux"}
_PARTS = {1: ("nvv4l2h264enc", "h264parse"), 2: ("nvv4l2h265enc", "h265parse")}
_MPEG4 = ("nvvideoconvert", "avenc_mpeg4", "mpeg4videoparse")
_OF_ENCODER = ("bitrate", "iframeinterval")


class NvVideoEncFileSinkBin(PartsBin):
    """Encodes H.264, H.265 or MPEG-4 into `output-file`, MP4 or Matroska."""

    __gtype_name__ = "GstDsNvVideoEncFilesinkBin"
    ABOUT = ("NvVideoEncFilesink Bin", "Sink/Video", "Encodes images into a file")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = {
        "gpu-id": COMMON["gpu-id"],
        "nvbuf-memory-type": COMMON["nvbuf-memory-type"],
        "output-file": Property("str", "", "the video's path"),
        "container": Property("enum", 1, "of the file", choices=_CONTAINERS),
        "codec": Property("enum", 1, "of the images", choices=_CODECS),
        "bitrate": Property("uint", 0, "bits per second; 0: the encoder's own"),
        "iframeinterval": Property("uint", 0, "frames from one key frame to the next"),
        "enc-type": choice(
            0, "accepted; the processor encodes", "GstNvDsVideoEncTypeType", "hw", "sw"
        ),
        "profile": choice(
            0, NO_EFFECT, "GstNvDsVideoEncProfileType", "baseline", "main", "high", "main10"
        ),
        "sync": Property("bool", False, "take each image at its time"),
        "qos": Property("bool", False, "drop images that come too late"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._sink = self.part("filesink", **{"async": False})
        self._entry = self.part("queue")
        self._chain: list[Gst.Element] = []
        self.ghost("sink", self._entry.get_static_pad("sink"))
        self.setup()

    @reported(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Make encoder and container before the first start, once all properties are known."""
        if change == Gst.StateChange.NULL_TO_READY and not self._chain:
            self._fill()
        return Gst.Bin.do_change_state(self, change)

    def _fill(self) -> None:
        location = self.file_of("output-file", "the video")
        for name in ("sync", "qos"):
            self._sink.set_property(name, self.values[name])
        self._sink.set_property("location", location)
        codec = self.values["codec"]
        parts = [self.part(name) for name in _PARTS.get(codec, _MPEG4)]
        for name in _OF_ENCODER:
            if codec in _PARTS and self.values[name]:
                parts[0].set_property(name, self.values[name])
        if codec not in _PARTS and self.values["bitrate"]:
            parts[1].set_property("bitrate", self.values["bitrate"])
        self._chain = [*parts, self.part(_MUXERS[self.values["container"]])]
        whole = [self._entry, *self._chain, self._sink]
        for one, other in pairwise(whole):
            one.link(other)

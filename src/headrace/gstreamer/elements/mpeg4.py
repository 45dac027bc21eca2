"""`avenc_mpeg4` with times: images of GStreamer 1.22's own have none, and fit no container."""

from __future__ import annotations

from collections import deque

from headrace.gstreamer.elements.bindings import GObject, Gst
from headrace.gstreamer.elements.bins import PartsBin
from headrace.gstreamer.elements.element import pad, weakly
from headrace.gstreamer.elements.properties import Property

NAME, PLUGIN, RANK = "avenc_mpeg4", "libav", 128
_AFFECTED = "1.22."
_NO_TIME = 1 << 63  # what that version makes of FFmpeg's "unknown"


def stand_in() -> None:
    """Take the encoder's place in this process, where GStreamer is of that release."""
    registry = Gst.Registry.get()
    plugin = registry.find_plugin(PLUGIN)
    if plugin is None or not plugin.get_version().startswith(_AFFECTED):
        return

    def register() -> None:
        Gst.Element.register(None, NAME, RANK, AvEncMpeg4)

    def look(_: object, feature: Gst.PluginFeature) -> None:
        if feature.get_name() == NAME and feature.get_plugin_name() == PLUGIN:
            register()  # the plugin took the name back when it was loaded

    register()
    registry.connect("feature-added", look)


def _stock_encoder() -> Gst.Element:
    Gst.Plugin.load_by_name(PLUGIN)
    return GObject.new(GObject.type_from_name(NAME))


class AvEncMpeg4(PartsBin):
    """GStreamer's MPEG-4 encoder, with the times of the images that went in."""

    __gtype_name__ = "GstHeadraceAvEncMpeg4"
    ABOUT = ("MPEG-4 encoder", "Codec/Encoder/Video", "Encodes MPEG-4")
    __gsttemplates__ = (
        pad("sink", "sink", "always", "video/x-raw, format=(string)I420"),
        pad("src", "src", "always", "video/mpeg, mpegversion=(int)4, systemstream=(boolean)false"),
    )
    PROPERTIES = {
        "bitrate": Property("int", 200_000, "bits per second", 0),
        "gop-size": Property("int", 12, "frames from one key frame to the next"),
        "qmin": Property("int", 2, "least quantizer", -1, 69),
        "qmax": Property("int", 31, "largest quantizer", -1, 1024),
    }

    def __init__(self) -> None:
        super().__init__()
        self._times: deque[tuple[int, int]] = deque()
        self._encoder = _stock_encoder()
        self.add(self._encoder)
        sink, src = (self._encoder.get_static_pad(name) for name in ("sink", "src"))
        kinds = Gst.PadProbeType.BUFFER | Gst.PadProbeType.EVENT_FLUSH
        sink.add_probe(kinds, weakly(self._came, Gst.PadProbeReturn.OK))
        src.add_probe(Gst.PadProbeType.BUFFER, weakly(self._went, Gst.PadProbeReturn.OK))
        self.ghost("sink", sink)
        self.ghost("src", src)
        self.setup()

    def changed(self, name: str) -> None:
        """Pass the property on."""
        self._encoder.set_property(name, self.values[name])

    def _came(self, sink: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if info.type & Gst.PadProbeType.BUFFER:
            buffer = info.get_buffer()
            running = _segment(sink).to_running_time(Gst.Format.TIME, buffer.pts)
            self._times.append((running, buffer.duration))
        else:
            self._times.clear()
        return Gst.PadProbeReturn.OK

    def _went(self, src: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        """Put the time of an image back: none depends on a later one.

        GStreamer's encoders shift their stream, so that no time of decoding is negative.
        """
        buffer = info.get_buffer()
        if self._times:
            running, duration = self._times.popleft()
            if buffer.pts == _NO_TIME:
                position = _segment(src).position_from_running_time(Gst.Format.TIME, running)
                buffer.pts = buffer.dts = position
                buffer.duration = duration
        return Gst.PadProbeReturn.OK


def _segment(one: Gst.Event) -> Gst.Segment:
    return one.get_sticky_event(Gst.EventType.SEGMENT, 0).parse_segment()

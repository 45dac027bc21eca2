"""nvrtspoutsinkbin: encodes images and serves them over RTSP."""

from __future__ import annotations

from itertools import pairwise

from headrace._core.errors import MediaError
from headrace._core.text import error_text, printable
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.bins import PartsBin
from headrace.gstreamer.elements.element import NVMM, SYSTEM, pad, reported, weakly
from headrace.gstreamer.elements.properties import COMMON, Property
from headrace.gstreamer.elements.surface import MappedBuffer
from headrace.media.sinks.rtp import CLOCK
from headrace.media.sinks.rtsp_server import Mount

_LAST_PORT = 65535
_UNITS = "video/x-h264, stream-format=byte-stream, alignment=au"


class NvRtspOutSinkBin(PartsBin):
    """Serves H.264 at `rtsp://address:rtsp-port/rtsp-mount-point`, to any number of clients."""

    __gtype_name__ = "GstNvRtspOutSinkBin"
    ABOUT = ("NvRtspOut Bin", "Sink/Video", "Serves images over RTSP")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = {"gpu-id": COMMON["gpu-id"]} | {
        "rtsp-port": Property("uint", 8554, "of the server"),
        "rtsp-mount-point": Property("str", "/ds-test", "path behind the server's address"),
        "rtsp-address": Property("str", "127.0.0.1", "0.0.0.0 serves other machines, too"),
        "udp-port": Property("uint", 0, "accepted; no port lies between encoder and server"),
        "bitrate": Property("uint", 4_000_000, "bits per second"),
        "iframeinterval": Property("uint", 30, "frames from one key frame to the next"),
        "enc-type": Property("int", 0, "accepted; the processor encodes"),
        "sync": Property("bool", True, "send each image at its time"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._mount: Mount | None = None
        convert = self.part("nvvideoconvert")
        self._encoder = self.part("nvv4l2h264enc")
        parse = self.part("h264parse", config_interval=-1)
        units = self.part("capsfilter", caps=Gst.Caps.from_string(_UNITS))
        self._sink = self.part("fakesink", sync=True, signal_handoffs=True, **{"async": False})
        self._sink.connect("handoff", weakly(self._send, None))
        parts = convert, self._encoder, parse, units, self._sink
        for one, other in pairwise(parts):
            one.link(other)
        self.ghost("sink", convert.get_static_pad("sink"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass on properties of the parts."""
        if name in ("bitrate", "iframeinterval"):
            self._encoder.set_property(name, self.values[name])
        elif name == "sync":
            self._sink.set_property(name, self.values[name])

    @reported(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Start the server before the first image, and stop it after the last."""
        if change == Gst.StateChange.NULL_TO_READY:
            self._serve()
        done = Gst.Bin.do_change_state(self, change)
        if change == Gst.StateChange.READY_TO_NULL and self._mount is not None:
            self._mount.close()
            self._mount = None
        return done

    def _serve(self) -> None:
        host, port = self.values["rtsp-address"], self.values["rtsp-port"]
        where = f"{host}:{port}"
        if not 0 < port <= _LAST_PORT:
            raise MediaError(
                f"no RTSP server can listen at {where}", fix="set rtsp-port to 1..65535"
            )
        path = "/" + self.values["rtsp-mount-point"].strip("/")
        try:
            self._mount = Mount(host, port, path, "h264")
        except OSError as error:
            raise MediaError(
                f"no RTSP server can listen at {where}", where=error_text(error),
                fix="set rtsp-port",
            ) from error  # fmt: skip
        print(printable(f"RTSP: rtsp://{where}{path}"), flush=True)

    def _send(self, sink: Gst.Element, buffer: Gst.Buffer, pad: Gst.Pad) -> None:
        """Hand an encoded image to the server."""
        if self._mount is None:
            return
        data = MappedBuffer(buffer).data.tobytes()
        ticks = 0 if buffer.pts == Gst.CLOCK_TIME_NONE else buffer.pts * CLOCK // Gst.SECOND
        self._mount.send(data, ticks, key=not buffer.has_flags(Gst.BufferFlags.DELTA_UNIT))

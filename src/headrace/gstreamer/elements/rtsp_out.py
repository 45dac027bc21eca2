"""nvrtspoutsinkbin: encodes images and serves them over RTSP."""

from __future__ import annotations

import socket

from headrace._core.errors import MediaError
from headrace._core.text import printable
from headrace._core.threads import start_thread
from headrace.gstreamer.elements.bindings import GLib, Gst
from headrace.gstreamer.elements.bins import PartsBin
from headrace.gstreamer.elements.element import NVMM, SYSTEM, pad, reported
from headrace.gstreamer.elements.properties import COMMON, Property

_LAST_PORT = 65535
_PAYLOAD = "application/x-rtp, media=video, clock-rate=90000, encoding-name=H264, payload=96"


class NvRtspOutSinkBin(PartsBin):
    """Serves H.264 at `rtsp://address:rtsp-port/rtsp-mount-point`, to any number of clients."""

    __gtype_name__ = "GstNvRtspOutSinkBin"
    ABOUT = ("NvRtspOut Bin", "Sink/Video", "Serves images over RTSP")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = {"gpu-id": COMMON["gpu-id"]} | {
        "rtsp-port": Property("uint", 8554, "of the server"),
        "rtsp-mount-point": Property("str", "/ds-test", "path behind the server's address"),
        "rtsp-address": Property("str", "127.0.0.1", "0.0.0.0 serves other machines, too"),
        "udp-port": Property("uint", 0, "of the packets on this machine; 0 takes a free one"),
        "bitrate": Property("uint", 4_000_000, "bits per second"),
        "iframeinterval": Property("uint", 30, "frames from one key frame to the next"),
        "enc-type": Property("int", 0, "accepted; the processor encodes"),
        "sync": Property("bool", True, "send each image at its time"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._loop: GLib.MainLoop | None = None
        convert = self.part("nvvideoconvert")
        self._encoder = self.part("nvv4l2h264enc")
        pay = self.part("rtph264pay", pt=96, config_interval=1)
        self._sink = self.part("udpsink", host="127.0.0.1", **{"async": False})
        for one, other in ((convert, self._encoder), (self._encoder, pay), (pay, self._sink)):
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
        if change == Gst.StateChange.READY_TO_NULL and self._loop is not None:
            self._loop.quit()
            self._loop = None
        return done

    def _serve(self) -> None:
        import gi

        gi.require_version("GstRtspServer", "1.0")
        from gi.repository import GstRtspServer

        where = f"{self.values['rtsp-address']}:{self.values['rtsp-port']}"
        if not 0 < self.values["rtsp-port"] <= _LAST_PORT:
            raise MediaError(
                f"no RTSP server can listen at {where}", fix="set rtsp-port to 1..65535"
            )
        port = self.values["udp-port"] or _free_port()
        self._sink.set_property("port", port)
        mount = "/" + self.values["rtsp-mount-point"].strip("/")
        server = GstRtspServer.RTSPServer.new()
        server.set_address(self.values["rtsp-address"])
        server.set_service(str(self.values["rtsp-port"]))
        factory = GstRtspServer.RTSPMediaFactory.new()
        # Packets go through a payloader: the server asks pay0 for a property that udpsrc lacks.
        factory.set_launch(
            f'( udpsrc port={port} caps="{_PAYLOAD}" ! rtph264depay ! rtph264pay name=pay0 pt=96 )'
        )
        factory.set_shared(True)
        server.get_mount_points().add_factory(mount, factory)
        context = GLib.MainContext.new()
        if not server.attach(context):
            raise MediaError(f"no RTSP server can listen at {where}", fix="set rtsp-port")
        self._loop = GLib.MainLoop.new(context, False)
        start_thread(self._loop.run, name="headrace-rtsp-out", failed=self.post_error)
        print(printable(f"RTSP: rtsp://{where}{mount}"), flush=True)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp_socket:
        udp_socket.bind(("127.0.0.1", 0))
        return int(udp_socket.getsockname()[1])

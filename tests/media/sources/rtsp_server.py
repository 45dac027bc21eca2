"""An RTSP server on loopback, run by the system's Python with GStreamer: RTSP_SERVER.py OPTIONS.

Serves test images at /live (and a recording at /clip if one is given) and prints its port.
"""

from __future__ import annotations

import argparse
import sys

import gi  # type: ignore[import-not-found]

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # type: ignore[import-not-found] # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", default="0")
    parser.add_argument("--size", default="64x48")
    parser.add_argument("--fps", type=int, default=50)
    parser.add_argument("--user", help="name:password that clients must give")
    parser.add_argument("--clip", help="H.264 file to serve at /clip")
    parser.add_argument("--record", help="file that is written of what is published to /in")
    args = parser.parse_args()
    Gst.init(None)
    width, height = args.size.split("x")
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(args.port)
    rate = f"framerate={args.fps}/1"
    launches = {
        "/live": f"videotestsrc is-live=true pattern=ball ! video/x-raw,width={width},"
        f"height={height},{rate},format=I420 ! jpegenc ! rtpjpegpay name=pay0"
    }
    if args.clip:
        launches["/clip"] = (
            f"filesrc location={args.clip} ! qtdemux ! h264parse ! video/x-h264,alignment=au ! "
            "rtph264pay name=pay0 config-interval=-1"
        )
    if args.record:
        launches["/in"] = (
            "rtph264depay name=depay0 ! h264parse ! mpegtsmux ! "
            f"filesink location={args.record} buffer-mode=unbuffered"
        )
    for path, launch in launches.items():
        factory = GstRtspServer.RTSPMediaFactory()
        if path == "/in":
            factory.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
        factory.set_launch(f"( {launch} )")
        factory.set_shared(path == "/live")
        if args.user:
            name, _, password = args.user.partition(":")
            auth = GstRtspServer.RTSPAuth()
            token = GstRtspServer.RTSPToken()
            token.set_string("media.factory.role", "viewer")
            auth.add_basic(GstRtspServer.RTSPAuth.make_basic(name, password), token)
            server.set_auth(auth)
            permissions = GstRtspServer.RTSPPermissions()
            permissions.add_permission_for_role("viewer", "media.factory.access", True)
            permissions.add_permission_for_role("viewer", "media.factory.construct", True)
            factory.set_permissions(permissions)
        server.get_mount_points().add_factory(path, factory)
    if not server.attach(None):
        sys.exit("the port is taken")
    print(server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


main()

"""Serves a video over RTSP on the loopback interface, for applications that read such streams.

python -m tests.outside.rtsp_server VIDEO PORT
"""

from __future__ import annotations

import sys

from headrace.gstreamer.pyds.loading import gstreamer


def main() -> None:
    """Serve until the process is ended."""
    video, port = sys.argv[1:]
    gstreamer()
    import gi

    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, GstRtsp, GstRtspServer

    server = GstRtspServer.RTSPServer.new()
    server.set_address("127.0.0.1")
    server.set_service(port)
    factory = GstRtspServer.RTSPMediaFactory.new()
    factory.set_launch(
        f"( filesrc location={video} ! qtdemux ! h264parse config-interval=-1 ! "
        "rtph264pay name=pay0 pt=96 )"
    )
    # over UDP a busy machine loses images, and the word that the video is over
    factory.set_protocols(GstRtsp.RTSPLowerTrans.TCP)
    server.get_mount_points().add_factory("/video", factory)
    server.attach(None)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()

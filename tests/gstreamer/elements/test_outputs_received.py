"""Outputs of pipelines of GStreamer, each with a real receiver on loopback.

Where the original has elements for an output of ours, they reach the receiver that
tests/pipeline/test_sink_opening.py has for the other roads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headrace.media import ReconnectPolicy, open_source
from tests.gstreamer.conftest import Run
from tests.media.conftest import write_clip
from tests.pipeline.receivers import FRAMES, OUTPUTS
from tests.ports import free_port

H264 = "nvvideoconvert ! nvv4l2h264enc iframeinterval=25 ! h264parse"


def to_broker(output: str) -> str:
    where = urlsplit(output)
    user = ";guest" * (where.scheme == "amqp")
    return (
        "nvmsgconv msg2p-newapi=1 frame-interval=1 ! nvmsgbroker sync=0 "
        f"proto-lib=/nowhere/libnvds_{where.scheme}_proto.so "
        f"conn-str={where.hostname};{where.port}{user} topic={where.path[1:]}"
    )


def to_address(output: str) -> str:
    where = urlsplit(output)
    return f"{H264} ! mpegtsmux ! udpsink sync=0 host={where.hostname} port={where.port}"


def to_playlist(output: str) -> str:
    path = Path(output)
    parts = path.with_name("part%03d.ts")
    return f"{H264} ! hlssink2 playlist-location={path} location={parts} max-files=0"


ELEMENTS: dict[str, Callable[[str], str]] = {
    "udp://": to_address,
    "redis://": to_broker,
    "mqtt://": to_broker,
    "amqp://": to_broker,
    "kafka://": to_broker,
    "out.mp4": lambda output: f"{H264} ! qtmux ! filesink location={output}",
    "out.m3u8": to_playlist,
    "images:out": lambda output: (
        f"nvvideoconvert ! nvjpegenc ! multifilesink location={output.rpartition(':')[2]}/%06d.jpg"
    ),
}


def head(clip: Path, config: Path, *more: str) -> str:
    """A pipeline from a clip to its model and the tiles."""
    return " ! ".join([
        f"filesrc location={clip}", "qtdemux", "h264parse", "nvv4l2decoder",
        "m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48",
        f"nvinfer config-file-path={config}", *more,
    ])  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("output", ELEMENTS)
def test_an_output_of_a_pipeline_reaches_its_receiver(
    play: Run, output: str, mean_config: Callable[..., Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    clip = write_clip(tmp_path / "clip.mp4", FRAMES, codec="libx264")
    with OUTPUTS[output](tmp_path) as (text, received):
        (tmp_path / "out" / "o").mkdir(parents=True)
        tail = ELEMENTS[output](text)
        drawn = [] if "nvmsgbroker" in tail else ["nvdsosd"]
        ran = play(head(clip, mean_config(), *drawn, tail))
        assert not ran.errors + ran.warnings
        received()


@pytest.mark.slow
def test_images_are_served_over_rtsp(
    gst: Any, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    """Two streams of one address, each with a player that comes."""
    clip = write_clip(tmp_path / "clip.mp4", 500, codec="libx264")
    port = free_port()
    out = f"nvrtspoutsinkbin rtsp-port={port} iframeinterval=5"
    tail = f"tee name=t ! queue ! {out} t. ! queue ! {out} rtsp-mount-point=other"
    pipeline = gst.parse_launch(head(clip, mean_config(), "nvdsosd", tail))
    pipeline.set_state(gst.State.PLAYING)
    policy = ReconnectPolicy(first_s=0.2, max_s=0.5, from_start=True)
    try:
        for path in ("ds-test", "other"):
            with open_source(f"rtsp://127.0.0.1:{port}/{path}", reconnect=policy) as source:
                frames = list(islice(source, 5))
            assert [frame.width for frame in frames] == [64] * 5
            times = [frame.pts_ns for frame in frames]
            assert times == sorted(set(times))
    finally:
        pipeline.set_state(gst.State.NULL)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 2)

"""Sources that are opened again: when, how often, and what the pipeline sees of it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer.elements.reconnect import Patience, Reconnector
from tests.gstreamer.conftest import SCENE
from tests.ports import free_port


class Calls:
    """What a watch asked for."""

    def __init__(self, patience: Patience) -> None:
        self.opened: list[str] = []
        self.given_up = threading.Event()
        self.watch = Reconnector(patience, self.opened.append, self.end)

    def end(self, problem: str) -> None:
        self.last = problem
        self.given_up.set()


def test_a_silent_source_is_opened_so_many_times() -> None:
    calls = Calls(Patience(0.05, 0, 2))
    time.sleep(0.3)
    assert calls.opened == [], "before the first image only an error counts"
    assert not calls.watch.problem("refused"), "and not with an interval of 0"
    calls.watch.image()
    assert calls.given_up.wait(5)
    assert [text.startswith("no image for") for text in calls.opened] == [True, True]
    assert not calls.watch.problem("again")
    calls.watch.close()


def test_an_image_begins_the_count_anew_and_a_problem_is_told() -> None:
    calls = Calls(Patience(0.05, 0.05, 1))
    for turn in range(3):
        assert calls.watch.problem(f"refused {turn}")
        while len(calls.opened) <= turn:
            time.sleep(0.01)
        calls.watch.image()
    calls.watch.close()
    assert calls.opened[:3] == ["refused 0", "refused 1", "refused 2"]
    assert not calls.given_up.is_set()


@contextmanager
def camera(port: int, video: Path = SCENE / "conveyor.mp4") -> Iterator[None]:
    command = [sys.executable, "-m", "tests.outside.rtsp_server", str(video), str(port)]
    server = subprocess.Popen(command, cwd=SCENE.parents[1])
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_camera_that_comes_back_goes_on(gst: Any) -> None:
    port = free_port()
    pipeline = gst.parse_launch(
        f"nvurisrcbin uri=rtsp://a:secret@127.0.0.1:{port}/video select-rtp-protocol=4 "
        "rtsp-reconnect-interval=1 init-rtsp-reconnect-interval=1 rtsp-reconnect-attempts=8 ! "
        "m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48 live-source=1 ! "
        "fakesink name=end sync=0"
    )
    frames = 0

    def look(pad: Any, info: Any) -> int:
        nonlocal frames
        frames += 1
        return 1

    def more(number: int) -> None:
        wanted, start = frames + number, time.monotonic()
        while frames < wanted:
            assert time.monotonic() - start < 30, "no more frames"
            time.sleep(0.02)

    pipeline.get_by_name("end").get_static_pad("sink").add_probe(gst.PadProbeType.BUFFER, look)
    pipeline.set_state(gst.State.PLAYING)
    time.sleep(0.5)  # nobody listens yet
    for _ in range(2):
        with camera(port):
            more(30)
    bus, texts = pipeline.get_bus(), []
    kinds = gst.MessageType.EOS | gst.MessageType.ERROR | gst.MessageType.WARNING
    while True:
        message = bus.timed_pop_filtered(20 * gst.SECOND, kinds)
        assert message is not None
        if message.type != gst.MessageType.WARNING:
            break
        texts.append(message.parse_warning()[0].message)
    assert message.type == gst.MessageType.EOS
    pipeline.set_state(gst.State.NULL)
    assert texts[-1].endswith("after 8 attempts")
    assert sum("it is opened again" in text for text in texts) >= 3
    assert "secret" not in str(texts)


@pytest.mark.slow
def test_a_camera_that_never_answers_is_an_error(gst: Any) -> None:
    pipeline = gst.parse_launch(
        f"nvurisrcbin name=source uri=rtsp://127.0.0.1:{free_port()}/video "
        "init-rtsp-reconnect-interval=1 rtsp-reconnect-attempts=1 ! m.sink_0 "
        "nvstreammux name=m batch-size=1 width=64 height=48 ! fakesink"
    )
    pipeline.set_state(gst.State.PLAYING)
    error = pipeline.get_bus().timed_pop_filtered(20 * gst.SECOND, gst.MessageType.ERROR)
    pipeline.set_state(gst.State.NULL)
    assert error.src.get_name() == "source"
    assert error.parse_error()[0].message.endswith("after 1 attempts")

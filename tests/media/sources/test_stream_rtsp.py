"""A real RTSP server on loopback that dies, comes back, stops answering and asks for passwords."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.rtsp_server import shown
from headrace.errors import MediaError
from headrace.media import ReconnectPolicy, Source, open_source
from tests.media.conftest import write_clip
from tests.media.sources.videos import B_FRAMES

PYTHON = "/usr/bin/python3"
FAST = ReconnectPolicy(first_s=0.1, max_s=0.4)
NEEDS = """
import gi
gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
assert all(map(Gst.ElementFactory.find, ["videotestsrc", "jpegenc", "rtpjpegpay"]))
"""


@functools.cache
def available() -> bool:
    if not Path(PYTHON).exists():
        return False
    return subprocess.run([PYTHON, "-c", NEEDS], capture_output=True, check=False).returncode == 0


class Server:
    """One server process at a time, always on the same port."""

    def __init__(self) -> None:
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> None:
        script = str(Path(__file__).with_name("rtsp_server.py"))
        self.process = subprocess.Popen(
            [PYTHON, script, "--port", str(self.port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def url(self, user: str = "", path: str = "live") -> str:
        return f"rtsp://{user}{'@' * bool(user)}127.0.0.1:{self.port}/{path}"


@pytest.fixture
def server() -> Iterator[Server]:
    if not available():
        pytest.skip("needs python3-gi, gir1.2-gst-rtsp-server-1.0 and GStreamer's good plugins")
    one = Server()
    yield one
    one.kill()


def take(source: Source, count: int) -> list[tuple[int, int, tuple[int, int]]]:
    frames = itertools.islice(source, count)
    return [(f.frame, f.pts_ns, (f.width, f.height)) for f in frames]


def wait_until(done: Callable[[], bool], limit_s: float = 10) -> None:
    until = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    result: list[object] = []

    def run() -> None:
        try:
            result.append(work())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, result


@pytest.mark.slow
def test_dropped_and_back_with_another_size(server: Server) -> None:
    server.start()
    with open_source(server.url(), timeout_s=5, reconnect=FAST) as source:
        assert source.live
        assert (source.width, source.height) == (64, 48)
        frames = take(source, 50)
        server.kill()
        start = time.monotonic()
        server.start("--size", "96x80")
        frames += take(source, 30)
        away_s = time.monotonic() - start
    numbers, times, sizes = zip(*frames, strict=True)
    assert numbers == tuple(range(80))
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert min(gaps) > 0
    assert 0.05e9 < max(gaps) < (away_s + 1) * 1e9  # the gap in time is the gap in reality
    assert sizes[0] == (64, 48)
    assert sizes[-1] == (96, 80)
    assert source.reconnects == 1
    lost = [n for n in source.notices if "lost" in n.sentence]
    assert len(lost) == 1
    assert lost[0].level == "warning"
    assert lost[0].sentence.startswith("the connection was lost at frame 5")
    assert "back after" in lost[0].sentence
    assert lost[0].where == server.url()


@pytest.mark.slow
def test_a_server_that_stops_answering(server: Server) -> None:
    server.start()
    with open_source(server.url(), timeout_s=0.5, reconnect=FAST) as source:
        take(source, 5)
        server.signal(signal.SIGSTOP)
        thread, result = in_background(lambda: take(source, 60))
        wait_until(lambda: "lost" in repr(source.notices))
        server.signal(signal.SIGCONT)
        thread.join(10)
        assert not thread.is_alive()
    assert isinstance(result[0], list)
    assert source.reconnects >= 1  # a machine under load may lose it again
    assert any("(nothing came for 0.5 s), back after" in n.sentence for n in source.notices)


@pytest.mark.parametrize("state", ["dead", "silent"])
@pytest.mark.slow
def test_close_ends_a_source_that_waits(server: Server, state: str) -> None:
    server.start()
    slow = ReconnectPolicy(first_s=60, max_s=60, jitter=False)
    source = open_source(server.url(), timeout_s=30, reconnect=slow)
    take(source, 2)
    if state == "dead":
        server.kill()
    else:
        server.signal(signal.SIGSTOP)
    thread, result = in_background(lambda: len(list(source)))
    time.sleep(0.5)
    assert thread.is_alive()
    start = time.monotonic()
    source.close()
    assert time.monotonic() - start < 0.2
    thread.join(1)
    assert not thread.is_alive()
    assert isinstance(result[0], int)
    if state == "dead":
        assert "not back after" in source.notices[-1].sentence


def test_a_number_of_attempts(server: Server) -> None:
    server.start()
    few = ReconnectPolicy(first_s=0.01, attempts=2)
    with open_source(server.url(), timeout_s=2, reconnect=few) as source:
        take(source, 2)
        server.kill()
        with pytest.raises(MediaError, match=r"not back after 2 attempts .*connection refused"):
            list(source)
        assert list(source) == []


@pytest.mark.slow
def test_from_start(server: Server) -> None:
    server.start()
    server.kill()  # the port is known now
    patient = ReconnectPolicy(first_s=0.1, max_s=0.2, from_start=True)
    with open_source(server.url(), timeout_s=2, reconnect=patient) as source:
        thread, result = in_background(lambda: take(source, 10))
        time.sleep(0.2)
        server.start()
        thread.join(10)
        assert not thread.is_alive()
    assert isinstance(result[0], list)
    assert [number for number, _, _ in result[0]] == list(range(10))
    assert source.reconnects == 0
    assert (
        "there was no connection (connection refused), it came after" in source.notices[0].sentence
    )
    assert (source.width, source.height) == (64, 48)


@pytest.mark.parametrize(
    ("password", "written"), [("hunter2", "hunter2"), ("p@ss", "p@ss"), ("a:b/c", "a%3Ab%2Fc")]
)
@pytest.mark.sampled
def test_passwords(
    server: Server, password: str, written: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.start("--user", f"me:{password}")
    with open_source(server.url(f"me:{written}"), timeout_s=5, reconnect=FAST) as source:
        take(source, 3)
        server.kill()
        server.start("--user", "me:other")
        thread, _ = in_background(lambda: take(source, 60))
        wait_until(lambda: "returned 401" in repr(source.notices))
        source.close()
        thread.join(2)
    told = [repr(source), source.name, repr(source.notices), *capfd.readouterr()]
    assert "(last try: server returned 401" in told[2]
    with pytest.raises(MediaError, match="401") as caught:
        open_source(server.url(f"me:{written}") + f"?token={password}", timeout_s=5)
    error: BaseException | None = caught.value
    while error is not None:
        told += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not any(secret in text for secret in (password, written) for text in told)


@pytest.mark.slow
def test_two_clients(server: Server) -> None:
    server.start()
    with (
        open_source(server.url(), source_id=0, timeout_s=5) as a,
        open_source(server.url(), source_id=1, timeout_s=5) as b,
    ):
        thread, result = in_background(lambda: take(a, 30))
        frames = take(b, 30)
        thread.join(5)
        assert not thread.is_alive()
    assert isinstance(result[0], list)
    assert [f[0] for f in frames] == [f[0] for f in result[0]] == list(range(30))


@pytest.mark.slow
def test_a_recording_has_an_end(server: Server, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "c.mp4", 50)
    server.start("--clip", str(clip))
    with open_source(server.url(path="clip"), timeout_s=5, reconnect=FAST) as source:
        count = len(list(source))
    assert 40 <= count <= 50
    assert source.reconnects == 0


@pytest.mark.slow
def test_a_run_that_ends_amid_a_stream_ends_well(server: Server, tmp_path: Path) -> None:
    """FFmpeg calls back into Python while it waits for packets, also when Python ends."""
    demo = Path(__file__).parents[3] / "examples" / "conveyor"
    server.start("--clip", str(demo / "conveyor.mp4"))
    words = [sys.executable, "-m", "headrace", "run", str(demo / "config_infer_primary.txt"),
             server.url(path="clip"), "-o", str(tmp_path / "x.jsonl"), "--limit", "30"]  # fmt: skip
    codes = [subprocess.run(words, capture_output=True, check=False).returncode for _ in range(6)]
    assert codes == [0] * 6


@pytest.mark.slow
def test_the_server_of_the_benchmarks_tells_when_b_frames_are_shown(tmp_path: Path) -> None:
    """Also when the video begins again: every image 40 ms after the one before."""
    video = write_clip(tmp_path / "video.mp4", 24, options=B_FRAMES)
    with shown(video) as url, open_source(url, timeout_s=10) as source:
        times = [frame.pts_ns for frame in itertools.islice(source, 60)]
    steps = {round((b - a) / 1e6) for a, b in itertools.pairwise(times)}
    assert steps == {40}


@pytest.mark.slow
def test_frame_numbers_begin_anew_on_request(server: Server) -> None:
    server.start()
    with open_source(server.url(), timeout_s=5, reconnect=FAST, renumber=True) as source:
        numbers = [number for number, *_ in take(source, 20)]
        server.kill()
        server.start()
        numbers += [number for number, *_ in take(source, 40)]
    again = numbers.index(0, 1)
    assert numbers == [*range(again), *range(60 - again)]

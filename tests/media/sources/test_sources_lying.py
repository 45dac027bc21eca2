"""Sources that lie or wait: a clear message or the frames there are, and never a hang."""

from __future__ import annotations

import gc
import itertools
import os
import random
import threading
import time
from pathlib import Path

import pytest

from headrace.errors import MediaError
from headrace.media import ReconnectPolicy, open_source
from tests.media.conftest import write_clip
from tests.media.sources.test_stream import serve


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def feed_pipe(pipe: Path, data: bytes) -> threading.Thread:
    thread = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    thread.start()
    return thread


def test_a_pipe(pipe: Path, tmp_path: Path) -> None:
    data = write_clip(tmp_path / "c.ts", 50).read_bytes()
    with open_source(str(pipe)) as source:
        assert (source.width, source.frames, source.live) == (0, None, False)
        thread = feed_pipe(pipe, data)
        frames = list(source)
        thread.join(5)
    assert [f.frame for f in frames] == list(range(50))
    assert (source.width, source.height) == (64, 48)
    assert {f.source for f in frames} == {str(pipe)}


def test_a_pipe_with_garbage(pipe: Path) -> None:
    with open_source(str(pipe)) as source:
        thread = feed_pipe(pipe, random.Random(0).randbytes(300_000))
        with pytest.raises(MediaError, match="cannot be opened: invalid data"):
            list(source)
        thread.join(5)


def test_a_pipe_nobody_writes_to(pipe: Path) -> None:
    with (
        open_source(str(pipe), timeout_s=0.3) as source,
        pytest.raises(MediaError, match=r"no program wrote to this pipe for 0\.3 s"),
    ):
        list(source)


@pytest.mark.slow
def test_a_pipe_whose_writer_is_silent(pipe: Path, tmp_path: Path) -> None:
    data = write_clip(tmp_path / "c.ts", 150).read_bytes()
    with open_source(str(pipe), timeout_s=0.5) as source:
        done = threading.Event()

        def write() -> None:
            with pipe.open("wb") as file:
                file.write(data)
                file.flush()
                done.wait(10)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        count = len(list(source))
        done.set()
        thread.join(5)
    assert count >= 140
    assert any("reading stopped: nothing came for 0.5 s" in n.sentence for n in source.notices)


def test_closing_a_pipe_that_is_waited_for(pipe: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    source = open_source(str(pipe), timeout_s=60)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(list(source))), daemon=True)
    thread.start()
    time.sleep(0.2)
    source.close()
    thread.join(1)
    assert not thread.is_alive()
    assert found == [0]
    for _ in range(20):  # the feed's thread closes the pipe when it looks up
        if len(os.listdir("/proc/self/fd")) <= before:
            break
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_closing_a_file_that_another_thread_reads(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "c.mp4", 400, options={"preset": "ultrafast"})
    for delay_ms in range(8):
        source = open_source(str(path))
        counts: list[int] = []
        thread = threading.Thread(
            target=lambda s=source, c=counts: c.append(sum(1 for _ in s)),  # type: ignore[misc]
            daemon=True,
        )
        thread.start()
        time.sleep(delay_ms / 1000)
        source.close()
        thread.join(2)
        assert not thread.is_alive()
        assert counts
        assert source._released


def test_a_forgotten_stream_ends_its_thread(tmp_path: Path) -> None:
    data = write_clip(tmp_path / "c.ts", 100).read_bytes()
    with serve(data, hang=True) as url:
        next(open_source(url, timeout_s=0.5))
        gc.collect()
        until = time.monotonic() + 3
        while any(t.name == "headrace-feed" for t in threading.enumerate()):
            assert time.monotonic() < until
            time.sleep(0.02)


def test_two_readers_are_refused(pipe: Path) -> None:
    with open_source(str(pipe), timeout_s=30) as source:
        thread = threading.Thread(target=lambda: list(source), daemon=True)
        thread.start()
        time.sleep(0.1)
        with pytest.raises(RuntimeError, match="two threads"):
            next(source)
    thread.join(1)
    assert not thread.is_alive()


def test_a_file_that_grows(tmp_path: Path) -> None:
    data = write_clip(tmp_path / "whole.ts", 300).read_bytes()
    path = tmp_path / "growing.ts"
    path.write_bytes(data[: len(data) // 2])
    with open_source(str(path)) as source:
        frames = list(itertools.islice(source, 1))
        with path.open("ab") as file:
            file.write(data[len(data) // 2 :])
        frames += list(source)
    assert 140 <= len(frames) <= 300
    assert any("the file grew while it was read" in n.sentence for n in source.notices)


def test_a_recording_cut_before_its_index(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "c.mp4", 50)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MediaError, match="without its index"):
        open_source(str(path))


def test_times_that_go_back(tmp_path: Path) -> None:
    """Two recordings one after the other: the second begins at the same time as the first."""
    part = write_clip(tmp_path / "p.ts", 10).read_bytes()
    path = tmp_path / "both.ts"
    path.write_bytes(part + part)
    with open_source(str(path), threads=1) as source:
        times = [f.pts_ns for f in source]
    assert len(times) >= 18
    assert all(b > a for a, b in itertools.pairwise(times))
    assert max(b - a for a, b in itertools.pairwise(times)) < 1e9
    assert any("times that went back" in n.sentence for n in source.notices)


def test_a_stream_that_turns_to_garbage(tmp_path: Path) -> None:
    data = write_clip(tmp_path / "c.ts", 100).read_bytes()
    once = ReconnectPolicy(first_s=0.01, attempts=1)
    with (
        serve(data + random.Random(1).randbytes(400_000), hang=False) as url,
        open_source(url, timeout_s=1, reconnect=once) as source,
    ):
        frames = []
        with pytest.raises(MediaError, match="not back after 1 attempt"):
            frames.extend(source)
        # the frames before the garbage were given
        assert source.given >= 90


@pytest.mark.slow
def test_a_stream_of_garbage() -> None:
    with serve(random.Random(2).randbytes(400_000), hang=True) as url:
        start = time.monotonic()
        with pytest.raises(MediaError, match="cannot be opened"):
            open_source(url, timeout_s=1)
        assert time.monotonic() - start < 4


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_out_that_is_none(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        open_source("rtsp://127.0.0.1/x", timeout_s=timeout_s)

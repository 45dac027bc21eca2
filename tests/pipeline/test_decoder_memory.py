"""Videos side by side: one decoder thread each where they are many, refused where memory lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.errors import HeadraceError
from headrace.media import open_source
from headrace.pipeline import decoder_memory
from headrace.pipeline.decoder_memory import DecoderMemory, free_memory
from tests.media.conftest import write_clip
from tests.media.sources.videos import write_video
from tests.pipeline.fakes import FakeSource

PIPELINE = "sources: [{{uri: {clip}, repeat: {repeat}}}]\nsinks: [fake]\n"


def repeated(folder: Path, repeat: int) -> Path:
    clip, file = write_clip(folder / "clip.mp4"), folder / "pipeline.yml"
    file.write_text(PIPELINE.format(clip=clip, repeat=repeat))
    return file


def test_more_videos_than_memory_are_refused_before_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = DecoderMemory(1)
    with open_source(str(write_clip(tmp_path / "clip.mp4"))) as clip:
        memory.add(clip)
    one = memory.needed
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: int(5.5 * one))
    with headrace.open_pipeline(repeated(tmp_path, 5)) as pipeline:
        assert pipeline.run().frames == 5 * 12
    with pytest.raises(HeadraceError) as caught:
        headrace.open_pipeline(repeated(tmp_path, 1024))
    text = str(caught.value)
    assert "1024 sources are decoded side by side" in text
    assert "about 5 sources of that size" in text
    assert "lower repeat" in text


def test_one_video_is_never_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: 0)
    with headrace.open_pipeline(repeated(tmp_path, 1)) as pipeline:
        assert pipeline.run().frames == 12


def test_many_videos_have_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "usable_cores", lambda: 4)
    assert [DecoderMemory(n).threads for n in (1, 4, 5, 1024)] == [None, None, 1, 1]


def test_images_in_memory_need_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: 0)
    memory = DecoderMemory(2)
    memory.add(FakeSource(3))
    memory.add(FakeSource(3))


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(decoder_memory, "_CGROUP", tmp_path)
    assert free_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   500 kB\n")
    assert free_memory() == 500 * 1024
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() == 500 * 1024
    (tmp_path / "memory.max").write_text("300000\n")
    assert free_memory() == 299000


MEASURE = """
import sys
from headrace.media import open_source
from headrace.pipeline.decoder_memory import DecoderMemory

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024

def decode(count):
    videos = [open_source(sys.argv[1], threads=1) for _ in range(count)]
    frames = [iter(video) for video in videos]
    for _ in range(40):
        held = [next(f) for f in frames]
    return videos, frames, held

first = decode(2)
memory, before = DecoderMemory(12), resident()
videos = decode(12)
for video in videos[0]:
    memory.add(video)
print(memory.needed / (resident() - before))
"""


SMALL, LARGE = (160, 96), (640, 360)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "parameters", "size"),
    [
        ("x264", "ref=16:bframes=3", SMALL),
        ("x264", "ref=16:bframes=3", LARGE),
        ("x264", "ref=2:bframes=2", LARGE),
        ("x265", "ref=5:bframes=4:log-level=none", SMALL),
        ("x265", "ref=5:bframes=4:log-level=none", LARGE),
        ("mpeg4", "", LARGE),
    ],
)
def test_the_bytes_counted_are_those_that_decoders_hold(
    tmp_path: Path, codec: str, parameters: str, size: tuple[int, int]
) -> None:
    options = {f"{codec}-params": parameters} if parameters else {}
    name = f"lib{codec}" if parameters else codec
    video = write_video(tmp_path / "a.mp4", 48, codec=name, options=options, gop=250, size=size)
    done = subprocess.run([sys.executable, "-c", MEASURE, video], capture_output=True, check=True)
    assert 0.75 < float(done.stdout) < 2.5

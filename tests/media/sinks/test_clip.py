"""Clips: the original packets around events, from the last key frame on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import pytest

from headrace.errors import HeadraceError, MediaError
from headrace.infer.batch import Batch
from headrace.media import open_sink, open_source
from headrace.media.sources.packet_ring import PacketRing
from headrace.meta import Detections, Space
from headrace.pipeline import Pipeline
from tests.media.conftest import write_clip


def video(path: Path, frames: int = 100) -> Path:
    """4 s at 25 fps with a key frame each half second, and frames that look both ways."""
    options = {"g": "12", "keyint_min": "12", "sc_threshold": "0", "bf": "2"}
    return write_clip(path, frames, options=options)


def packets(path: Path) -> list[tuple[bytes, bool]]:
    with av.open(str(path)) as container:
        return [(bytes(p), p.is_keyframe) for p in container.demux(video=0) if p.size]


def person_at(*numbers: int) -> Any:
    """A probe that finds a person in some frames, and a car in all."""

    def find(batch: Batch) -> None:
        for meta in batch.metas:
            for number in (0, 1):
                if number == 0 or meta.frame in numbers:
                    box = Detections([[1, 1, 9, 9]], [0.9], [number], space=Space.FRAME)
                    meta.objects.append(box, 1, labels=("car", "person"))

    return find


def record(tmp_path: Path, options: str, *stages: Any) -> list[Path]:
    source = video(tmp_path / "in.mp4")
    sink = open_sink(f"clip:{tmp_path / 'clips'}?{options}")
    Pipeline(open_source(str(source)), stages, [sink]).run()
    found = sorted((tmp_path / "clips").iterdir())
    assert not [p for p in found if p.suffix == ".part"]
    return found


def test_a_clip_is_the_original(tmp_path: Path) -> None:
    (clip,) = record(tmp_path, "before=0.4&after=0.6&classes=person", person_at(50))
    assert clip.suffix == ".mp4"
    every, kept = packets(tmp_path / "in.mp4"), packets(clip)
    assert kept[0][1]  # begins at a key frame
    start = every.index(kept[0])
    assert kept == every[start : start + len(kept)]  # byte for byte
    with av.open(str(clip)) as container:
        images = sum(1 for _ in container.decode(video=0))
    # key frame at 36 (the last before 40), to 65 and what is decoded with it
    assert start == 36
    assert 30 <= len(kept) <= 33
    assert images == len(kept)


def test_events_join_and_part(tmp_path: Path) -> None:
    clips = record(tmp_path, "before=0&after=0.2&classes=person", person_at(20, 23, 80))
    assert len(clips) == 2
    lengths = sorted(len(packets(c)) for c in clips)
    assert lengths[0] < lengths[1] < 30


def test_the_longest_clip(tmp_path: Path) -> None:
    clips = record(tmp_path, "before=0&after=1&longest=1")  # a car is always there
    assert clips == []
    clips = record(tmp_path, "before=0&after=1&longest=1", person_at())
    assert len(clips) == 4


def test_on_call(tmp_path: Path) -> None:
    source = video(tmp_path / "in.mp4")
    sink = open_sink(f"clip:{tmp_path / 'clips'}?on=call&before=1&after=1")
    pipeline = Pipeline(open_source(str(source)), person_at(), [sink])
    for frame, _ in pipeline:
        if frame.frame == 50:
            assert pipeline.record_clip(0)
            assert not pipeline.record_clip(7)
    assert len(list((tmp_path / "clips").iterdir())) == 1
    without = Pipeline(open_source(str(source)), person_at())
    with pytest.raises(HeadraceError, match="no output takes clips"):
        without.record_clip(0)
    without.close()


def test_an_event_before_the_first_key_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who joins a camera between two key frames: the clip begins at the next one."""
    start_of = PacketRing.start_of

    def from_36_on(self: PacketRing, time_ns: int) -> int | None:
        found = start_of(self, time_ns)
        return None if found is None or found < 36 else found

    monkeypatch.setattr(PacketRing, "start_of", from_36_on)
    (clip,) = record(tmp_path, "before=0&after=0.4&classes=person", person_at(20))
    every, kept = packets(tmp_path / "in.mp4"), packets(clip)
    assert every.index(kept[0]) == 36


@pytest.mark.parametrize(
    ("options", "found"),
    [("befor=1", "not an option"), ("on=smoke", "unknown"), ("after=nan", "out of range")],
)
def test_options_that_are_wrong(tmp_path: Path, options: str, found: str) -> None:
    with pytest.raises(MediaError, match=found):
        open_sink(f"clip:{tmp_path}?{options}")


def test_the_ring_is_bounded(tmp_path: Path) -> None:
    path = video(tmp_path / "in.mp4")
    ring = PacketRing(600, max_bytes=1500)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        ring.begin(stream)
        for packet in container.demux(stream):
            if packet.size:
                ring.add(packet)
                assert ring.size_bytes <= 1500
    assert ring.cut
    kept = ring.since(0, 1 << 62)
    assert kept[0].is_key
    assert sum(len(p.data) for p in kept) == ring.size_bytes


def test_a_ring_keeps_what_is_wanted(tmp_path: Path) -> None:
    path = video(tmp_path / "in.mp4")
    ring = PacketRing(1.0)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        ring.begin(stream)
        for packet in container.demux(stream):
            if packet.size:
                ring.add(packet)
    ring.trim(3_000_000_000)
    first = ring.since(0, 1 << 62)[0]
    assert first.is_key
    assert 1_500_000_000 <= first.time_ns <= 2_000_000_000
    assert ring.start_of(2_000_000_000) == first.number

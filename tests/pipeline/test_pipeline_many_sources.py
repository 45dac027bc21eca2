"""Many sources through one pipeline: every frame once, in order, whatever the others do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import MediaError
from headrace.media import open_sink, open_source
from headrace.pipeline import Pipeline, RunReport
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource, FakeTracker, sources
from tests.profiles import examples


def run(given: Any, stages: Any, *sinks: Any, **options: Any) -> RunReport:
    return Pipeline(given, stages, sinks, **options).run()


@settings(max_examples=examples(25))
@given(
    counts=st.lists(st.integers(0, 15), min_size=1, max_size=6),
    batch_size=st.integers(1, 8),
    interval=st.integers(0, 2),
    streams=st.integers(1, 3),
    buffer=st.none() | st.integers(1, 4),
    data=st.data(),
)
def test_every_frame_once_and_in_order_per_source(
    counts: list[int],
    batch_size: int,
    interval: int,
    streams: int,
    buffer: int | None,
    data: st.DataObject,
) -> None:
    files = sources(*counts)
    dying = data.draw(st.sets(st.integers(0, len(counts) - 1), max_size=len(counts) - 1))
    for i in dying:
        files[i].fail_at = data.draw(st.integers(0, counts[i]))
    first = FakeModel(batch_size, interval, streams=streams, delay_s=0.001)
    second = FakeModel(3, component_id=2, delay_s=0.001)
    tracker, sink = FakeTracker(), FakeSink()
    report = run(files, [first, tracker, second], sink, batch_size=buffer)
    for i, source in enumerate(files):
        expected = list(range(source.fail_at if i in dying else counts[i]))
        assert sink.of(10 + i) == expected
        assert tracker.seen.get(10 + i, []) == expected
        assert report.sources[i].frames == len(expected)
        assert report.sources[i].state == ("failed" if i in dying else "ended")
    assert max(map(len, first.batches), default=0) <= batch_size
    assert max(map(len, second.batches), default=0) <= 3
    for meta in sink.got:
        components = meta.objects.component_ids.tolist()
        assert components in ([1, 2], [2]), "the second has no interval"
        assert [int(o.left) for o in meta.objects] == [meta.frame] * len(components)
    ids = [10 + i for i in range(len(counts))]
    assert sorted(tracker.ended) == sorted(first.ended) == sorted(second.ended) == ids
    died = [n.where for n in report.notices if n.code != "sources-skipped"]
    assert sorted(died) == sorted(f"s{10 + i}" for i in dying)


def test_one_dying_and_one_garbage_do_not_stop_the_rest() -> None:
    files = sources(30, 7, 50, 1, 20, 40, 33, 12)
    files[2].fail_at, files[5].fail_at = 25, 0
    sink = FakeSink()
    report = run(files, FakeModel(8), sink)
    expected = [30, 7, 25, 1, 20, 0, 33, 12]
    assert [sink.of(10 + i) for i in range(8)] == [list(range(n)) for n in expected]
    assert report.frames == sum(expected)
    assert report.source == "8 sources"
    assert [(n.level, str(n)) for n in report.notices] == [
        ("warning", "s12: failed after 25 frames: the stream broke"),
        ("warning", "s15: failed after 0 frames: the stream broke"),
    ]
    assert repr(report).endswith("128 objects, 2 sources failed)")


def test_if_all_sources_fail_the_first_error_is_raised() -> None:
    files = [FakeSource(9, fail_at=8, name="late"), FakeSource(9, fail_at=2, name="soon")]
    sink = FakeSink()
    with pytest.raises(MediaError, match="the stream broke"):
        run(files, FakeModel(), sink)
    assert sink.of(0) == list(range(8))
    assert sink.of(1) == [0, 1]
    assert sink.closed == 1


def test_sources_of_one_number_are_numbered() -> None:
    files = [FakeSource(2), FakeSource(3)]
    sink = FakeSink()
    report = run(files, FakeModel(), sink)
    assert sink.of(1) == [0, 1, 2]
    assert [s.source_id for s in report.sources] == [0, 1]


def test_a_slow_file_holds_a_fast_one_back_and_nothing_piles_up() -> None:
    fast, slow = FakeSource(200, source_id=0), FakeSource(20, source_id=1, delay_s=0.003)
    ahead: list[int] = []
    run([fast, slow], FakeModel(2), on_result=lambda m: ahead.append(fast.read - slow.read))
    assert max(ahead[:30]) <= 12


def test_a_live_source_beside_a_file_drops_and_the_file_does_not() -> None:
    live = FakeSource(100, live=True, source_id=0)
    file = FakeSource(60, source_id=1)
    sink = FakeSink(delay_s=0.002)
    report = run([live, file], FakeModel(2), sink)
    assert sink.of(1) == list(range(60))
    assert report.sources[0].dropped == 100 - len(sink.of(0)) > 0
    assert report.sources[1].dropped == 0


def test_a_live_source_that_hangs_does_not_hold_up_a_stop() -> None:
    hanging = FakeSource(10, live=True, hang_at=3, source_id=0)
    file = FakeSource(40, source_id=1)
    sink = FakeSink()
    pipeline = Pipeline([hanging, file], FakeModel(2), [sink], batch_timeout_s=0.01)  # type: ignore[list-item, arg-type]
    pipeline.on_result = lambda m: pipeline.stop() if (m.source_id, m.frame) == (1, 39) else None
    start = time.monotonic()
    report = pipeline.run()
    assert time.monotonic() - start < 5
    assert sink.of(1) == list(range(40))
    assert sink.closed == 1
    assert report.sources[0].state == "stopped"
    hanging.freed.set()


def _video(path: Path, frames: int, size: tuple[int, int]) -> None:
    import av

    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
        stream.width, stream.height = size
        for i in range(frames):
            image = np.full((size[1], size[0], 3), i * 5 % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
        out.mux(stream.encode(None))


def test_eight_files_one_cut_off_and_one_garbage(tmp_path: Path) -> None:
    """Real files of different length and size; the others are not disturbed."""
    counts = [12, 30, 5, 21, 40, 8, 16, 1]
    for i, count in enumerate(counts):
        _video(tmp_path / f"{i}.mkv", count, (64 + 16 * i, 48 + 2 * i))
    whole = (tmp_path / "4.mkv").read_bytes()
    (tmp_path / "4.mkv").write_bytes(whole[: len(whole) // 2])
    body = bytearray((tmp_path / "6.mkv").read_bytes())
    body[600:] = bytes(np.random.default_rng(1).integers(0, 256, len(body) - 600, np.uint8))
    (tmp_path / "6.mkv").write_bytes(body)
    files = [open_source(str(tmp_path / f"{i}.mkv"), source_id=i) for i in range(8)]
    sink = FakeSink()
    lines = open_sink(str(tmp_path / "out.jsonl"))
    report = run(files, [FakeModel(8, streams=2), FakeTracker()], sink, lines)
    for i, count in enumerate(counts):
        if i not in (4, 6):
            assert sink.of(i) == list(range(count))
            assert {(m.width, m.height) for m in sink.got if m.source_id == i} == {
                (64 + 16 * i, 48 + 2 * i)
            }
    assert sink.of(4) == list(range(len(sink.of(4))))
    assert 0 < len(sink.of(4)) < 40
    assert report.sources[6].state == "failed"
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == report.frames == len(sink.got)

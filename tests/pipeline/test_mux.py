"""Batches across sources: fair turns, every frame once, live sources, sources that fail."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.infer.batch import Batch
from headrace.pipeline.backlog import Backlog
from headrace.pipeline.mux import Muxer
from tests.pipeline.fakes import FakeSource, sources
from tests.profiles import examples


def mux(given: Any, **options: Any) -> list[Batch]:
    muxer = Muxer(given, **options)
    muxer.start()
    batches = list(muxer.batches())
    muxer.join()
    assert all(s.closed for s in given)
    return batches


def buffers(batches: list[Batch]) -> dict[int, list[tuple[int, int]]]:
    """buffer number -> (source, frame) of its frames."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for batch in batches:
        for frame, number in zip(batch.frames, batch.buffers, strict=True):
            found[number].append((frame.source_id, frame.frame))
    return found


def oracle(counts: list[int], size: int) -> list[list[tuple[int, int]]]:
    """The buffers of files: whose turn it is gives one frame and goes to the end of the row."""
    row = [i for i, n in enumerate(counts) if n]
    given = [0] * len(counts)
    result = []
    while row:
        if len(row) <= size:
            row.sort()
        turn, rest = row[:size], row[size:]
        result.append(sorted((10 + i, given[i]) for i in turn))
        for i in turn:
            given[i] += 1
        row = [i for i in rest + turn if given[i] < counts[i]]
    return result


@settings(max_examples=examples(60))
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    size=st.integers(1, 7),
    fill=st.integers(1, 9),
    interval=st.integers(0, 3),
    room=st.integers(1, 8),
)
def test_files_give_every_frame_once_in_fair_buffers(
    counts: list[int], size: int, fill: int, interval: int, room: int
) -> None:
    batches = mux(sources(*counts), buffer_size=size, fill=fill, interval=interval, room=room)
    found = buffers(batches)
    assert list(found) == list(range(len(found))), "buffers are numbered without gaps"
    for i, count in enumerate(counts):
        numbers = [f for b in found.values() for s, f in b if s == 10 + i]
        assert numbers == list(range(count))
    for buffer in found.values():
        assert buffer == sorted(buffer)
        assert len({s for s, _ in buffer}) == len(buffer) <= size
    # as long as nothing ends the turns are exactly known
    whole = next((k for k, b in enumerate(oracle(counts, size)) if _ends(b, counts)), len(found))
    assert list(found.values())[:whole] == oracle(counts, size)[:whole]
    for batch in batches:
        inferred = sum(b % (interval + 1) == 0 for b in batch.buffers)
        assert inferred <= fill or len(set(batch.buffers)) == 1
    ended = [i for b in batches for i in b.ended]
    assert sorted(ended) == [10 + i for i in range(len(counts))]
    for batch in batches:
        for source_id in batch.ended:
            later = batches[batches.index(batch) + 1 :]
            assert all(f.source_id != source_id for b in later for f in b.frames)


def _ends(buffer: list[tuple[int, int]], counts: list[int]) -> bool:
    return any(frame == counts[source - 10] - 1 for source, frame in buffer)


def test_buffers_of_files_are_joined_to_fill_the_engine() -> None:
    batches = [b for b in mux(sources(5, 5, 5), fill=7) if b.frames]
    assert [b.buffers for b in batches[:2]] == [[0, 0, 0, 1, 1, 1], [2, 2, 2, 3, 3, 3]]
    assert [[f.source_id for f in b.frames] for b in batches[:1]] == [[10, 11, 12] * 2]


@pytest.mark.parametrize(
    ("count", "frames"), [(1, 8), (3, 15), (5, 15), (6, 24), (7, 28), (8, 8), (9, 27)]
)
def test_buffers_are_joined_until_runs_of_one_cost_are_full(count: int, frames: int) -> None:
    """Runs of 8 rows: the first number of whole buffers that fills nine tenths, of 32 at most."""
    given = sources(*[40] * count)
    first = mux(given, fill=8, run_rows=8)[0]
    assert len(first.frames) == frames


def test_sources_take_turns_where_runs_hold_fewer() -> None:
    batches = mux(sources(*[16] * 12), buffer_size=8, fill=8, run_rows=8)
    assert [len(b.frames) for b in batches if b.frames] == [8] * 24
    assert buffers(batches)[1][0] == (10, 1)  # the last four, and the first four again


def test_frames_carry_the_id_of_their_source() -> None:
    """Also from a source that does not know its id."""
    first, second = sources(3, 3)

    class Careless(FakeSource):
        def __iter__(self) -> Any:
            return iter(FakeSource(3))

    careless = Careless(3, source_id=5)
    assert {s for b in buffers(mux([first, careless])).values() for s, _ in b} == {10, 5}
    assert second.source_id == 11


def test_a_live_source_is_not_waited_for_longer_than_the_time_limit() -> None:
    fast = FakeSource(40, live=True, delay_s=0.005, source_id=0)
    slow = FakeSource(3, live=True, delay_s=0.1, source_id=1)
    start = time.monotonic()
    found = buffers(mux([fast, slow], timeout_s=0.02, room=100))
    assert time.monotonic() - start < 2
    numbers = {s: [f for b in found.values() for t, f in b if t == s] for s in (0, 1)}
    assert numbers == {0: list(range(40)), 1: [0, 1, 2]}
    assert len(found) >= 40


def test_live_sources_of_one_rate_share_their_buffers() -> None:
    batches = mux(sources(20, 20, 20, live=True, delay_s=0.01), timeout_s=0.2, room=60)
    whole = [b for b in buffers(batches).values() if len(b) == 3]
    assert len(whole) >= 18


@pytest.mark.parametrize(
    ("given", "fill"),
    [(sources(*[20] * 6, live=True, delay_s=0.02), 6), (sources(160, delay_s=0.001), 16)],
    ids=["live", "video"],
)
def test_the_reader_is_woken_for_buffers_not_for_each_frame(
    given: Any, fill: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    muxer = Muxer(given, fill=fill, room=100, timeout_s=0.5)
    waits, wait = [], muxer._arrived.wait
    monkeypatch.setattr(muxer._arrived, "wait", lambda *a: waits.append(wait(*a)))
    muxer.start()
    frames = sum(len(batch.frames) for batch in muxer.batches())
    muxer.join()
    assert frames >= 120
    assert len(waits) < frames / 2


def test_a_source_that_waits_for_room_is_woken_when_half_of_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    muxer = Muxer([FakeSource(40)], room=8)
    (feed,) = muxer._feeds
    waiting, notify = [], feed.room.notify
    monkeypatch.setattr(feed.room, "notify", lambda: (waiting.append(len(feed.items)), notify()))
    muxer.start()
    taken = []
    for batch in muxer.batches():
        time.sleep(0.005)  # meanwhile all of the room is filled
        taken += [frame.frame for frame in batch.frames]
    muxer.join()
    assert taken == list(range(40))
    assert max(waiting) == 4


@pytest.mark.parametrize(
    ("moment_s", "read_s", "work_s", "sizes"),
    [(0.0, 0.08, 0.0, {1}), (30.0, 0.001, 0.0, {4}), (30.0, 0.0, 0.01, {4})],
)
def test_frames_that_come_within_a_moment_are_joined_and_no_other_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    moment_s: float,
    read_s: float,
    work_s: float,
    sizes: set[int],
) -> None:
    monkeypatch.setattr("headrace.pipeline.mux._JOIN_S", moment_s)
    muxer = Muxer([FakeSource(8, delay_s=read_s)])
    muxer.joined = 4
    muxer.start()
    taken, found = [], set()
    for batch in muxer.batches():
        time.sleep(work_s)
        taken += [frame.frame for frame in batch.frames]
        found |= {len(batch)} if batch.frames else set()
    muxer.join()
    assert taken == list(range(8))
    assert found == sizes


def test_a_live_source_that_falls_silent_is_waited_for_once() -> None:
    good = FakeSource(30, live=True, source_id=0, delay_s=0.001)
    silent = FakeSource(5, live=True, source_id=1, hang_at=2)
    muxer = Muxer([good, silent], timeout_s=0.1, room=100)
    muxer.start()
    start = time.monotonic()
    got: list[int] = []
    for batch in muxer.batches():
        got += [f.frame for f in batch.frames if f.source_id == 0]
        if len(got) == 30:
            break
    assert time.monotonic() - start < 1.5, "30 buffers do not wait 0.1 s each"
    silent.freed.set()
    muxer.abandon()
    muxer.join()


def test_a_live_source_that_begins_behind_others_catches_up() -> None:
    """In step with them it would stay as many frames behind as it began with."""

    class Burst(FakeSource):
        def __iter__(self) -> Any:
            for frame in super().__iter__():
                self.delay_s = 0.0 if frame.frame < 10 else 0.02
                yield frame

    steady = FakeSource(40, live=True, source_id=1, delay_s=0.02)
    muxer = Muxer([Burst(40, live=True), steady], timeout_s=0.05, room=100)
    muxer.start()
    ages = [time.monotonic() - b.came_at for b in muxer.batches() if b.frames]
    muxer.join()
    assert sorted(ages[-20:])[10] < 0.1  # 0.2, in step


def test_the_time_limit_of_a_buffer_counts_from_the_arrival_of_its_oldest_frame() -> None:
    quick = FakeSource(1, live=True, source_id=0)
    slow = FakeSource(1, live=True, source_id=1, hang_at=0)
    muxer = Muxer([quick, slow], timeout_s=0.5)
    muxer.start()
    time.sleep(0.7)  # whoever reads is late itself
    start = time.monotonic()
    assert len(next(muxer.batches()).frames) == 1
    assert time.monotonic() - start < 0.3
    slow.freed.set()
    muxer.abandon()
    muxer.join()


@pytest.mark.parametrize("late", [True, False])
def test_videos_begin_without_those_whose_decoders_are_still_made(late: bool) -> None:
    first, second = sources(4, 4)
    second.begins_late, second.hang_at = late, 0
    muxer = Muxer([first, second], begin_with_some=True)
    muxer.start()
    release = threading.Timer(0.5, second.freed.set)
    release.start()
    found = buffers(list(muxer.batches()))
    muxer.join()
    assert found[0] == ([(10, 0)] if late else [(10, 0), (11, 0)])
    assert sorted(frame for buffer in found.values() for frame in buffer) == [
        (source, frame) for source in (10, 11) for frame in range(4)
    ]


@pytest.mark.parametrize("late", [True, False])
def test_decoders_of_more_videos_are_made_when_kernels_are_planned(late: bool) -> None:
    given = sources(*[2] * 10)
    for source in given:
        source.begins_late = late
    planned = threading.Event()
    muxer = Muxer(given, begin_with_some=True)
    muxer.more_decoders = planned.is_set
    muxer.start()
    release = threading.Timer(0.5, planned.set)
    release.start()
    found = buffers(list(muxer.batches()))
    muxer.join()
    early = {source for source, _ in found[0]} | {source for source, _ in found[1]}
    assert (early == {10}) == late
    assert sum(map(len, found.values())) == 20


def test_each_live_source_has_the_times_from_its_packets_to_its_metadata() -> None:
    quick, slow = sources(3, 3, live=True)
    muxer = Muxer([quick, slow], room=100)
    muxer.start()
    for batch in muxer.batches():
        now = time.time_ns()
        ages = {10: 20_000_000, 11: 2_000_000_000}
        muxer.delivered(
            [replace(f, live=True, wall_ns=now - ages[f.source_id]) for f in batch.frames]
        )
    muxer.join()
    quick_s, slow_s = (report.latency_s for report in muxer.reports)
    assert quick_s is not None
    assert slow_s is not None
    assert (quick_s["count"], slow_s["count"]) == (3, 3)
    assert 0.02 <= quick_s["mean"] < 0.5 < 1 < slow_s["median"] <= slow_s["p99"]


def test_a_live_source_gives_up_its_oldest_frames() -> None:
    source = FakeSource(50, live=True)
    muxer = Muxer([source], room=4)
    muxer.start()
    while not source.closed:
        time.sleep(0.001)
    got = [f.frame for b in muxer.batches() for f in b.frames]
    assert got == [46, 47, 48, 49]
    assert (muxer.reports[0].frames, muxer.reports[0].dropped) == (50, 46)


@pytest.mark.parametrize(
    ("step_s", "catch_up_s", "dropped"),
    [(0.04, 10.0, False), (0.0, 10.0, True), (0.04, 0.0, True)],
    ids=["what a server kept", "a source that is too fast", "one that does not catch up"],
)
def test_a_live_source_that_begins_with_what_its_server_kept_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, step_s: float, catch_up_s: float, dropped: bool
) -> None:
    monkeypatch.setattr("headrace.pipeline.backlog._CATCH_UP_S", catch_up_s)
    source = FakeSource(50, live=True)
    source.step_ns = round(step_s * 1e9)
    muxer = Muxer([source], room=4)
    muxer.start()
    for _ in muxer.batches():
        time.sleep(0.002)
    (report,) = muxer.reports
    assert report.frames == 50
    assert (report.dropped > 0) is dropped


def test_a_source_that_was_silent_begins_anew() -> None:
    backlog = Backlog()
    assert [backlog.patience_s(n) > 0 for n in (0, 40_000_000)] == [True, True]
    assert backlog.patience_s(-(10**9)) == 0.0  # later than the first one was
    backlog._last_at -= 2.0
    assert backlog.patience_s(-(10**9)) > 9.0


@pytest.mark.parametrize("how", [{"live": True}, {"live": True, "stubborn": True}, {}])
@pytest.mark.sampled
def test_a_stop_does_not_wait_for_a_source_that_hangs(how: dict[str, bool]) -> None:
    source = FakeSource(5, hang_at=2, **how)
    muxer = Muxer([source])  # type: ignore[list-item]
    muxer.start()
    got = []
    start = time.monotonic()
    for batch in muxer.batches():
        got += [f.frame for f in batch.frames]
        if len(got) == 2:
            muxer.stopping = True
    muxer.join()
    assert time.monotonic() - start < 5
    assert got == [0, 1]
    assert muxer.reports[0].state == "stopped"
    source.freed.set()


def test_a_camera_that_gives_a_frame_behind_the_stop_has_not_failed() -> None:
    source: Any = FakeSource(3, live=True, hang_at=1)
    mux = Muxer([source], keep_open=True)
    mux.start()
    thread = mux._feeds[0].thread
    assert thread is not None
    batches = mux.batches()
    assert len(next(batches)) == 1
    mux.stopping = True
    assert [batch.frames for batch in batches] == [[]]  # the end of the source
    source.freed.set()  # its frame comes now
    thread.join(10)
    assert [(r.state, r.error, r.frames) for r in mux.reports] == [("stopped", None, 1)]


def test_a_source_that_fails_does_not_disturb_the_others() -> None:
    given = [
        FakeSource(12, source_id=0),
        FakeSource(12, source_id=1, fail_at=5, name="dying"),
        FakeSource(12, source_id=2, fail_at=0, name="garbage"),
        FakeSource(7, source_id=3),
    ]
    muxer = Muxer(given, fill=4)  # type: ignore[arg-type]
    muxer.start()
    found = buffers(list(muxer.batches()))
    muxer.join()
    for source, count in enumerate((12, 5, 0, 7)):
        assert [f for b in found.values() for s, f in b if s == source] == list(range(count))
    assert [(r.state, r.frames, r.error) for r in muxer.reports] == [
        ("ended", 12, None),
        ("failed", 5, "dying: the stream broke"),
        ("failed", 0, "garbage: the stream broke"),
        ("ended", 7, None),
    ]
    assert len(muxer.errors) == 2


def test_waiting_frames_are_bounded_for_many_sources() -> None:
    given = sources(*[50] * 8)
    muxer = Muxer(given, fill=8, room=16)
    muxer.start()
    taken = 0
    for batch in muxer.batches():
        time.sleep(0.005)
        taken += len(batch.frames)
        assert sum(s.read for s in given) - taken <= 8 * (2 + 1)
    assert taken == 400


@pytest.mark.parametrize("limit", [1, 4])
def test_the_limit_is_per_source(limit: int) -> None:
    found = buffers(mux(sources(9, 2, 9), limit=limit))
    counts = [sum(s == 10 + i for b in found.values() for s, _ in b) for i in range(3)]
    assert counts == [limit, min(2, limit), limit]


@settings(max_examples=examples(30))
@given(
    steps=st.lists(st.sampled_from([10, 20, 40, 80]), min_size=1, max_size=4),
    count=st.integers(1, 8),
)
def test_synchronised_files_share_buffers_by_time(steps: list[int], count: int) -> None:
    given = sources(*[count] * len(steps))
    for source, step in zip(given, steps, strict=True):
        source.fps = 1000 / step
        source.step_ns = step * 1_000_000
    batches = mux(given, sync_wait_s=0.0)
    times: dict[int, set[int]] = defaultdict(set)
    for batch in batches:
        for frame, number in zip(batch.frames, batch.buffers, strict=True):
            times[number].add(frame.pts_ns)
    assert all(len(several) == 1 for several in times.values())
    order = [next(iter(times[number])) for number in sorted(times)]
    assert order == sorted({n * step * 1_000_000 for step in steps for n in range(count)})

"""A loop over a pipeline: frames in order, changes are written, leaving early ends cleanly."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from headrace.errors import HeadraceError, MediaError
from headrace.media import ArraySource
from headrace.pipeline import Pipeline
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource, sources, threads_left


def pipeline(source: Any, stages: Any, *sinks: Any, **options: Any) -> Pipeline:
    return Pipeline(source, stages, sinks, **options)


def test_a_loop_sees_every_frame_in_order() -> None:
    p = pipeline(sources(9, 4), FakeModel(3, streams=2))
    got = [(f.source_id, f.frame, m.frame, len(m.objects)) for f, m in p]
    assert [g[1] for g in got if g[0] == 10] == list(range(9))
    assert [g[1] for g in got if g[0] == 11] == list(range(4))
    assert all(frame == number and count == 1 for _, frame, number, count in got)
    assert p.report.frames == 13
    assert not p.report.interrupted
    assert not threads_left()


def test_what_the_loop_changes_is_written() -> None:
    sink = FakeSink()
    for _, meta in pipeline(FakeSource(10), FakeModel(4), sink):
        meta.objects[0].display_text = f"seen {meta.frame}"
    assert [m.objects[0].display_text for m in sink.got] == [f"seen {i}" for i in range(10)]
    assert sink.closed == 1


def test_leaving_early_stops_and_writes_what_was_seen() -> None:
    source, sink = FakeSource(10_000), FakeSink()
    p = pipeline(source, FakeModel(4), sink)
    for _, meta in p:
        if meta.frame == 9:
            break
    assert [m.frame for m in sink.got] == list(range(10))
    assert (sink.closed, source.closed) == (1, True)
    assert source.read < 60
    assert p.report.interrupted
    assert not threads_left()


def test_a_slow_loop_holds_the_source_back() -> None:
    source = FakeSource(60)
    ahead = []
    for _, meta in pipeline(source, FakeModel()):
        time.sleep(0.002)
        ahead.append(source.read - meta.frame)
    assert max(ahead) <= 16


def test_an_error_is_raised_at_the_end_of_the_loop() -> None:
    sink = FakeSink()
    seen = []
    with pytest.raises(RuntimeError, match="on fire"):  # noqa: PT012 - the loop is what is tested
        for _, meta in pipeline(FakeSource(50), FakeModel(fail_at=30), sink):
            seen.append(meta.frame)
    assert seen == list(range(30)) == [m.frame for m in sink.got]
    assert sink.closed == 1


def test_a_sink_that_fails_ends_the_loop() -> None:
    source, sink = FakeSource(10_000), FakeSink(fail_at=7)
    with pytest.raises(MediaError, match="disk is full"):
        list(pipeline(source, FakeModel(), sink))
    assert source.read < 100
    assert not threads_left()


def test_an_error_in_the_loop_leaves_nothing_behind() -> None:
    source, sink = FakeSource(10_000), FakeSink()
    with pytest.raises(ZeroDivisionError), pipeline(source, FakeModel(2), sink) as p:  # noqa: PT012
        for _, meta in p:
            if meta.frame == 5:
                raise ZeroDivisionError
    assert [m.frame for m in sink.got] == list(range(6))
    assert (sink.closed, source.closed) == (1, True)
    assert not threads_left()


def test_a_context_without_a_run_closes_everything() -> None:
    source, sink = FakeSource(5), FakeSink()
    with pipeline(source, FakeModel(), sink):
        pass
    assert (source.closed, sink.closed, sink.got) == (True, 1, [])


def test_a_context_tells_what_a_loop_that_was_left_could_not() -> None:
    sink = FakeSink(close_fails=True)
    p = pipeline(FakeSource(50), FakeModel(), sink)
    with pytest.raises(MediaError, match="end could not be written"), p:  # noqa: PT012
        for _ in p:
            break
    with pytest.raises(HeadraceError, match="has run already"):
        p.run()


def test_a_loop_that_never_began_costs_nothing() -> None:
    p = pipeline(FakeSource(5), FakeModel())
    iter(p)
    assert not threads_left()
    assert len(list(p)) == 5


def test_arrays_of_ones_own_in_ten_lines() -> None:
    images = (np.full((8, 8, 3), i, np.uint8) for i in range(6))
    found = {}
    for frame, meta in Pipeline(ArraySource(images, fps=5), FakeModel(2)):
        found[meta.pts_ns] = int(frame.planes[0][0, 0, 0])
    assert found == {i * 200_000_000: i for i in range(6)}

"""Sources that take turns while whole buffers are skipped: who is never inferred."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Pipeline
from headrace.pipeline.mux import Muxer
from headrace.pipeline.turns import never_inferred
from tests.pipeline.fakes import FakeModel, FakeSource, sources
from tests.profiles import examples


@settings(max_examples=examples(80))
@given(count=st.integers(1, 9), size=st.integers(1, 6), interval=st.integers(0, 5))
def test_the_warning_is_there_where_sources_of_files_are_skipped(
    count: int, size: int, interval: int
) -> None:
    muxer = Muxer(sources(*[60] * count), buffer_size=size, interval=interval)
    muxer.start()
    inferred = {
        frame.source_id
        for batch in muxer.batches()
        for frame, number in zip(batch.frames, batch.buffers, strict=True)
        if number % (interval + 1) == 0 and frame.frame < 55  # turns change when sources end
    }
    muxer.join()
    found = never_inferred(count, size, [interval], live=False)
    assert bool(found) == (len(inferred) < count)


def test_live_sources_may_be_cut_before_the_next_round() -> None:
    """Batches of 2 for 3 cameras: two, then one, and the same again."""
    assert not never_inferred(3, 2, [1], live=False)
    (found,) = never_inferred(3, 2, [0, 1], live=True)
    assert (found.code, found.level) == ("sources-skipped", "warning")
    assert found.data == {"sources": 3, "batch_size": 2, "interval": 1}
    assert found.remedies[0].startswith("write batch-size=3 ")


@pytest.mark.parametrize("size", [None, 4])
def test_a_batch_of_every_source_skips_none(size: int | None) -> None:
    assert not never_inferred(4, size, [1], live=True)


def test_a_pipeline_warns_at_opening_and_when_it_becomes_true() -> None:
    def codes(pipeline: Pipeline) -> list[int]:
        return [n.data["sources"] for n in pipeline.notices if n.code == "sources-skipped"]

    def camera() -> FakeSource:
        return FakeSource(10_000, delay_s=0.01, live=True)

    model = FakeModel(batch_size=2, interval=1)
    with Pipeline(sources(1, 1, 1, 1), [model], batch_size=2) as opened:
        assert codes(opened) == [4]
    with Pipeline([], [model], batch_size=2, keep_open=True) as pipeline:
        for expected in ([], [], [3]):
            pipeline.add_source(camera())
            assert codes(pipeline) == expected
        pipeline.set_interval(0)
        pipeline.add_source(camera())
        assert codes(pipeline) == [3]
        pipeline.set_interval(1)
        assert codes(pipeline) == [3, 4]

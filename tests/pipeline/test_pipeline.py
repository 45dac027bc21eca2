"""The pipeline's promises: order, back-pressure, limits, and what is kept when a stage fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import HeadraceError, MediaError
from headrace.infer.batch import Batch
from headrace.meta import Detections, FrameMeta, Space
from headrace.pipeline import Pipeline, RunReport
from headrace.pipeline.segment import joined_frames, segments_of
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource, FakeTracker, sources, threads_left


def run(source: Any, stages: Any, *sinks: Any, **options: Any) -> RunReport:
    return Pipeline(source, stages, sinks, **options).run()


@pytest.mark.parametrize("batch_size", [1, 3, 4, 50])
@pytest.mark.parametrize("interval", [0, 2, 40])
@pytest.mark.parametrize("streams", [1, 3])
def test_every_frame_comes_out_once_and_in_order(
    batch_size: int, interval: int, streams: int
) -> None:
    source, sink = FakeSource(37), FakeSink()
    model = FakeModel(batch_size, interval, streams=streams)
    report = run(source, model, sink)
    assert [m.frame for m in sink.got] == list(range(37))
    expected = [i for i in range(37) if i % (interval + 1) == 0]
    assert [m.frame for m in sink.got if m.inferred] == expected
    assert [m.objects[0].left for m in sink.got if m.inferred] == expected
    assert max(map(len, model.batches)) <= batch_size
    assert model.most_open <= streams + 1
    assert (report.frames, report.inferred) == (37, len(expected))
    assert report.objects == {"thing": len(expected)}
    assert source.closed
    assert sink.closed == 1
    assert model.ended == [0]


def test_a_file_fills_its_batches() -> None:
    model = FakeModel(batch_size=4)
    run(FakeSource(10), model)
    assert [[f for _, f in b] for b in model.batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_file_fills_its_batches_with_frames_that_are_inferred() -> None:
    model = FakeModel(batch_size=4, interval=2)
    run(FakeSource(30), model)
    assert [[f for _, f in b] for b in model.batches] == [[0, 3, 6, 9], [12, 15, 18, 21], [24, 27]]


@pytest.mark.parametrize(
    ("size", "stages", "joined"),
    [
        ((640, 480), [FakeModel()], 4),
        ((640, 480), [FakeModel(2), FakeTracker()], 4),
        ((640, 480), [FakeModel(3)], 3),
        ((640, 480), [FakeModel(8)], 0),
        ((1280, 720), [FakeModel()], 2),
        ((3840, 2160), [FakeModel()], 0),
        ((0, 0), [FakeModel()], 0),
        ((640, 480), [FakeModel(), print], 0),
        ((640, 480), [print, FakeModel()], 0),
        ((640, 480), [FakeModel(), FakeModel()], 0),
    ],
)
def test_frames_of_a_small_video_share_a_batch_where_nobody_sees_it(
    size: tuple[int, int], stages: list[Any], joined: int
) -> None:
    source: Any = FakeSource(1)
    source.width, source.height = size
    assert joined_frames([source], segments_of(stages)) == joined
    assert joined_frames([source, source], segments_of(stages)) == 0


def test_limit_stops_reading() -> None:
    source, sink = FakeSource(100), FakeSink()
    report = run(source, FakeModel(), sink, limit=5)
    assert (source.read, len(sink.got), report.frames) == (5, 5, 5)
    assert not report.interrupted
    assert report.sources[0].state == "stopped"


def test_a_slow_sink_holds_a_file_back() -> None:
    source, sink = FakeSource(60), FakeSink(delay_s=0.002)
    ahead = []
    run(source, FakeModel(), sink, on_result=lambda m: ahead.append(source.read - m.frame))
    assert len(sink.got) == 60
    assert max(ahead) <= 12


def test_a_slow_sink_makes_a_live_source_drop() -> None:
    sink = FakeSink(delay_s=0.005)
    report = run(FakeSource(200, live=True), FakeModel(), sink)
    assert report.dropped_frames > 0
    assert report.dropped_frames == report.sources[0].dropped
    assert len(sink.got) == 200 - report.dropped_frames
    numbers = [m.frame for m in sink.got]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 199, "the newest frames are kept"
    assert any("dropped" in n.sentence for n in report.notices)


def test_stop_finishes_what_was_read() -> None:
    source, sink = FakeSource(10_000), FakeSink()
    pipeline = Pipeline(source, FakeModel(), [sink])  # type: ignore[arg-type, list-item]
    pipeline.on_result = lambda m: pipeline.stop() if m.frame == 20 else None
    report = pipeline.run()
    assert report.interrupted
    assert [m.frame for m in sink.got] == list(range(source.read))
    assert 20 < source.read < 100


def test_a_source_that_breaks_keeps_what_came_before() -> None:
    source, sink = FakeSource(50, fail_at=30), FakeSink()
    with pytest.raises(MediaError, match="the stream broke"):
        run(source, FakeModel(batch_size=4), sink)
    assert [m.frame for m in sink.got] == list(range(30))
    assert sink.closed == 1
    assert source.closed


@pytest.mark.parametrize("how", [{"fail_at": 30}, {"begin_fails_at": 30}])
@pytest.mark.parametrize("streams", [1, 3])
def test_a_model_that_breaks_keeps_what_came_before(how: dict[str, int], streams: int) -> None:
    source, sink = FakeSource(500), FakeSink()
    with pytest.raises(RuntimeError, match=r"on fire|cannot begin"):
        run(source, FakeModel(**how, streams=streams), sink)
    assert [m.frame for m in sink.got] == list(range(30))
    assert sink.closed == 1
    assert source.closed


def test_a_later_model_that_breaks_keeps_what_came_before() -> None:
    source, sink = FakeSource(500), FakeSink()
    with pytest.raises(RuntimeError, match="on fire"):
        run(source, [FakeModel(), FakeModel(fail_at=30, component_id=2)], sink)
    assert [m.frame for m in sink.got] == list(range(30))
    assert all(len(m.objects) == 2 for m in sink.got)
    assert source.closed


def test_a_sink_that_breaks_stops_the_run_and_closes_the_others() -> None:
    good, bad = FakeSink(), FakeSink(fail_at=10)
    with pytest.raises(MediaError, match="disk is full"):
        run(FakeSource(5000), FakeModel(), good, bad)
    assert [m.frame for m in good.got] == list(range(11))
    assert (good.closed, bad.closed) == (1, 1)


def test_a_sink_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    bad, good = FakeSink(close_fails=True), FakeSink()
    with pytest.raises(MediaError, match="end could not be written"):
        run(FakeSource(5), FakeModel(), bad, good)
    assert (good.closed, bad.closed) == (1, 1)


def test_no_thread_is_left_behind() -> None:
    for _ in range(3):
        with pytest.raises(MediaError):
            run(sources(500, 500), [FakeModel(), FakeModel()], FakeSink(fail_at=3))
    assert not threads_left()


def test_models_trackers_and_probes_work_in_the_order_given() -> None:
    """Each sees what those before it did to the same frame, and nothing of those after it."""
    seen: dict[str, list[list[int]]] = {"start": [], "middle": [], "end": []}

    def note(place: str) -> Any:
        def probe(batch: Batch) -> None:
            for meta in batch.metas:
                seen[place].append(meta.objects.component_ids.tolist())

        return probe

    def rename(batch: Batch) -> None:
        for meta in batch.metas:
            for obj in meta.objects:
                obj.display_text = f"{obj.label} {obj.object_id}"

    first, second = FakeModel(batch_size=3, streams=2), FakeModel(2, component_id=2)
    tracker, sink = FakeTracker(), FakeSink()
    stages = [note("start"), first, tracker, rename, note("middle"), second, note("end")]
    report = run(sources(20), stages, sink)
    assert seen == {"start": [[]] * 20, "middle": [[1]] * 20, "end": [[1, 2]] * 20}
    assert tracker.seen == {10: list(range(20))}
    assert [m.objects[0].display_text for m in sink.got] == ["thing 1000"] * 20
    assert max(map(len, second.batches)) <= 2
    assert tracker.ended == first.ended == second.ended == [10]
    assert [(m.name, m.component_id, m.inferred) for m in report.models] == [
        ("model 1", 1, 20),
        ("model 2", 2, 20),
    ]
    assert {"track", "probe"} <= set(report.stages)


def test_a_pipeline_needs_no_model() -> None:
    numbers: list[int] = []
    sink = FakeSink()
    run(FakeSource(9), lambda batch: numbers.extend(m.frame for m in batch.metas), sink)
    assert numbers == list(range(9)) == [m.frame for m in sink.got]
    assert run(FakeSource(3), []).frames == 3


def failing_probe(batch: Batch) -> None:
    if batch.metas[0].frame >= 4:
        raise KeyError("plate")  # this line is named


def test_a_probe_that_fails_is_named_with_its_file_and_line() -> None:
    sink = FakeSink()
    with pytest.raises(HeadraceError) as caught:
        run(FakeSource(50), [FakeModel(), failing_probe], sink)
    line = failing_probe.__code__.co_firstlineno + 2
    assert str(caught.value).startswith(f"{__file__}:{line}: the probe failing_probe failed: Key")
    assert isinstance(caught.value.__cause__, KeyError)
    assert [m.frame for m in sink.got] == [0, 1, 2, 3]
    assert sink.closed == 1


def test_a_probe_that_fails_in_a_library_is_named_with_its_own_line() -> None:
    class Crop:
        def __call__(self, batch: Batch) -> None:
            np.zeros(3).reshape(2, 2)

    with pytest.raises(HeadraceError, match=r"the probe Crop failed: ValueError: cannot") as caught:
        run(FakeSource(5), [FakeModel(), Crop()])
    assert caught.value.where == f"{__file__}:{Crop.__call__.__code__.co_firstlineno + 1}"


def test_a_probe_that_leaves_frames_without_metadata_is_told() -> None:
    with pytest.raises(HeadraceError, match="left 1 frames, 0 metas and 1 buffer numbers"):
        run(FakeSource(5), lambda batch: batch.metas.clear())


async def later(_batch: Batch) -> None:
    pass


def bit_by_bit(_batch: Batch) -> Any:
    yield


class Later:
    async def __call__(self, _batch: Batch) -> None:
        pass


@pytest.mark.parametrize("probe", [later, bit_by_bit, Later()])
def test_a_probe_whose_body_would_never_run_is_refused(probe: Any) -> None:
    with pytest.raises(HeadraceError, match="function: calling it does nothing") as caught:
        Pipeline(FakeSource(1), [probe])  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{__file__}:")


@pytest.mark.parametrize("limit", [0, -1, 1.5, float("nan"), "5"])
def test_a_limit_that_is_no_number_of_frames_is_refused(limit: Any) -> None:
    with pytest.raises(HeadraceError, match="is no number of frames"):
        Pipeline(FakeSource(1), [], limit=limit)  # type: ignore[arg-type]


def test_what_is_no_stage_is_refused() -> None:
    with pytest.raises(HeadraceError, match=r"'model\.txt' cannot stand between sources and sinks"):
        Pipeline(FakeSource(1), ["model.txt"])  # type: ignore[arg-type]
    with pytest.raises(HeadraceError, match="there is no source"):
        Pipeline([], FakeModel())


def test_a_pipeline_runs_once() -> None:
    pipeline = Pipeline(FakeSource(1), FakeModel())  # type: ignore[arg-type]
    pipeline.run()
    with pytest.raises(HeadraceError, match="has run already"):
        pipeline.run()


def test_whole_frames_are_counted_by_what_they_were_classified_as() -> None:
    def classify(batch: Batch) -> None:
        for meta in batch.metas:
            whole = Detections([[0, 0, 6, 4]], [0.9], [-1], space=Space.FRAME)
            meta.objects.append(whole, 7, labels=[])
            if meta.frame:
                meta.objects[len(meta.objects) - 1].display_text = "sunflower "

    report = run(FakeSource(4), [FakeModel(), classify])
    assert report.objects == {"thing": 4, "sunflower": 3}


def test_the_report_counts_this_run_only() -> None:
    model = FakeModel()
    run(FakeSource(7), model)
    report = run(FakeSource(5), model)
    (entry,) = report.models
    assert (entry.inferred, entry.seconds["infer"]) == (5, 0.5 * 5)


def test_the_report_as_plain_data_keeps_its_keys() -> None:
    """docs/formats.md promises them."""
    report = run(FakeSource(2), FakeModel(), FakeSink()).to_dict()
    assert list(report) == [
        *("source", "profile", "frames", "inferred", "failed_frames", "dropped_frames", "objects"),
        *("seconds", "fps", "first_result_s", "stages_s", "crossed", "sources", "models"),
        *("outputs", "messages", "notices", "interrupted"),
    ]
    assert report["sources"] == [
        {
            "source_id": 0,
            "name": "fake",
            "frames": 2,
            "dropped": 0,
            "state": "ended",
            "error": None,
            "reconnects": 0,
            "decoder": "",
            "latency_s": None,
        }
    ]
    (model,) = report["models"]
    assert list(model) == [
        "name",
        "component_id",
        "profile",
        "device",
        "inferred",
        "failed",
        "results",
        "skipped",
        "dropped",
        "reasons",
        "seconds",
    ]
    work = ["select", "preprocess", "infer", "parse", "cluster", "attach"]
    stages = ["decode", *work, "draw", "write"]
    assert list(report["stages_s"]) == stages
    assert list(model["seconds"]) == work


def test_a_model_may_discard_frames() -> None:
    """All frames of a batch, too (`stabilize-buffer-count`)."""

    class Discarding(FakeModel):
        def begin(self, batch: Batch) -> Any:
            work = super().begin(batch)
            keep = [i for i, b in enumerate(batch.buffers) if b >= 3]
            for values in (batch.frames, batch.metas, batch.buffers):
                values[:] = [values[i] for i in keep]  # type: ignore[index]
            return batch, [] if len(batch) == 0 else work[1]

    model, sink = Discarding(), FakeSink()
    report = run(FakeSource(9), [model, FakeModel(component_id=2)], sink)
    assert [m.frame for m in sink.got] == list(range(3, 9))
    assert model.open == 0, "each batch is completed"
    assert report.frames == 9


def test_work_that_nobody_wants_is_cancelled() -> None:
    cancelled: list[int] = []

    class Work(tuple):  # type: ignore[type-arg]
        def cancel(self) -> None:
            cancelled.append(self[0].metas[0].frame)

    class Cancelling(FakeModel):
        def begin(self, batch: Batch) -> Any:
            return Work(super().begin(batch))

    with pytest.raises(RuntimeError, match="on fire"):
        run(FakeSource(500), Cancelling(fail_at=30, streams=3))
    assert cancelled == [31, 32, 33]


def test_results_are_told_in_order() -> None:
    told: list[FrameMeta] = []
    run(FakeSource(9), FakeModel(2, streams=2), on_result=told.append)
    assert [m.frame for m in told] == list(range(9))

"""Sources that come and go while a pipeline runs, and the events of a run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import Pipeline
from headrace._core.findings import Finding
from headrace.errors import HeadraceError, MediaError
from headrace.infer.batch import Batch
from headrace.media.draw import Tiler
from headrace.pipeline.analytics import Analytics, AnalyticsRules, Crowd, Line, SourceRules
from headrace.pipeline.analytics.rules import ALL_SOURCES
from headrace.pipeline.events import PipelineEvent
from tests.pipeline.fakes import FakeModel, FakeSink, FakeSource
from tests.profiles import slow


def wait_until(condition: Callable[[], Any], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class Running:
    """A pipeline without sources at first, run by a thread of its own."""

    def __init__(self, *stages: Any, pixels: bool = False, **options: Any) -> None:
        self.sink = FakeSink(pixels=pixels)
        self.pipeline = Pipeline([], stages, [self.sink], keep_open=True, **options)
        self.events: list[PipelineEvent] = []
        self.pipeline.on_event("source", self.events.append)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.pipeline.run()
        except HeadraceError as error:
            self.error = error

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pipeline.stop()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def states(self, source_id: int) -> list[str]:
        return [e.name.partition(":")[0] for e in self.events if e.source_id == source_id]

    def frames(self) -> Counter[int]:
        return Counter(meta.source_id for meta in list(self.sink.got))


def test_a_snapshot_can_be_taken_while_a_model_gets_ready() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(FakeModel):
        def restart(self, frames: int = 0, *, live: bool = False) -> None:
            begun.set()
            assert go_on.wait(10)

    with Running(Slow()) as run:
        assert begun.wait(10)
        report = run.pipeline.snapshot()
        assert (run.pipeline.state, report.frames, report.models) == ("running", 0, [])
        assert report.seconds < 10
        go_on.set()
        wait_until(lambda: run.pipeline.snapshot().models)


def test_sources_come_end_and_are_removed() -> None:
    with Running(FakeModel(), batch_timeout_s=0.01) as run:
        video = FakeSource(30, name="a")
        video.decoder = "cuda"
        video.notices = [Finding("guard", "warning", "ended early", "a")]
        first = run.pipeline.add_source(video)
        wait_until(lambda: run.states(first) == ["added", "ended"])
        second = run.pipeline.add_source(FakeSource(10_000_000, delay_s=0.001, name="b"))
        wait_until(lambda: run.frames()[second] > 10)
        assert run.pipeline.remove_source(second)
        wait_until(lambda: run.states(second) == ["added", "removed"])
        assert not run.pipeline.remove_source(second)
        assert not run.pipeline.remove_source(99)
        third = run.pipeline.add_source(FakeSource(5, fail_at=2, name="c"))
        wait_until(lambda: run.states(third) == ["added", "failed"])
        assert run.pipeline.sources == []
    assert (first, second, third) == (0, 1, 2)
    assert run.frames()[first] == 30
    report = run.pipeline.report
    assert run.error is None
    assert [s.state for s in report.sources] == ["ended", "removed", "failed"]
    assert [s.decoder for s in report.sources] == ["cuda", "", ""]
    assert report.frames == sum(s.frames for s in report.sources)
    assert [s.frames for s in report.sources] == [run.frames()[n] for n in (first, second, third)]
    assert "ended early" in [n.sentence for n in report.notices]
    model: Any = run.pipeline.models[0]
    assert model.ended == [0, 1, 2]


def test_a_source_that_hangs_holds_nobody_up() -> None:
    with Running(batch_timeout_s=0.01) as run:
        hangs = run.pipeline.add_source(FakeSource(9, live=True, hang_at=3, name="hangs"))
        goes = run.pipeline.add_source(FakeSource(50, live=True, delay_s=0.001, name="goes"))
        wait_until(lambda: run.states(goes)[-1] == "ended")
        assert run.pipeline.remove_source(hangs)
        wait_until(lambda: run.states(hangs)[-1] == "removed")
    for source in run.pipeline.report.sources:
        assert source.frames == {hangs: 3, goes: 50}[source.source_id]
        assert run.frames()[source.source_id] == source.frames - source.dropped > 0


@pytest.mark.slow
@pytest.mark.parametrize("live", [False, slow(True)])
@pytest.mark.sampled
def test_the_others_lose_no_frame(live: bool) -> None:
    """200 sources are added and removed beside two that go on."""
    with Running(FakeModel(batch_size=4, delay_s=0), batch_timeout_s=0.005) as run:
        stay = [
            run.pipeline.add_source(FakeSource(1500, live=live, delay_s=0.0005, name=f"stays {i}"))
            for i in range(2)
        ]
        before = threading.active_count()
        for i in range(200):
            number = run.pipeline.add_source(FakeSource(1_000_000, delay_s=0.001, live=i % 2 == 0))
            if i % 3 == 0:
                wait_until(lambda n=number: run.frames()[n])
            assert run.pipeline.remove_source(number)
        assert len(run.pipeline.sources) == 2
        wait_until(lambda: threading.active_count() <= before + 4)  # theirs, and the model's
        wait_until(lambda: all(run.states(i)[-1] == "ended" for i in stay), 30)
    by_source: dict[int, list[int]] = {i: [] for i in stay}
    for meta in run.sink.got:
        if meta.source_id in by_source:
            by_source[meta.source_id].append(meta.frame)
    reports = {s.source_id: s for s in run.pipeline.report.sources}
    for i, source in ((i, reports[i]) for i in stay):
        assert by_source[i] == sorted(by_source[i])
        assert len(by_source[i]) == 1500 - source.dropped
        assert live or source.dropped == 0


def test_a_source_that_comes_while_another_goes() -> None:
    """Both changes of the list count, though one begins amid the other."""
    reading, go_on = threading.Event(), threading.Event()

    class Held(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            if not reading.is_set():
                reading.set()
                go_on.wait(10)
            return super().__iter__()

    with Running(batch_timeout_s=0.01) as run:
        stays, goes = (run.pipeline.add_source(FakeSource(1_000_000, delay_s=0.01)) for _ in "ab")
        run.pipeline.sources = Held(run.pipeline.sources)
        removal = threading.Thread(target=run.pipeline.remove_source, args=(goes,))
        removal.start()
        assert reading.wait(10)
        comes = FakeSource(1_000_000, delay_s=0.01)
        addition = threading.Thread(target=run.pipeline.add_source, args=(comes,))
        addition.start()
        addition.join(0.2)
        go_on.set()
        removal.join()
        addition.join()
        assert [s.source_id for s in run.pipeline.sources] == [stays, comes.source_id]


def test_tiles_come_and_go() -> None:
    tiler = Tiler(width=96, height=64, captions=False)
    with Running(batch_timeout_s=0.01, tiler=tiler, pixels=True) as run:
        for name in "ab":
            run.pipeline.add_source(FakeSource(10_000_000, delay_s=0.001, name=name))
        wait_until(lambda: tiler._sources == [0, 1])
        run.pipeline.remove_source(1)
        wait_until(lambda: tiler._sources == [0])
        run.pipeline.add_source(FakeSource(3, name="c"))
        wait_until(lambda: run.states(2) == ["added", "ended"])
        wait_until(lambda: tiler._over == {2: "ended"})  # one that ended by itself keeps its cell
        assert tiler._sources == [0, 2]


def test_who_may_add_sources(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="keep_open=True"):
        Pipeline(FakeSource(1)).add_source(FakeSource(1))
    with Running() as run:
        with pytest.raises(MediaError, match=r"nowhere\.mp4"):
            run.pipeline.add_source(tmp_path / "nowhere.mp4")
        assert run.pipeline.sources == []
    with pytest.raises(HeadraceError, match="its run is over"):
        run.pipeline.add_source(FakeSource(1))


def boxes_at(way: list[tuple[float, float]]) -> Callable[[Batch], None]:
    """A probe that puts one tracked object at a place in each frame."""

    def probe(batch: Batch) -> None:
        for meta in batch.metas:
            x, y = way[meta.frame]
            meta.objects.add(x - 1, y - 2, 2, 2, label="thing")
            meta.objects.object_ids[:] = 7

    return probe


def test_events_of_rules() -> None:
    rules = SourceRules(
        lines=(Line(name="door", start=(0, 2), end=(6, 2)),),
        crowds=(Crowd(name="hall", points=((0, 3), (6, 3), (6, 9), (0, 9))),),
    )
    way = [(3.0, 1.0), (3.0, 2.5), (3.0, 3.5), (3.0, 3.6), (3.0, 1.0)]
    analytics = Analytics(AnalyticsRules(sources={ALL_SOURCES: rules}))
    pipeline = Pipeline(FakeSource(5, name="cam"), [boxes_at(way), analytics])
    events: list[PipelineEvent] = []
    for kind in ("source", "crossing", "crowd"):
        pipeline.on_event(kind, events.append)
    pipeline.run()
    assert [(e.kind, e.name, e.meta and e.meta.frame, e.crowded) for e in events] == [
        ("crossing", "door", 1, False),
        ("crowd", "hall", 2, True),
        ("crossing", "door", 4, False),
        ("crowd", "hall", 4, False),
        ("source", "ended", None, False),
    ]
    assert events[0].object is not None
    assert events[0].object.object_id == 7
    assert pipeline.report.crossed == {0: {"door": 2}}


def test_handlers_are_checked() -> None:
    pipeline = Pipeline(FakeSource(3, name="cam"))

    async def later(event: PipelineEvent) -> None: ...

    with pytest.raises(HeadraceError, match="coroutine"):
        pipeline.on_event("source", later)  # type: ignore[arg-type]
    with pytest.raises(HeadraceError, match="one of source, crossing, crowd"):
        pipeline.on_event("sauce", print)  # type: ignore[arg-type]
    pipeline.on_event("source", lambda event: event.nothing)  # type: ignore[attr-defined]
    with pytest.raises(HeadraceError, match=r"the handler .* failed") as caught:
        pipeline.run()
    assert "test_pipeline_dynamic.py" in str(caught.value)

"""The pipeline's promises: order, back-pressure, limits, and what is kept when a stage fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from noria.errors import MediaError
from noria.infer.inferencer import Prepared, StageTimes
from noria.media import Frame, PixelFormat
from noria.meta import Detections, FrameMeta, Space
from noria.pipeline import Pipeline, RunReport

PICTURE = np.zeros((4, 6, 3), np.uint8)


class FakeSource:
    name = "fake"
    notices: Sequence[Any] = ()
    fps = 25.0

    def __init__(self, count: int, *, live: bool = False, fail_at: int | None = None) -> None:
        self.frames, self.live, self.fail_at = count, live, fail_at
        self.read = 0
        self.closed = False

    def __iter__(self) -> Iterator[Frame]:
        for i in range(self.frames):
            if i == self.fail_at:
                raise MediaError("the stream broke", where="fake")
            self.read += 1
            yield Frame.from_array(PICTURE, PixelFormat.RGB, frame=i, source="fake")

    def close(self) -> None:
        self.closed = True


class FakeInferencer:
    """One object per frame, whose left edge is the frame number."""

    def __init__(
        self,
        batch_size: int = 1,
        interval: int = 0,
        fail_at: int | None = None,
        streams: int = 1,
    ) -> None:
        self.streams = streams
        self._workers = ThreadPoolExecutor(streams)
        self.config = SimpleNamespace(batch_size=batch_size, interval=interval, component_id=1)
        self.times, self.failed_frames, self.notices = StageTimes(), 0, []
        self.batches: list[list[int]] = []
        self.fail_at = fail_at
        self._count = 0

    def next_buffer_is_inferred(self) -> bool:
        self._count += 1
        return (self._count - 1) % (self.config.interval + 1) == 0

    def skip(self, frame: Frame) -> FrameMeta:
        return FrameMeta(frame.source, 0, frame.frame, frame.pts_ns, frame.width, frame.height)

    def prepare(self, frames: Sequence[Frame]) -> Prepared:
        self.batches.append([f.frame for f in frames])
        return Prepared(frames, np.empty(0, np.float32))

    def submit(self, prepared: Prepared) -> Future[Any]:
        return self._workers.submit(self._run, prepared)

    def _run(self, prepared: Prepared) -> dict[str, Any]:
        # later batches are done first: the order must not depend on it
        time.sleep(0.004 / (1 + prepared.frames[0].frame % 4))
        if any(f.frame == self.fail_at for f in prepared.frames):
            raise RuntimeError("engine on fire")
        return {}

    def finish(self, prepared: Prepared, outputs: dict[str, Any]) -> list[FrameMeta]:
        metas = []
        for frame in prepared.frames:
            meta = self.skip(frame)
            meta.inferred = True
            box = np.array([[frame.frame, 0, 1, 1]], np.float32)
            found = Detections(box, np.ones(1), np.zeros(1), space=Space.FRAME)
            meta.objects.append(found, 1, labels=["thing"])
            metas.append(meta)
        return metas


class FakeSink:
    needs_pixels = False
    notices: Sequence[Any] = ()
    path = Path("fake.out")

    def __init__(self, *, fail_at: int | None = None, delay_s: float = 0.0) -> None:
        self.got: list[FrameMeta] = []
        self.fail_at, self.delay_s = fail_at, delay_s
        self.closed = 0

    def write(self, frame: Frame, meta: FrameMeta) -> None:
        if frame.frame == self.fail_at:
            raise MediaError("the disk is full", where="fake.out")
        time.sleep(self.delay_s)
        self.got.append(meta)

    def close(self) -> None:
        self.closed += 1


def run(source: Any, inferencer: Any, *sinks: Any, **options: Any) -> RunReport:
    return Pipeline(source, inferencer, sinks, **options).run()


@pytest.mark.parametrize("batch_size", [1, 3, 4, 50])
@pytest.mark.parametrize("interval", [0, 2, 40])
@pytest.mark.parametrize("streams", [1, 3])
def test_every_frame_comes_out_once_and_in_order(
    batch_size: int, interval: int, streams: int
) -> None:
    source, sink = FakeSource(37), FakeSink()
    model = FakeInferencer(batch_size, interval, streams=streams)
    report = run(source, model, sink)
    assert [m.frame for m in sink.got] == list(range(37))
    expected = [i for i in range(37) if i % (interval + 1) == 0]
    assert [m.frame for m in sink.got if m.inferred] == expected
    assert [m.objects[0].left for m in sink.got if m.inferred] == expected
    assert max(map(len, model.batches)) <= batch_size
    assert (report.frames, report.inferred) == (37, len(expected))
    assert report.objects == {"thing": len(expected)}
    assert source.closed
    assert sink.closed == 1


def test_sinks_that_show_pixels_get_drawn_frames() -> None:
    class Pictures(FakeSink):
        needs_pixels = True

        def write(self, frame: Frame, meta: FrameMeta) -> None:
            super().write(frame, meta)
            assert frame.planes[0].any(), "the box of each frame is drawn on black"

    pictures, plain = Pictures(), FakeSink()
    run(FakeSource(3), FakeInferencer(), pictures, plain)
    assert len(pictures.got) == len(plain.got) == 3


def test_a_file_fills_its_batches() -> None:
    model = FakeInferencer(batch_size=4)
    run(FakeSource(10), model)
    assert model.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_limit_stops_reading() -> None:
    source, sink = FakeSource(100), FakeSink()
    report = run(source, FakeInferencer(), sink, limit=5)
    assert (source.read, len(sink.got), report.frames) == (5, 5, 5)
    assert not report.interrupted


def test_a_slow_sink_holds_a_file_back() -> None:
    source, sink = FakeSource(60), FakeSink(delay_s=0.002)
    ahead = []
    run(source, FakeInferencer(), sink, on_result=lambda m: ahead.append(source.read - m.frame))
    assert len(sink.got) == 60
    assert max(ahead) <= 12


def test_a_slow_sink_makes_a_live_source_drop() -> None:
    sink = FakeSink(delay_s=0.005)
    report = run(FakeSource(200, live=True), FakeInferencer(), sink)
    assert report.dropped_frames > 0
    assert len(sink.got) == 200 - report.dropped_frames
    assert any("dropped" in n.message for n in report.notices)


def test_stop_finishes_what_was_read() -> None:
    source, sink = FakeSource(10_000), FakeSink()
    pipeline = Pipeline(source, FakeInferencer(), [sink])  # type: ignore[arg-type]
    pipeline.on_result = lambda m: pipeline.stop() if m.frame == 20 else None
    report = pipeline.run()
    assert report.interrupted
    assert [m.frame for m in sink.got] == list(range(source.read))
    assert 20 < source.read < 100


def test_a_source_that_breaks_keeps_what_came_before() -> None:
    source, sink = FakeSource(50, fail_at=30), FakeSink()
    with pytest.raises(MediaError, match="the stream broke"):
        run(source, FakeInferencer(batch_size=4), sink)
    assert [m.frame for m in sink.got] == list(range(30))
    assert sink.closed == 1
    assert source.closed


def test_a_model_that_breaks_keeps_what_came_before() -> None:
    source, sink = FakeSource(500), FakeSink()
    with pytest.raises(RuntimeError, match="on fire"):
        run(source, FakeInferencer(fail_at=30), sink)
    assert [m.frame for m in sink.got] == list(range(30))
    assert sink.closed == 1


def test_a_sink_that_breaks_stops_the_run_and_closes_the_others() -> None:
    good, bad = FakeSink(), FakeSink(fail_at=10)
    with pytest.raises(MediaError, match="disk is full"):
        run(FakeSource(5000), FakeInferencer(), good, bad)
    assert [m.frame for m in good.got] == list(range(11))
    assert (good.closed, bad.closed) == (1, 1)


def test_no_thread_is_left_behind() -> None:
    model = FakeInferencer()
    with pytest.raises(MediaError):
        run(FakeSource(500), model, FakeSink(fail_at=3))
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(MediaError):
            run(FakeSource(500), model, FakeSink(fail_at=3))
    assert threading.active_count() == before

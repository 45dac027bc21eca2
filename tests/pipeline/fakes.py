"""Sources, models, trackers and sinks that do as they are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.errors import MediaError
from headrace.infer.batch import Batch
from headrace.infer.losses import InferenceLosses
from headrace.infer.record import StageTimes
from headrace.media import Frame, PixelFormat
from headrace.meta import Detections, FrameMeta, Space

IMAGE = np.zeros((4, 6, 3), np.uint8)


def threads_left() -> list[threading.Thread]:
    """Threads of a run; one that copies what a worker prints lives as long as that worker."""
    ours = [t for t in threading.enumerate() if t.name.startswith("headrace-")]
    return [t for t in ours if t.name != "headrace-prints"]


class FakeSource:
    """`count` frames, each after `delay_s`; fails at frame `fail_at`; hangs at `hang_at`,
    also when it is closed if it is `stubborn`."""

    notices: Sequence[Any] = ()
    fps = 25.0
    reconnects = 0
    decoder = ""
    begins_late = False
    files: Sequence[Any] = ()
    step_ns = 0  # from one frame to the next

    def __init__(
        self,
        count: int,
        *,
        live: bool = False,
        fail_at: int | None = None,
        delay_s: float = 0.0,
        hang_at: int | None = None,
        stubborn: bool = False,
        source_id: int = 0,
        name: str = "fake",
    ) -> None:
        self.frames, self.live, self.fail_at, self.delay_s = count, live, fail_at, delay_s
        self.hang_at, self.source_id, self.name = hang_at, source_id, name
        self.stubborn = stubborn
        self.read = 0
        self.closed = False
        self.freed = threading.Event()

    def __iter__(self) -> Iterator[Frame]:
        for i in range(self.frames):
            if i == self.fail_at:
                raise MediaError("the stream broke", where=self.name)
            if i == self.hang_at:
                self.freed.wait(20)
                if self.closed:
                    return
            if self.delay_s:
                time.sleep(self.delay_s)
            self.read += 1
            yield Frame.from_array(
                IMAGE, PixelFormat.RGB, frame=i, source=self.name, source_id=self.source_id,
                pts_ns=i * self.step_ns,
            )  # fmt: skip
        if self.fail_at == self.frames:
            raise MediaError("the stream broke", where=self.name)

    def rename(self, name: str) -> None:
        self.name = name

    def close(self) -> None:
        self.closed = True
        if not self.stubborn:
            self.freed.set()


def sources(*counts: int, **options: Any) -> list[FakeSource]:
    return [
        FakeSource(n, source_id=10 + i, name=f"s{10 + i}", **options) for i, n in enumerate(counts)
    ]


class FakeModel:
    """Adds one object to every frame it infers, whose left edge is the frame number."""

    def __init__(
        self,
        batch_size: int = 1,
        interval: int = 0,
        *,
        fail_at: int | None = None,
        begin_fails_at: int | None = None,
        streams: int = 1,
        component_id: int = 1,
        delay_s: float = 0.004,
    ) -> None:
        self.name = f"model {component_id}"
        self.streams = streams
        self.config = SimpleNamespace(
            batch_size=batch_size, interval=interval, component_id=component_id, profile=None
        )
        self.interval, self.run_rows, self.secondary = interval, 0, False
        self.engine_path, self.session = None, SimpleNamespace(device="")
        self.results: dict[str, int] = {}
        self.losses = InferenceLosses()
        self.times, self.failed_items = StageTimes(), 0
        self.inferred_items = self.completed_items = 0
        self.notices: list[Any] = []
        self.fail_at, self.begin_fails_at, self.delay_s = fail_at, begin_fails_at, delay_s
        self.batches: list[list[tuple[int, int]]] = []  # (source, frame) of each engine batch
        self.ended: list[int] = []
        self.open = self.most_open = 0
        self._workers = ThreadPoolExecutor(streams)

    def begin(self, batch: Batch) -> Any:
        assert batch.frames
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        period, size = self.config.interval + 1, self.config.batch_size
        chosen = [i for i, b in enumerate(batch.buffers) if b % period == 0]
        if any(batch.frames[i].frame == self.begin_fails_at for i in chosen):
            raise RuntimeError("cannot begin")
        running: list[tuple[list[int], Future[None]]] = []
        for start in range(0, len(chosen), size):
            places = chosen[start : start + size]
            frames = [batch.frames[i] for i in places]
            self.batches.append([(f.source_id, f.frame) for f in frames])
            running.append((places, self._workers.submit(self._run, frames)))
        return batch, running

    def _run(self, frames: list[Frame]) -> None:
        # later batches are done first: the order must not depend on it
        time.sleep(self.delay_s / (1 + frames[0].frame % 4))
        if any(f.frame == self.fail_at for f in frames):
            raise RuntimeError("engine on fire")

    def complete(self, pending: Any) -> None:
        batch, running = pending
        self.open -= 1
        for places, outcome in running:
            outcome.result()
            for i in places:
                meta = batch.metas[i]
                meta.inferred = True
                box = np.array([[meta.frame, 0, 1, 1]], np.float32)
                found = Detections(box, np.ones(1), np.zeros(1), space=Space.FRAME)
                meta.objects.append(found, self.config.component_id, labels=["thing"])
            self.inferred_items += len(places)
            self.completed_items += len(places)
        self.times.infer_s += 0.5

    def end_of_stream(self, source_id: int) -> None:
        self.ended.append(source_id)

    def restart(self, frames: int = 0, *, live: bool = False) -> None: ...

    def hurry(self) -> None: ...

    def conclude(self) -> None: ...


class FakeTracker:
    """Numbers the objects of each source."""

    notices: Sequence[Any] = ()

    def __init__(self) -> None:
        self.seen: dict[int, list[int]] = {}
        self.ended: list[int] = []

    def update(self, frame: Frame, meta: FrameMeta) -> None:
        assert meta.source_id not in self.ended
        self.seen.setdefault(meta.source_id, []).append(frame.frame)
        for i in range(len(meta.objects)):
            meta.objects.object_ids[i] = 100 * meta.source_id + i

    def end_of_stream(self, source_id: int) -> None:
        self.ended.append(source_id)


class FakeSink:
    """Remembers metadata; fails at frame `fail_at`, or when closed."""

    needs_pixels = False
    kind = ""
    notices: Sequence[Any] = ()

    def __init__(
        self,
        *,
        fail_at: int | None = None,
        delay_s: float = 0.0,
        pixels: bool = False,
        close_fails: bool = False,
        name: str = "fake.out",
    ) -> None:
        self.got: list[FrameMeta] = []
        self.frames: list[Frame] = []
        self.fail_at, self.delay_s, self.close_fails = fail_at, delay_s, close_fails
        self.needs_pixels = pixels
        self.path = Path(name)
        self.closed = 0

    def begin(self, source: Any) -> None:
        pass

    def end(self, source_id: int) -> None:
        pass

    def write(self, frame: Frame, meta: FrameMeta) -> None:
        assert not self.closed
        if frame.frame == self.fail_at:
            raise MediaError("the disk is full", where="fake.out")
        time.sleep(self.delay_s)
        self.got.append(meta)
        self.frames.append(frame)

    def of(self, source_id: int) -> list[int]:
        """Numbers of the frames of one source, in the order they came."""
        return [m.frame for m in self.got if m.source_id == source_id]

    def close(self) -> None:
        self.closed += 1
        if self.close_fails:
            raise MediaError("the end could not be written", where="fake.out")

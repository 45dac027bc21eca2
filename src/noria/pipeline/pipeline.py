"""From a source through an inferencer into sinks, each stage in its own thread.

    decode ──queue──► infer ──queue──► draw + write

Queues are bounded, so a slow stage holds the earlier ones back (back-pressure) and memory stays
flat. A live source cannot be held back: its frames are dropped, and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from noria.draw import Painter
from noria.infer.inferencer import Inferencer, Prepared
from noria.media import Frame, Sink, Source
from noria.meta import FrameMeta
from noria.notices import Notice
from noria.pipeline.channel import Channel, Closed
from noria.pipeline.report import RunReport

__all__ = ["Pipeline"]

_MAX_GROUP = 16  # frames handed on together when most of them are skipped by `interval`


@dataclass(slots=True)
class _Running:
    """Frames in order, each with whether it is inferred, and those frames' batch in the engine."""

    group: list[tuple[Frame, bool]]
    prepared: Prepared | None = None
    outputs: Future[dict[str, Any]] | None = None


class Pipeline:
    """Runs one source through one inferencer into any number of sinks.

    Args:
        source: where frames come from; closed at the end.
        inferencer: the model; not closed.
        sinks: where results go; closed at the end, whatever happens.
        painter: draws for the sinks that show pixels; None draws with the defaults.
        limit: stop after this many frames.
        on_result: called with each frame's metadata, in order, in the inference thread.
        queue_size: frames waiting between two stages.
    """

    def __init__(
        self,
        source: Source,
        inferencer: Inferencer,
        sinks: Sequence[Sink] = (),
        *,
        painter: Painter | None = None,
        limit: int | None = None,
        on_result: Callable[[FrameMeta], None] | None = None,
        queue_size: int = 4,
    ) -> None:
        self.source = source
        self.inferencer = inferencer
        self.sinks = list(sinks)
        self.painter = painter or Painter()
        self.limit = limit
        self.on_result = on_result
        size = max(queue_size, 2 * inferencer.config.batch_size * inferencer.streams)
        self._frames: Channel[Frame] = Channel(size)
        self._results: Channel[tuple[Frame, FrameMeta]] = Channel(size)
        self._stop = False  # a plain flag: signal handlers set it
        self._error: BaseException | None = None
        self._stage_s = {"decode": 0.0, "draw": 0.0, "write": 0.0}
        self.report = RunReport(source.name)

    def stop(self) -> None:
        """Read no further frame; what was read is finished and written. Safe in signal handlers."""
        self.report.interrupted = True
        self._stop = True

    def run(self) -> RunReport:
        """Run to the end of the source, the limit, or `stop`.

        Returns:
            What was done.

        Raises:
            NoriaError: the first error of any stage, after every sink has kept what it could.
        """
        start = perf_counter()
        self._started = start
        threads = [
            threading.Thread(target=self._guard, args=(stage,), name=name, daemon=True)
            for name, stage in (("noria-decode", self._decode), ("noria-write", self._write))
        ]
        for thread in threads:
            thread.start()
        self._guard(self._infer)
        for thread in threads:
            thread.join()
        self._close_sinks()
        self.source.close()
        self._finish_report(perf_counter() - start)
        if self._error is not None:
            raise self._error
        return self.report

    # Stages. Each tells its neighbours when it leaves: what is already on its way downstream is
    # still finished, and nothing upstream waits for a stage that is gone.

    def _decode(self) -> None:
        try:
            frames = iter(self.source)
            while not self._stop:
                start = perf_counter()
                frame = next(frames, None)
                self._stage_s["decode"] += perf_counter() - start
                if frame is None:
                    break
                if not self.source.live:
                    self._frames.put(frame)
                elif not self._frames.offer(frame):
                    self.report.dropped_frames += 1
                self.report.frames += 1
                if self.limit is not None and self.report.frames >= self.limit:
                    break
        finally:
            self._frames.end()

    def _infer(self) -> None:
        """Keep the engine's streams busy: one more batch than streams is always on its way."""
        ahead = 0 if self.source.live else self.inferencer.streams
        pending: deque[_Running] = deque()
        try:
            for group in self._groups():
                pending.append(self._start(group))
                while len(pending) > ahead:
                    self._finish_group(pending.popleft())
            while pending:
                self._finish_group(pending.popleft())
        finally:
            for running in pending:
                if running.outputs is not None:
                    running.outputs.cancel()
            self._frames.abandon()
            self._results.end()

    def _groups(self) -> Iterator[list[tuple[Frame, bool]]]:
        """Frames with whether their turn to be inferred has come, up to `batch-size` such frames.

        A file is read ahead to fill the batch; a live source never waits for more frames.
        """
        size = self.inferencer.config.batch_size
        group: list[tuple[Frame, bool]] = []
        inferred = 0
        while True:
            try:
                frame = self._frames.get()
            except Closed:
                break
            turn = self.inferencer.next_buffer_is_inferred()
            group.append((frame, turn))
            inferred += turn
            waits = self.source.live and self._frames.empty
            if inferred == size or len(group) >= max(size, _MAX_GROUP) or waits:
                yield group
                group, inferred = [], 0
        if group:
            yield group

    def _start(self, group: list[tuple[Frame, bool]]) -> _Running:
        chosen = [frame for frame, turn in group if turn]
        if not chosen:
            return _Running(group)
        prepared = self.inferencer.prepare(chosen)
        return _Running(group, prepared, self.inferencer.submit(prepared))

    def _finish_group(self, running: _Running) -> None:
        metas: Iterator[FrameMeta] = iter(())
        if running.prepared is not None and running.outputs is not None:
            metas = iter(self.inferencer.finish(running.prepared, running.outputs.result()))
            self.report.inferred += len(running.prepared.frames)
        for frame, turn in running.group:
            meta = next(metas) if turn else self.inferencer.skip(frame)
            if self.report.first_result_s is None:
                self.report.first_result_s = perf_counter() - self._started
            self._count(meta)
            if self.on_result is not None:
                self.on_result(meta)
            self._results.put((frame, meta))

    def _write(self) -> None:
        drawn_for = [s for s in self.sinks if s.needs_pixels]
        plain = [s for s in self.sinks if not s.needs_pixels]
        try:
            while True:
                try:
                    frame, meta = self._results.get()
                except Closed:
                    return
                start = perf_counter()
                for sink in plain:
                    sink.write(frame, meta)
                if drawn_for:
                    before = perf_counter()
                    drawn = self.painter.draw(frame, meta)
                    self._stage_s["draw"] += (spent := perf_counter() - before)
                    start += spent
                    for sink in drawn_for:
                        sink.write(drawn, meta)
                self._stage_s["write"] += perf_counter() - start
        finally:
            self._results.abandon()

    def _guard(self, stage: Callable[[], None]) -> None:
        try:
            stage()
        except Closed:
            pass
        except BaseException as error:
            self._error = self._error or error
            self._stop = True

    def _count(self, meta: FrameMeta) -> None:
        objects = meta.objects
        if not len(objects):
            return
        ids, counts = np.unique(objects.class_ids, return_counts=True)
        names = objects.labels.get(self.inferencer.config.component_id, ())
        for class_id, count in zip(ids.tolist(), counts.tolist(), strict=True):
            name = names[class_id] if 0 <= class_id < len(names) else f"class {class_id}"
            self.report.objects[name] += count

    def _close_sinks(self) -> None:
        for sink in self.sinks:
            try:
                sink.close()
                self.report.outputs.append(str(sink.path))
            except BaseException as error:
                self._error = self._error or error

    def _finish_report(self, seconds: float) -> None:
        report, times = self.report, self.inferencer.times
        report.seconds = seconds
        report.failed_frames = self.inferencer.failed_frames
        report.stages = {
            "decode": self._stage_s["decode"],
            "preprocess": times.preprocess_s,
            "infer": times.infer_s,
            "parse": times.parse_s,
            "cluster": times.cluster_s,
            "attach": times.attach_s,
            "draw": self._stage_s["draw"],
            "write": self._stage_s["write"],
        }
        report.notices = [*self.inferencer.notices, *self.source.notices]
        for sink in self.sinks:
            report.notices += sink.notices
        if report.dropped_frames:
            report.notices.append(
                Notice(
                    "warning",
                    f"{report.dropped_frames} frames of the live source were dropped: "
                    "they came faster than they could be processed",
                    where=report.source,
                )
            )

"""From sources through models, trackers and probes into sinks.

    decode, one thread per source ──► model + trackers + probes ──► next model + … ──► draw + write

Each model has a thread, so has writing, unless it takes microseconds: the last stage does that.
Queues are bounded, so a slow stage holds the earlier ones back (back-pressure) and memory stays
flat. A live source cannot be held back: its frames are dropped, and counted.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike, fspath
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, Self
from weakref import ref

from headrace._core.errors import HeadraceError
from headrace._core.heap import trim_heap
from headrace._core.retry import CLOSE_S
from headrace.infer.batch import Batch
from headrace.media import ReconnectPolicy, open_source
from headrace.media.sources.retried import RetriedSource
from headrace.pipeline.care import Care
from headrace.pipeline.changes import RunningChanges
from headrace.pipeline.channel import Channel, ChannelClosedError
from headrace.pipeline.events import EventKind, Events, PipelineEvent
from headrace.pipeline.mux import Muxer, check_limit
from headrace.pipeline.outlet import Composes, Outlet, Route, routes_of
from headrace.pipeline.report import Meter, RunReport, count_objects, fill_report
from headrace.pipeline.run_threads import RunThreads
from headrace.pipeline.segment import Segment, joined_frames, received, segments_of
from headrace.pipeline.source_opening import gpu_of
from headrace.pipeline.stage import stage_name

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.media import Frame, Sink, Source
    from headrace.media.draw import Painter
    from headrace.media.resizing import FrameSize
    from headrace.meta import FrameMeta
    from headrace.pipeline.async_loop import AsyncLoop
    from headrace.pipeline.stage import Probe, Stage
    from headrace.pipeline.track import Tracker

_TIMEOUT_S, _GPU_TIMEOUT_S = 0.04, 0.02
_LEFT = 200  # notices of sources that come and go, at most
_WRITES = "writing"  # what the thread of the outputs does
_BRIEF_S = 1.0  # for brokers and servers after a stop with a limit


class SupportsClose(Protocol):
    """Something to be closed."""

    def close(self) -> None:
        """Release its resources."""


class Pipeline(RunningChanges):
    """Runs sources through stages into sinks.

    Args:
        sources: one or several, each closed at its end. Sources whose `source_id`s are not
            distinct are numbered in the given order.
        stages: models, trackers, and probes: plain functions called with each `Batch` at their
            place, which may change it. None of them is closed.
        sinks: where results go; closed at the end, whatever happens. A sink gets the frames of all
            sources, `(sink, source_id)` only those of one; `Route` says more.
        painter: draws for the sinks that show pixels; None draws with the defaults.
        limit: stop each source after this many frames.
        on_result: called with each frame's metadata, in order, when all stages are done with it.
        queue_size: frames waiting between two stages.
        batch_timeout_s: with live sources: how old the oldest frame of a buffer becomes while it
            waits for those of other sources; None is 0.04, and 0.02 where the model runs on a GPU.
        batch_size: frames in a buffer at most, each of another source; None is one of each.
        frame_size: what every frame is scaled to before the models; None keeps theirs.
        tiler: composes one image of all sources for the sinks that show pixels.
        owned: what else is closed at the end: engines and trackers that nobody else uses.
        notices: what was decided while its parts were opened.
        keep_open: go on without sources, until `stop`: sources may be added while it runs, and one
            that fails does not end it.
        end_when_over, sync_wait_s: see `Muxer`.

    A pipeline runs once, by `run` or by a loop over it:

        for frame, meta in Pipeline(open_source("a.mp4"), Inferencer.from_config("config.txt")):
            print(frame.frame, len(meta.objects))

    The loop gets frames in order while the rest works ahead, bounded. Sinks get a batch after the
    loop has seen its frames, with what the loop changed. Leaving the loop early stops the run;
    what the loop has seen is written. An error of any stage is raised after the last frame.
    `async for` does the same without holding the event loop up; leave it early within an
    `async with pipeline`, which waits for the end of the run.

    Raises:
        HeadraceError: there is no source, something given cannot stand where it is, or the limit is
            no number of frames.
    """

    def __init__(
        self,
        sources: Source | Sequence[Source],
        stages: object | Sequence[Stage | Tracker | Probe] = (),
        sinks: Sequence[Sink | Route | tuple[Sink, int | None]] = (),
        *,
        painter: Painter | None = None,
        limit: int | None = None,
        on_result: Callable[[FrameMeta], None] | None = None,
        queue_size: int = 4,
        batch_timeout_s: float | None = None,
        batch_size: int | None = None,
        frame_size: FrameSize | None = None,
        tiler: Composes | None = None,
        owned: Sequence[SupportsClose] = (),
        notices: Sequence[Finding] = (),
        keep_open: bool = False,
        end_when_over: bool = False,
        sync_wait_s: float | None = None,
    ) -> None:
        self.sources = list(sources) if isinstance(sources, Sequence) else [sources]
        self.stages = list(stages) if isinstance(stages, Sequence) else [stages]
        self.on_result = on_result
        if not (self.sources or keep_open):
            raise HeadraceError("there is no source", where="Pipeline.sources")
        check_limit(limit)
        if len({s.source_id for s in self.sources}) < len(self.sources):
            for number, source in enumerate(self.sources):
                source.source_id = number
        self._owned = list(owned)
        self._companions = []
        self._decided = list(notices)
        self._left: deque[Finding] = deque(maxlen=_LEFT)  # notices of sources that are over
        self._segments = segments_of(self.stages)
        if keep_open:
            for segment in self._segments:
                segment.care = Care()
        model = self._segments[0].stage
        streams = 1 if model is None else model.streams
        fill = 1 if model is None else model.config.batch_size
        interval = 0 if model is None else model.interval
        rows = 0 if model is None else model.run_rows
        if batch_timeout_s is None:
            batch_timeout_s = _GPU_TIMEOUT_S if rows else _TIMEOUT_S
        filled = batch_size is None and rows > 0 and not interval and tiler is None
        batch_size = rows if filled else batch_size  # more sources take turns, and runs are full
        if rows and not keep_open and any(source.live for source in self.sources):
            # Joined buffers would be larger than those that the GPU is ready for.
            fill, rows = min(fill, len(self.sources)), 0
        self._mux = Muxer(
            self.sources,
            buffer_size=batch_size,
            fill=fill,
            run_rows=rows,
            interval=interval,
            room=max(queue_size, 2 * fill * streams),
            timeout_s=batch_timeout_s,
            limit=limit,
            begin_with_some=filled,
            size=frame_size,
            keep_open=keep_open,
            end_when_over=end_when_over,
            sync_wait_s=sync_wait_s,
        )
        self._watch_turns()
        self._keep_open = keep_open
        self._run_size = fill
        self._coming_and_going = threading.Lock()  # `sources` is replaced by several threads
        self._events = Events()
        self._next_id = max((s.source_id for s in self.sources), default=-1) + 1
        self._outlet = Outlet(
            routes_of(sinks),
            painter,
            tiler,
            None if keep_open else [s.source_id for s in self.sources],
            self._mux.fate,
        )
        for source in self.sources:
            self._outlet.begin(source)
        self._queue_size = max(2, -(-queue_size // max(fill, len(self.sources))))
        self._threads = RunThreads()
        self.finishing = False  # True while files are, which a stop does not hurry
        self._error: BaseException | None = None
        self._state = "new"
        self._loop: ref[Generator[tuple[Frame, FrameMeta], None, None]] | None = None
        self._async_loop: AsyncLoop[tuple[Frame, FrameMeta]] | None = None
        self._started = 0.0
        self._meters: list[Meter] = []
        one = len(self.sources) == 1 and not keep_open
        self.report = RunReport(self.sources[0].name if one else f"{len(self.sources)} sources")

    @property
    def sinks(self) -> list[Sink]:
        """Where results go."""
        return list(self._outlet.sinks)

    @property
    def state(self) -> str:
        """`new`, `running` or `done`."""
        return self._state

    @property
    def left(self) -> list[str]:
        """Stages, or `writing`, that did not come back after a stop with a limit."""
        stuck = [s for s in self._segments if s.care is not None and s.care.stuck]
        return [*self._threads.left, *(f"the model {stage_name(s.stage)}" for s in stuck)]

    @property
    def notices(self) -> list[Finding]:
        """Decisions so far, each once: while opening, and by every part."""
        findings = list(self._decided)
        cares = (segment.care for segment in self._segments)
        for part in (*self.stages, *cares, *self.sources, self._outlet, *self._companions):
            findings += getattr(part, "notices", ())
        return list(dict.fromkeys([*findings, *self._left, *self.report.notices]))

    def snapshot(self) -> RunReport:
        """The report of a run that is not over: counts, times and notices so far."""
        report = RunReport(self.report.source, inferred=self.report.inferred)
        report.objects = self.report.objects.copy()
        report.first_result_s = self.report.first_result_s
        if self._state != "running":
            return self.report
        report.seconds = perf_counter() - self._started
        self._fill(report)
        return report

    def add_source(
        self, source: Source | str | PathLike[str], *, name: str | None = None, **options: Any
    ) -> int:
        """Read one more source, from now on. Safe from any thread, also while it runs.

        Args:
            source: as `open_source` takes it, or opened, with an id above those of all before it.
            name: of it in outputs and reports; None is its own.
            options: of `open_source`; without `gpu` it is decoded where the first model computes.

        Returns:
            Its id, which no other source of this pipeline has had.

        Raises:
            MediaError: it cannot be opened.
            HeadraceError: the pipeline was made without `keep_open`, or its run is over.
        """
        self._require_open_for_sources()
        options = {"gpu": gpu_of(self.stages), **options}
        if isinstance(source, str | PathLike):
            opened = open_source(fspath(source), **options)
            if opened.live:
                again = partial(open_source, fspath(source), **options)
                opened = RetriedSource(opened, again, ReconnectPolicy())
        else:
            opened = source
        if self._mux.stopping and opened is not source:  # opening it took long
            opened.close()
            self._require_open_for_sources()
        opened.source_id = self._new_id(opened.source_id if opened is source else 0)
        if name:
            opened.rename(name)
        self._outlet.begin(opened)
        with self._coming_and_going:
            self.sources = [*self.sources, opened]
        self._events.tell(PipelineEvent("source", "added", opened.source_id, opened.name))
        self._mux.add(opened)
        self._watch_turns()
        return opened.source_id

    def remove_source(self, source_id: int) -> bool:
        """End one source at once. Safe from any thread.

        Returns:
            False if it has ended already, or there was none.
        """
        source = self._mux.remove(source_id)
        with self._coming_and_going:
            self._forget([s for s in self.sources if s is source])
        if source is not None:
            self._watch_turns()
        return source is not None

    def on_event(self, kind: EventKind, handler: Callable[[PipelineEvent], None]) -> None:
        """Call a function with each event of a kind, in the order of the frames.

        The function runs in the thread of the last stage (of `add_source` for the event `added`):
        what takes long holds the pipeline back.

        Args:
            kind: `source`, `crossing` or `crowd`, see `PipelineEvent`.
            handler: its error ends the run.

        Raises:
            HeadraceError: there is no such kind.
        """
        self._events.on(kind, handler)

    def stop(self, within_s: float | None = None) -> None:
        """Read no further frame; earlier ones are finished and written. Safe in signal handlers.

        Args:
            within_s: how long to wait for threads that are in calls; None waits for their end. What
                a thread that is left then had begun is lost, and a warning names it.
        """
        if within_s is not None:
            self._threads.limit(within_s)
        self.report.interrupted = True
        self._halt()

    def _halt(self) -> None:
        self._mux.stopping = True
        for segment in self._segments:
            segment.hurry()

    def run(self) -> RunReport:
        """Run to the end of all sources, the limit, or `stop`.

        Returns:
            What was done. A source that failed is in it, with a warning, if another did not.

        Raises:
            HeadraceError: the first error of any stage or sink, or, if all sources failed, of the
                first; after every sink has kept what it could. Also if the pipeline has run before.
        """
        self._start(None)
        try:
            self._threads.join()
        except BaseException as error:  # Ctrl-C
            self._fail(error)
        self._finish()
        self._raise()
        return self.report

    def __iter__(self) -> Iterator[tuple[Frame, FrameMeta]]:
        loop = self._loop_over()
        self._loop = ref(loop)  # weak: a loop that is left ends at once, with its last reference
        return loop

    def __aiter__(self) -> AsyncIterator[tuple[Frame, FrameMeta]]:
        from headrace.pipeline.async_loop import AsyncLoop

        loop = AsyncLoop(self._loop_over(), self.stop)
        if self._state == "new":  # a second loop is refused, and the first is still to be closed
            self._async_loop = loop
        return aiter(loop)

    def _loop_over(self) -> Generator[tuple[Frame, FrameMeta], None, None]:
        results = self._threads.channel(self._queue_size)
        written = self._start(results)
        hand_on = _discard if written is None else written.put
        try:
            for batch in received(results):
                seen = 0
                try:
                    for pair in batch:
                        seen += 1
                        yield pair
                except GeneratorExit:
                    self.stop()
                    with suppress(ChannelClosedError):
                        hand_on(batch.first(seen))
                    raise
                hand_on(batch)
        except ChannelClosedError:
            pass  # writing failed
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            results.abandon()
            if written is not None:
                written.end()
            self._finish()
        self._raise()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close it.

        Raises:
            HeadraceError: an error of the run that has not been raised yet.
        """
        self.close()
        if error is None:
            self._raise()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close it; the event loop goes on meanwhile.

        Raises:
            HeadraceError: an error of the run that has not been raised yet.
        """
        from headrace.pipeline.async_loop import in_thread

        if self._async_loop is not None:
            await self._async_loop.close()
        await in_thread(self.close)
        if error is None:
            self._raise()

    def close(self) -> None:
        """Stop a loop over it; close sources, sinks and owned parts that are still open.

        A run ends with this by itself: it is for a pipeline that shall not run.
        """
        loop = None if self._loop is None else self._loop()
        if loop is not None:
            loop.close()
        elif self._state == "running" and self._async_loop is not None:
            self.stop()  # its task ends then
        if self._state == "new":
            self._state = "done"
            for source in self.sources:
                source.close()
            for failed in self._outlet.close():
                self._error = self._error or failed
            self._close_owned()

    def _close_owned(self) -> None:
        while self._owned:
            self._owned.pop().close()

    def __repr__(self) -> str:
        stages = ", ".join(map(stage_name, self.stages)) or "no stages"
        sinks = len(self.sinks)
        return f"Pipeline({self.report.source}: {stages}; {sinks} sink{'s' * (sinks != 1)})"

    def _repr_html_(self) -> str:
        """Parts and decisions, for notebooks."""
        from headrace._core.html import facts, notice_list, paragraph

        parts = facts(
            (
                ("sources", ", ".join(s.name for s in self.sources)),
                ("stages", ", ".join(map(stage_name, self.stages))),
                ("outputs", ", ".join(str(s.path) for s in self.sinks)),
                ("state", self.state),
            )
        )
        return paragraph(repr(self)) + parts + notice_list(self.notices)

    # The threads. Each tells its neighbours when it leaves: what is already on its way downstream
    # is still finished, and nothing upstream waits for a thread that is gone.

    def _start(self, results: Channel[Batch] | None) -> Channel[Batch] | None:
        """Start every thread; the last stage gives its batches to `results`, else to the sinks.

        Returns:
            What the sinks read from; None if there are none.
        """
        if self._state != "new":
            raise HeadraceError(
                "this pipeline has run already",
                where=repr(self),
                fix="open the sources again and make a new Pipeline",
            )
        self._started = perf_counter()
        self._state = "running"  # snapshots are taken from now on; a GPU gets ready for seconds
        live = self._mux.live or self._keep_open
        for segment in self._segments:
            if segment.stage is not None:
                segment.stage.restart(self._run_size, live=live)
        runs = getattr(self._segments[0].stage, "runs", None)
        self._mux.more_decoders = partial(getattr, runs, "planned", True)
        self._meters = [Meter(s.stage) for s in self._segments if s.stage is not None]
        self._started = perf_counter()
        threads = self._threads
        at_once = self._outlet.quick and results is None and not self._keep_open
        if at_once and not live:
            self._mux.joined = joined_frames(self.sources, self._segments)
        writes = self._outlet.sinks and not at_once
        written = threads.channel(self._queue_size) if writes else None
        links = [threads.channel(self._queue_size) for _ in self._segments[1:]]
        outgoing = [*links, results or written]
        try:
            for i, segment in enumerate(self._segments):
                between = links[i - 1] if i else None, outgoing[i]
                work = partial(self._run_segment, segment, *between)
                does = stage_name(segment.stage) if segment.stage else "of the probes"
                leave = partial(self._part, *between)
                threads.start(f"headrace-stage-{i}", f"the stage {does}", work, self._fail, leave)
            if written is not None:
                work = partial(self._write, written)
                threads.start("headrace-write", _WRITES, work, self._fail, written.abandon)
        except HeadraceError as error:  # no further thread: those that run find nobody
            self._fail(error)
            self._mux.abandon()
            threads.close_channels()
            for source in self.sources:
                source.close()
            return written
        self._mux.start()
        return written

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._halt()

    def _run_segment(
        self, segment: Segment, incoming: Channel[Batch] | None, outgoing: Channel[Batch] | None
    ) -> None:
        last = segment is self._segments[-1]
        put = outgoing.put if outgoing is not None else self._outlet.write
        batches: Iterable[Batch] = self._mux.batches() if incoming is None else received(incoming)
        ahead = 0 if segment.stage is None else segment.stage.streams
        segment.run(
            batches,
            partial(self._deliver, put) if last else put,
            ahead=0 if (self._mux.live or self._keep_open) and incoming is None else ahead,
            more=(lambda: True) if incoming is None else lambda: not incoming.empty,
        )

    def _part(self, incoming: Channel[Batch] | None, outgoing: Channel[Batch] | None) -> None:
        (self._mux if incoming is None else incoming).abandon()
        if outgoing is not None:
            outgoing.end()

    def _deliver(self, put: Callable[[Batch], None], batch: Batch) -> None:
        """A batch that is through all stages: count it, tell, and pass it on."""
        if batch.frames and self.report.first_result_s is None:
            self.report.first_result_s = perf_counter() - self._started
        self.report.inferred += sum(meta.inferred for meta in batch.metas)
        count_objects(batch.metas, self.report.objects)
        self._mux.delivered(batch.frames)
        if self.on_result is not None:
            for meta in batch.metas:
                self.on_result(meta)
        self._events.look_at(batch, self._mux.fate)
        if self._keep_open and batch.ended:
            with self._coming_and_going:
                self._forget([s for s in self.sources if s.source_id in batch.ended])
        put(batch)

    def _forget(self, over: list[Source]) -> None:
        """Keep the last notices of sources that are over, and nothing else."""
        for source in over:
            source.close()  # a loss that still lasts ends with it
            self._left += source.notices
        self.sources = [s for s in self.sources if s not in over]

    def _write(self, incoming: Channel[Batch]) -> None:
        for batch in received(incoming):
            self._outlet.write(batch)
            if self._keep_open and batch.ended:
                del batch  # its frames
                trim_heap()

    def _finish(self) -> None:
        """Wait for every thread, close the sinks, complete the report."""
        self._threads.join()
        if self._threads.alive:
            self._mux.abandon()
            self._decided += self._threads.leave()
        self._mux.join(self._threads.remaining_s)
        self._state = "done"
        if not self._outlet.busy:
            self.finishing = True
            for error in self._outlet.close(_BRIEF_S if self._threads.limited else CLOSE_S):
                self._error = self._error or error
            self.finishing = False
        if sys.is_finalizing():  # modules are gone that judging and reports need
            return
        if len(errors := self._mux.errors) == len(self.sources) and not self._keep_open:
            self._error = self._error or errors[0]
        self.report.seconds = perf_counter() - self._started
        if not self.left:
            left = self._threads.do("headrace-judge", "judging", self._conclude, self._fail)
            self._decided += left
        self._fill(self.report)
        if not self.left:
            self._close_owned()

    def _conclude(self) -> None:
        for meter in self._meters:
            meter.model.conclude()

    def _fill(self, report: RunReport) -> None:
        """Complete a report."""
        steps = [step for s in self._segments for step in (*s.before, *s.after)]
        fill_report(report, self.sources, self._mux, self._meters, steps, self._outlet)
        report.notices += [n for s in self._segments if s.care is not None for n in s.care.notices]
        beside = [*self._decided, *self._left, *self._companion_notices()]
        report.notices = list(dict.fromkeys([*beside, *report.notices]))

    def _raise(self) -> None:
        """Raise the error of the run, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error


def _discard(batch: Batch) -> None:
    """Give up the loop."""

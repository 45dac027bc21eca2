"""One thread's share of the pipeline: a model, and the trackers and probes that follow it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from headrace._core.plain_record import PlainRecord
from headrace.infer.batch import Batch
from headrace.pipeline.care import Care
from headrace.pipeline.channel import Channel, ChannelClosedError
from headrace.pipeline.durations import Durations
from headrace.pipeline.stage import Stage, Step, is_stage, step_of

if TYPE_CHECKING:
    from headrace.media import Source


class _Running(PlainRecord):
    """A batch, and the pending work of the model; the batch may be without frames then."""

    batch: Batch
    stage: Stage | None = None
    work: Any = None
    begun: bool = False
    start: float = 0.0  # when it was begun


class Segment:
    """Runs batches through one model and the steps around it, in order.

    Args:
        stage: the model; None for a pipeline without one.
        before: steps before the model.
        after: steps after it.

    Attributes:
        care: keeps failures of the model to itself; None: they end the run.
    """

    def __init__(
        self, stage: Stage | None, before: Sequence[Step] = (), after: Sequence[Step] = ()
    ) -> None:
        self.stage = stage
        self.care: Care | None = None
        self.running = Durations()
        self.before = list(before)
        self.after = list(after)

    def run(
        self,
        batches: Iterable[Batch],
        emit: Callable[[Batch], None],
        *,
        ahead: int,
        more: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take every batch, give it on when it is done.

        Args:
            batches: incoming.
            emit: takes each batch, in order.
            ahead: batches begun before an older one is completed.
            more: whether it is worth waiting for the next batch while older ones are under way.

        Raises:
            whatever a model or step does; batches before the one that failed are given on first.
        """
        pending: deque[_Running] = deque()
        try:
            for batch in batches:
                try:
                    running = self._begin(batch)
                except BaseException:
                    self._drain(pending, emit, 0)
                    raise
                pending.append(running)
                self._drain(pending, emit, ahead)
                while pending and not more():
                    self._drain(pending, emit, len(pending) - 1)
            self._drain(pending, emit, 0)
        finally:
            for running in pending:  # an error, or nobody wants it: what has not started need not
                getattr(running.work, "cancel", _nothing)()
            if self.care is not None:
                self.care.end()

    def hurry(self) -> None:
        """End long work early, and wait for none; for a run that stops. Safe in signal handlers."""
        if self.stage is not None:
            self.stage.hurry()
        if self.care is not None:
            self.care.hurry()

    def _begin(self, batch: Batch) -> _Running:
        start = perf_counter()
        for step in self.before:
            step(batch)
        stage = self.stage
        if stage is None or not batch.frames:
            return _Running(batch, start=start)
        if self.care is None:
            return _Running(batch, stage, stage.begin(batch), begun=True, start=start)
        work = self.care.begin(stage, batch)
        return _Running(batch, stage, work, begun=work is not None, start=start)

    def _drain(self, pending: deque[_Running], emit: Callable[[Batch], None], left: int) -> None:
        """Complete the oldest batches until only `left` are under way."""
        while len(pending) > left:
            running = pending.popleft()
            batch = running.batch
            if running.begun and running.stage is not None:
                if self.care is None:
                    running.stage.complete(running.work)
                else:
                    batch = self.care.complete(running.stage, running.work, batch)
            if self.stage is not None:
                for source_id in batch.ended:
                    self.stage.end_of_stream(source_id)
            for step in self.after:
                step(batch)
            self.running.add(perf_counter() - running.start)
            emit(batch)


def segments_of(items: Sequence[object]) -> list[Segment]:
    """One segment for each model, with the steps behind it; the first also has those before it.

    Raises:
        HeadraceError: something is no model, tracker or function.
    """
    segments = [Segment(None)]
    for item in items:
        if is_stage(item):
            before = segments.pop().after if segments[-1].stage is None else []
            segments.append(Segment(item, before))
        else:
            segments[-1].after.append(step_of(item))
    return segments


_JOINED = 4
_JOINED_PIXELS = 1920 * 1080


def joined_frames(sources: Sequence[Source], segments: Sequence[Segment]) -> int:
    """Frames of one small video that may share a batch, though each has a run of its own.

    What is done for each batch is a twelfth of what a run costs beside decoding and the engine.
    Objects of several frames would share runs of a secondary model; a probe sees each batch.

    Returns:
        A multiple of the model's batch size; 0: none.
    """
    stage = segments[0].stage
    if len(sources) > 1 or len(segments) > 1 or stage is None or stage.run_rows:
        return 0
    if any(step.kind == "probe" for step in (*segments[0].before, *segments[0].after)):
        return 0
    pixels = getattr(sources[0], "width", 0) * getattr(sources[0], "height", 0)
    most = min(_JOINED, _JOINED_PIXELS // pixels) if pixels else 0
    return most // stage.config.batch_size * stage.config.batch_size


def received(channel: Channel[Batch]) -> Iterator[Batch]:
    """Items of a channel, until the writer has ended."""
    while True:
        try:
            batch = channel.get()
        except ChannelClosedError:
            return
        yield batch


def _nothing() -> None:
    """For work that cannot be given up."""

"""The one loop of a batch: schedule, commit, try again, write down. It runs no model itself."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, time

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.batches.executor import Executor
from headrace.batches.folder import KINDS, BatchFolder
from headrace.batches.inputs import GivenInput, shown
from headrace.batches.ledger import Ledger, Recorded, UnitRecord
from headrace.batches.storage import GO_ON, StorageError
from headrace.batches.units import BatchUnit, UnitResult, packed, unit_id

_WAIT_S = 0.2  # how late a signal may be seen


@dataclass(slots=True)
class BatchProgress:
    """Counts of a run, for progress and report.

    Attributes:
        done, failed: units of this run.
        before: units that were done before it.
        failed_before: units that failed before it, and are not tried again.
        spans: units beyond the first of each input that was split.
        waiting: units that are known and not finished: spans and second attempts.
        listed: True if every input has been seen.
        inputs: inputs seen so far.
        frames, objects: in the units done.
        retried: attempts that were not the last.
        workers: processes that work.
        seconds: wall-clock time since the start.
        interrupted: True if the run was stopped before its end.
        errors: of the first units that failed: input and text.
    """

    done: int = 0
    failed: int = 0
    before: int = 0
    failed_before: int = 0
    spans: int = 0
    waiting: int = 0
    listed: bool = False
    inputs: int = 0
    frames: int = 0
    objects: int = 0
    retried: int = 0
    workers: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    errors: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _UnderWay:
    unit: BatchUnit
    attempts: int = 1
    losses: int = 0
    doubt: str = ""


class Driver:
    """Runs every input that is not done, exactly once in the results.

    Args:
        folder: where results go.
        executor: where units run.
        retries: how often a failing unit is tried again.
        retry_failed: whether units that failed in an earlier run run again.
        max_failed: end the run when more units than that have failed in it; None: never.
        on_change: called after each result.
        on_notice: called with what the models of a worker warn of, each rule and place once.

    Attributes:
        notices: what was told so.
    """

    def __init__(
        self,
        folder: BatchFolder,
        executor: Executor,
        *,
        retries: int = 1,
        retry_failed: bool = False,
        max_failed: int | None = None,
        on_change: Callable[[BatchProgress], None] = lambda _: None,
        on_notice: Callable[[Finding], None] = lambda _: None,
    ) -> None:
        self.notices: list[Finding] = []
        self._on_notice = on_notice
        self.progress = BatchProgress(workers=executor.workers)
        self._folder = folder
        self._executor = executor
        self._retries = retries
        self._retry_failed = retry_failed
        self._max_failed = max_failed
        self._on_change = on_change
        self._stopping = False
        self._again: deque[_UnderWay] = deque()
        self._under_way: dict[str, _UnderWay] = {}
        self._void: set[str] = set()  # spans under way of videos that are read whole after all
        self._started = monotonic()

    def stop(self) -> None:
        """End the run early, and give up the units under way. Safe in signal handlers."""
        self._stopping = True

    def run(self, inputs: Iterable[GivenInput]) -> BatchProgress:
        """Run to the end of the inputs, or to `stop`.

        Raises:
            StorageError: results cannot be written; units committed before are kept.
            HeadraceError: no worker can be kept alive; an input cannot be listed.
        """
        units = self._missing(inputs)
        while not self._stopping:
            self._fill(units)
            if not self._under_way:
                break
            for result in self._executor.collect(_WAIT_S):
                self._take(result)
            self._folder.keep_up()
            self.progress.seconds = monotonic() - self._started
            self.progress.waiting = len(self._again) + len(self._under_way)
            self._on_change(self.progress)
        self.progress.interrupted = self._stopping
        self.progress.seconds = monotonic() - self._started
        return self.progress

    def _fill(self, units: Iterator[BatchUnit]) -> None:
        while len(self._under_way) < self._executor.slots and not self._stopping:
            if self._again:
                item = self._again.popleft()
            else:
                unit = next(units, None)
                if unit is None:
                    return
                item = _UnderWay(unit)
            self._under_way[item.unit.id] = item
            self._executor.submit(item.unit)

    def _missing(self, inputs: Iterable[GivenInput]) -> Iterator[BatchUnit]:
        """Units without an outcome, or with one that shall be tried again."""
        ledger = self._folder.ledger
        for name, values in inputs:
            self.progress.inputs += 1
            units = known_units(ledger, name)
            self.progress.spans += len(units) - 1
            for unit in units:
                outcome = ledger.outcome(unit.id)
                if outcome == "done":
                    self.progress.before += 1
                elif outcome == "failed" and not self._retry_failed:
                    self.progress.failed_before += 1
                    text = "failed before: manifest.parquet has why, --retry-failed repeats it"
                    self._note_failure(unit, text)
                else:
                    yield replace(unit, values=values)
            if self._stopping:
                return
        self.progress.listed = True

    def _tell(self, notices: Iterable[Finding]) -> None:
        known = {(n.code, n.where) for n in self.notices}
        for notice in notices:
            if (notice.code, notice.where) not in known:
                known.add((notice.code, notice.where))
                self.notices.append(notice)
                self._on_notice(notice)

    def _take(self, result: UnitResult) -> None:
        self._tell(result.notices)
        item = self._under_way.pop(result.unit.id, None)
        if item is None:
            return
        if result.unit.id in self._void:
            self._void.discard(result.unit.id)
            return
        if result.outcome == "storage":
            raise StorageError(result.error, where=self._folder.where, fix=GO_ON)
        if result.outcome == "lost":
            self._lost(item, result)
        elif result.outcome == "failed" and item.attempts <= self._retries and not result.final:
            item.attempts += 1
            self.progress.retried += 1
            self._again.append(item)
        elif result.outcome == "split":
            self._split(item, result)
        elif result.outcome == "doubtful":
            self._read_whole(item, result)
        else:
            self._commit(item, result)

    def _lost(self, item: _UnderWay, result: UnitResult) -> None:
        """A worker ended. A unit that waited there is innocent; one that ran may be the cause."""
        item.losses += result.begun
        if item.losses > max(self._retries, self._executor.spared_losses):
            result.outcome = "failed"
            self._commit(item, result)
        else:
            self.progress.retried += result.begun
            self._again.appendleft(item)

    def _split(self, item: _UnderWay, result: UnitResult) -> None:
        self._folder.append(self._record(item, result, "split"))
        self.progress.spans += len(result.spans) - 1
        for span in result.spans:
            facts = (False, result.sha256, result.size_bytes, item.unit.values)
            self._again.append(_UnderWay(BatchUnit(item.unit.input, span, *facts)))

    def _read_whole(self, item: _UnderWay, result: UnitResult) -> None:
        """A span did not fit: the video's spans are void, and it runs whole."""
        name = item.unit.input
        spans = self._folder.ledger.spans_of(name)
        ids = {unit.id for unit in spans}
        self._void |= ids & self._under_way.keys()
        self._again = deque(one for one in self._again if one.unit.id not in ids)
        record = self._record(item, result, "whole")
        record = record.changed(unit=unit_id(name), first=None)
        self._folder.append(record)
        self._folder.remove_results(spans, KINDS)
        self.progress.spans -= len(spans) - 1
        unit = BatchUnit(name, whole=True, values=item.unit.values)
        self._again.append(_UnderWay(unit, doubt=result.error))

    def _commit(self, item: _UnderWay, result: UnitResult) -> None:
        if result.outcome == "done":
            record = self._record(item, result, "done")
            self._folder.commit(item.unit, record, result.files)
            self.progress.done += 1
            self.progress.frames += result.frames
            self.progress.objects += result.objects
            return
        self._folder.append(self._record(item, result, "failed"))
        self.progress.failed += 1
        self._note_failure(item.unit, result.error)
        if self._max_failed is not None and self.progress.failed > self._max_failed:
            raise HeadraceError(
                f"{counted(self.progress.failed, 'unit')} failed, the last one: {result.error}",
                where=self._folder.where,
                expected=f"at most {self._max_failed} (--max-failed)",
                fix="what is done is kept; --resume goes on, with --retry-failed these run again",
                code="batch-gave-up",
            )

    def _note_failure(self, unit: BatchUnit, error: str) -> None:
        if len(self.progress.errors) < 20:
            self.progress.errors.append((shown(unit.input), error))

    def _record(self, item: _UnderWay, result: UnitResult, outcome: Recorded) -> UnitRecord:
        span = item.unit.span
        doubt = (f"not split: {item.doubt}",) if item.doubt else ()
        return UnitRecord(
            unit=item.unit.id,
            input=shown(item.unit.input),
            outcome=outcome,
            first=None if span is None else span.start.frame,
            sha256=result.sha256,
            size_bytes=result.size_bytes,
            frames=result.frames,
            objects=result.objects,
            seconds=round(result.seconds, 6),
            attempts=item.attempts + item.losses,
            error=result.error,
            warnings=doubt + result.warnings,
            spans=tuple(packed(span) for span in result.spans),
            finished_s=round(time(), 3),
            values=item.unit.values,
        )


def known_units(ledger: Ledger, name: str) -> Sequence[BatchUnit]:
    """The units of an input as far as a ledger knows: its spans, or itself."""
    whole = ledger.outcome(unit_id(name)) == "whole"
    return ledger.spans_of(name) or [BatchUnit(name, whole=whole)]


def what_is_left(ledger: Ledger, names: Iterable[str], retry_failed: bool) -> str:
    """Say how many of the inputs are done, failed and left."""
    counts: Counter[str] = Counter()
    for name in names:
        outcomes = {ledger.outcome(unit.id) for unit in known_units(ledger, name)}
        if outcomes == {"done"}:
            counts["done"] += 1
        elif outcomes <= {"done", "failed"} and not retry_failed:
            counts["failed"] += 1
        else:
            counts["left"] += 1
    failed = counts["failed"]
    text = f", {failed} failed (--retry-failed runs them again)" if failed else ""
    return f"{counted(counts.total(), 'input')}: {counts['done']} done{text}, {counts['left']} left"

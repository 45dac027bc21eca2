"""Care of a model in a service: its failures stop no other model, and its answers are watched."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.text import error_text
from headrace._core.threads import as_exception, start_thread
from headrace.infer.batch import Batch

if TYPE_CHECKING:
    from headrace.pipeline.stage import Stage

_MOST_ERRORS = 5  # different ones that become notices
PATIENCE_S = 10.0  # patience before the first answer: a GPU gets ready
_LEAST_S = 2.0  # patience with a model that answers at once
_TIMES = 20.0  # patience, in the longest time that an answer took
_TRIAL_S = 0.5  # patience with a model whose last batch failed: the others' frames do not wait
_TRIAL_TIMES = 2.0  # the same for one that is slow when it is well
_LOOK_S = 0.2  # how soon a wait notices that it should be shorter
_RESULTS = ("attached", "labelled", "class_maps")


class _Task:
    """A call in the thread of a `Care`."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.done = threading.Event()
        self.error: Exception | None = None


class Care:
    """Runs a model so that frames go on without its results where it fails or does not come back.

    Attributes:
        notices: what failed.
        failures: batches that failed.
        passed: frames that went on without the model's results.
        last_error: the latest failure in one line; empty without one.
        restarts: how often the model was opened anew.
        unanswered_since: since when items wait for an answer, by `monotonic`; None: for none.
        empty_since: since when answers hold no results; None: the latest one held some.
        most_s: longest patience.
        stuck: True while a call of the model does not come back.
    """

    def __init__(self) -> None:
        self.notices: list[Finding] = []
        self.failures = self.passed = self.restarts = 0
        self.last_error = ""
        self.unanswered_since: float | None = None
        self.empty_since: float | None = None
        self.most_s = PATIENCE_S
        self._failing = self._hurried = self._on_trial = False
        self._longest_s: float | None = None
        self._stuck: _Task | None = None
        self._tasks: SimpleQueue[_Task | None] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # of the tasks and their thread
        self._counts = (0, 0, 0)

    @property
    def stuck(self) -> bool:
        """True while a call of the model does not come back."""
        return self._stuck is not None and not self._stuck.done.is_set()

    @property
    def patience_s(self) -> float:
        """How long a batch may take before it goes on without the model's results."""
        if self._hurried:
            return _LEAST_S
        longest_s = self._longest_s
        if longest_s is None:
            return _LEAST_S if self._on_trial else max(_LEAST_S, self.most_s)
        if self._on_trial:
            return max(_TRIAL_S, min(self.most_s, _TRIAL_TIMES * longest_s))
        return max(_LEAST_S, min(self.most_s, _TIMES * longest_s))

    def begin(self, stage: Stage, batch: Batch) -> Any:
        """Begin a batch; None where it goes on without the model."""
        if self._stuck is not None and not self.stuck:
            self._came_back(stage)
        if self.unanswered_since is None:
            self.unanswered_since = monotonic()
        if self.stuck:
            self._pass(stage, batch)
            return None
        try:
            return stage.begin(batch)
        except Exception as error:  # whatever it is, the frames go on
            self._failed(stage, error)
            self._pass(stage, batch)
            return None

    def complete(self, stage: Stage, work: Any, batch: Batch) -> Batch:
        """Complete a batch, or give up waiting for it.

        Returns:
            The batch; a copy without further results if the model may still write to it.
        """
        if self.stuck:
            getattr(work, "cancel", _nothing)()
            self._pass(stage, batch)
            return batch
        start = monotonic()
        if self.unanswered_since is None:  # the answer to an earlier batch came after this began
            self.unanswered_since = start
        task = self._do(partial(stage.complete, work), stage)
        while not task.done.wait(_LOOK_S) and monotonic() - start < self.patience_s:
            pass  # which is less when the run stops
        if not task.done.is_set():
            self._stuck, self._on_trial = task, True
            seconds = monotonic() - start
            self.last_error = f"it did not come back within {seconds:.1f} s"
            text = f"{self.last_error}: frames go on without its results"
            self._note("model-stuck", text, stage)
            batch = _separate(batch)
            self._pass(stage, batch)
            return batch
        if task.error is not None:
            self._failed(stage, task.error)
            self._pass(stage, batch)
        else:
            self._judge(stage, monotonic() - start)
        return batch

    def hurry(self) -> None:
        """Wait for no call longer than for a quick one: the run stops. Safe in signal handlers."""
        self._hurried = True

    def forget(self) -> None:
        """Begin anew with a model that was opened again, which is not ready before it answers.

        A stuck call keeps its thread.
        """
        self.end()
        self._stuck, self._on_trial, self._failing = None, False, True
        self.restarts += 1

    def end(self) -> None:
        """End the thread, unless a call keeps it."""
        with self._lock:
            tasks, thread, self._tasks = self._tasks, self._thread, None
            if tasks is not None:
                tasks.put(None)
        if thread is not None and not self.stuck:
            thread.join(_LEAST_S)

    def _do(self, work: Callable[[], None], stage: Stage) -> _Task:
        task = _Task(work)
        with self._lock:
            if self._tasks is None:
                self._tasks = tasks = SimpleQueue[_Task | None]()
                self._thread = start_thread(
                    partial(_work, tasks),
                    name="headrace-model",
                    failed=partial(self._ended, tasks, stage),
                )
            self._tasks.put(task)
        return task

    def _ended(self, tasks: SimpleQueue[_Task | None], stage: Stage, error: Exception) -> None:
        """The thread failed outside of a call: the next call gets another, none waits for it."""
        with self._lock:
            if self._tasks is tasks:
                self._tasks = None
        self._note("model-failed", f"its thread ended: {error_text(error)}", stage)
        while not tasks.empty():
            task = tasks.get()
            if task is not None:
                task.error = error
                task.done.set()

    def _came_back(self, stage: Stage) -> None:
        task, self._stuck = self._stuck, None
        if task is not None and task.error is not None:
            self._failed(stage, task.error)
        else:
            self._judge(stage)
            self._note("model-back", "it came back", stage, level="info")

    def _judge(self, stage: Stage, seconds: float = 0.0) -> None:
        """Learn from the counts whether the batch was answered, in which time, and held results."""
        answered = stage.completed_items - stage.failed_items
        results = stage.results
        lost = stage.failed_items + results.get("crashed", 0) + results.get("no_memory", 0)
        kept = sum(results.get(name, 0) for name in _RESULTS)
        before, self._counts = self._counts, (answered, lost, kept)
        if answered > before[0]:
            self._failing = self._on_trial = False
            self.unanswered_since = None
            self._longest_s = max(self._longest_s or 0.0, seconds)
            if kept > before[2]:
                self.empty_since = None
            elif self.empty_since is None:
                self.empty_since = monotonic()
        elif lost > before[1]:
            self._failing = self._on_trial = True
        elif not self._failing:  # there was nothing to answer
            self.unanswered_since = None

    def _pass(self, stage: Stage, batch: Batch) -> None:
        """Let the frames of a batch go on without the model's results."""
        self.passed += len(batch)
        for meta in batch.metas:
            meta.note_failure(stage.config.component_id)

    def _failed(self, stage: Stage, error: Exception) -> None:
        self.failures += 1
        self._failing = self._on_trial = True
        finding = getattr(error, "finding", None)
        self.last_error = error_text(error) if finding is None else f"{finding:line}"
        text = f"a batch failed, and its frames went on without results: {error_text(error)}"
        self._note("model-failed", text, stage)

    def _note(self, code: str, text: str, stage: Stage, level: Any = "warning") -> None:
        if sum(notice.code == code for notice in self.notices) < _MOST_ERRORS:
            note_once(self.notices, Finding(code, level, text, stage.name))


def _work(tasks: SimpleQueue[_Task | None]) -> None:
    while (task := tasks.get()) is not None:
        try:
            task.work()
        except BaseException as error:
            task.error = as_exception(error)
        finally:
            task.done.set()


def _separate(batch: Batch) -> Batch:
    """Copy a batch that a model may still write to."""
    metas = []
    for meta in batch.metas:
        other = copy.copy(meta)
        other.objects = copy.copy(meta.objects)
        metas.append(other)
    return Batch(
        list(batch.frames),
        metas,
        list(batch.buffers),
        ended=list(batch.ended),
        came_at=batch.came_at,
    )


def _nothing(*_: object) -> None:
    """For work that cannot be given up."""

"""Auto-tuning: which way of running a model is best on this machine, found by running it.

First every candidate is tried once, in a child process: what crashes, hangs or gives other results
than the reference is out. Then the best few are measured in turns, round after round, so that noise
hits all alike, until one has clearly won or the time is up.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from headrace._core.errors import EngineError
from headrace._core.files import locked, sha256_of
from headrace.engine.backends import DEFAULT_BACKEND, get_backend, installed_backends
from headrace.engine.machine import Machine, this_machine
from headrace.engine.plan_header import Outcome, Precision, TacticRecord
from headrace.engine.tactic import Objective, Tactic, candidates
from headrace.engine.tuning.foreign_load import ForeignLoad
from headrace.engine.tuning.output_difference import NOISE_DB, difference, too_noisy
from headrace.engine.tuning.timing_cache import VERSION, TimingCache, TimingEntry
from headrace.engine.tuning.tuned import Tuning
from headrace.engine.tuning.worker import CrashedError, HungError, RefusedError, TuningWorker
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace._core.types import Array


DEFAULT_BUDGET_S = 60.0

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and what is being done."""

_TRIAL_SHARE = 0.6  # of the budget; the rest is for measuring the best ones in turns
_TRIAL_WINDOWS, _TRIAL_WINDOW_S = 3, 0.06
_ROUND_WINDOW_S = 0.25
_AT_LEAST = 3  # runs of each thread in a window
_FINALISTS = 4
_LARGE_MODEL = 100 * 2**20
_LARGE_FINALISTS = 2  # all are loaded at once
_WORTH = 1.5  # times the best: what is further off at first sight cannot win
_BEHIND = 1.05  # times the best, in its best round: given up
_MIN_ROUNDS, _MAX_ROUNDS = 4, 12
_LEAST_TIMEOUT_S = 10.0  # importing a runtime on a busy machine takes seconds
_LOCK_TIMEOUT_S = 600.0
_TILED: tuple[Precision, ...] = ("int8", "best", "bf16")  # what AMX computes


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """How to tune.

    Attributes:
        budget_s: seconds it may take.
        objective: what is to be best.
        runtimes: backends that take part; None is every one installed.
        tactics: the candidates, the default first; None is `tactic.candidates`.
        cache: folder of the timing cache; None is the user's.
        use_cache: False measures even if the answer is known (it is kept all the same).
        in_turns: False leaves it at the trials: enough where processor time is what counts.
    """

    budget_s: float = DEFAULT_BUDGET_S
    objective: Objective = "throughput"
    runtimes: Sequence[str] | None = None
    tactics: Sequence[Tactic] | None = None
    cache: Path | None = None
    use_cache: bool = True
    in_turns: bool = True


@dataclass(frozen=True, slots=True)
class Version:
    """A graph to try: the ONNX message, its precision, and the runtimes it was made for.

    One that is `offered` is measured and never chosen: it was not asked for.
    """

    precision: Precision
    model: bytes
    runtimes: tuple[str, ...] | None = None
    offered: bool = False


@dataclass(slots=True)
class _Try:
    tactic: Tactic
    version: str
    number: int = 0  # of the model that it runs
    precision: Precision = "fp32"
    offered: bool = False
    outcome: Outcome = "untried"
    note: str = ""
    load_s: float | None = None
    error: float | None = None
    latencies_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)  # items per second
    cpu_ms: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.tactic}{'' if self.precision == 'fp32' else f' in {self.precision}'}"

    def promise(self, objective: Objective) -> float:
        """Cost in the best window: noise only adds, and a trial is too short to tell it apart."""
        return min(self.costs(objective))

    def cost(self, objective: Objective) -> float:
        """The number to minimise: median latency in ms, or 1 / throughput."""
        if objective == "latency":
            return statistics.median(self.latencies_ms)
        return 1e3 / statistics.median(self.rates)

    def costs(self, objective: Objective) -> list[float]:
        return self.latencies_ms if objective == "latency" else [1e3 / r for r in self.rates]

    def record(self, *, chosen: bool) -> TacticRecord:
        def rounded(value: float | None) -> float | None:
            return None if value is None else float(f"{value:.5g}")

        return TacticRecord.of(
            self.tactic,
            version=self.version,
            precision=self.precision,
            load_s=rounded(self.load_s),
            latency_ms=rounded(statistics.median(self.latencies_ms)) if self.latencies_ms else None,
            cpu_ms=rounded(statistics.median(self.cpu_ms)) if self.cpu_ms else None,
            items_per_s=rounded(statistics.median(self.rates)) if self.rates else None,
            error=rounded(min(self.error, 1e30)) if self.error is not None else None,
            outcome=self.outcome,
            note=self.note[:500],
            chosen=chosen,
        )


def tune(
    model: bytes,
    inputs: Sequence[TensorSpec],
    feeds: Mapping[str, Array],
    *,
    items: int,
    versions: Sequence[Version] | None = None,
    options: TuneOptions | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Find the best tactic for `model`.

    `model` is the ONNX message in FP32, all weights inside, and `feeds` one batch of `items`.
    `versions` are the graphs to try; None is `model` alone. An exception of `progress` ends the
    tuning.

    Raises:
        EngineError: no candidate, or a runtime that is not installed.
    """
    options = options or TuneOptions()
    machine = this_machine()
    names = list(options.runtimes or installed_backends())
    tactics = list(options.tactics or candidates(names, machine.cores, options.objective))
    if not tactics:
        raise EngineError("there is nothing to tune", expected="at least one runtime")
    graphs = list(versions or [Version("fp32", model)])
    installed = {name: get_backend(name).version() for name in sorted({t.runtime for t in tactics})}
    installed.setdefault(DEFAULT_BACKEND, get_backend(DEFAULT_BACKEND).version())  # the reference
    asked = {
        "version": VERSION,
        "model": _hash_of(model, graphs),
        "inputs": "; ".join(map(str, inputs)),
        "items": str(items),
        "objective": options.objective,
        "precision": " ".join(g.precision for g in graphs),
        "machine": str(machine),
        "runtimes": ", ".join(f"{name} {version}" for name, version in sorted(installed.items())),
        "tactics": " ".join(map(str, tactics)),
    }
    cache = TimingCache(options.cache)
    with suppress(OSError):
        cache.folder.mkdir(parents=True, exist_ok=True)
    if options.use_cache and (entry := cache.get(asked, budget_s=options.budget_s)):
        return _remembered(entry, machine, graphs)
    if progress is not None:
        progress(0, 1, "waiting for another tuning")
    # One at a time on this machine: two would measure each other.
    with locked(cache.folder / "tuning", _LOCK_TIMEOUT_S):
        if options.use_cache and (entry := cache.get(asked, budget_s=options.budget_s)):
            return _remembered(entry, machine, graphs)
        models = [model, *(g.model for g in graphs if g.model is not model)]
        numbers = [next(i for i, m in enumerate(models) if m is g.model) for g in graphs]
        tries = [
            _Try(tactic, installed[tactic.runtime], number, graph.precision, graph.offered)
            for tactic in tactics  # by promise, so that each precision has an early turn
            for number, graph in zip(numbers, graphs, strict=True)
            if (graph.runtimes is None or tactic.runtime in graph.runtimes)
            and (tactic.amx or graph.precision in _TILED or len(graphs) == 1)
        ]
        tries.sort(key=lambda t: t.offered)  # those that can be chosen come first
        load = ForeignLoad()
        large = sum(map(len, models))
        with (
            TuningWorker(models, feeds, items) as worker,
            TuningWorker(models, feeds, items) as without_tiles,
        ):
            workers = {True: worker, False: without_tiles}
            work = _Contest(workers, tries, items, options, progress, large=large)
            why = work.run()
            best = work.best()
            foreign = load.share(*(w.pid for w in workers.values() if w.pid is not None))
            records = tuple(t.record(chosen=t is best) for t in tries)
            if best is not None:  # kept before the lock is given up: whoever waits finds it
                cache.put(
                    TimingEntry(
                        question=asked,
                        tactics=records,
                        spent_s=round(work.spent_s, 3),
                        budget_s=options.budget_s,
                        complete=work.complete,
                        foreign=foreign,
                    )
                )
    if best is None:
        return Tuning(None, records, machine, work.spent_s, False, why or "no candidate was right")
    version = numbers.index(best.number)
    return Tuning(best.tactic, records, machine, work.spent_s, False, "", version, foreign)


def _hash_of(model: bytes, graphs: Sequence[Version]) -> str:
    others = [graph.model for graph in graphs if graph.model is not model]
    return sha256_of(model, *(part for other in others for part in (b"%d " % len(other), other)))


def _remembered(entry: TimingEntry, machine: Machine, graphs: Sequence[Version]) -> Tuning:
    (chosen,) = (t for t in entry.tactics if t.chosen)
    version = next(
        i
        for i, g in enumerate(graphs)
        if g.precision == chosen.precision and (g.runtimes is None or chosen.runtime in g.runtimes)
    )
    spent_s = entry.spent_s
    return Tuning(chosen.tactic, entry.tactics, machine, spent_s, True, "", version, entry.foreign)


class _Contest:
    """One tuning under way."""

    def __init__(
        self,
        workers: Mapping[bool, TuningWorker],
        tries: Sequence[_Try],
        items: int,
        options: TuneOptions,
        progress: Progress | None,
        *,
        large: int,
    ) -> None:
        self._workers, self._tries, self._items = workers, tries, items  # by `Tactic.amx`
        self._worker = workers[True]
        self._objective, self._in_turns = options.objective, options.in_turns
        self._progress = progress
        self._finalists = _LARGE_FINALISTS if large > _LARGE_MODEL else _FINALISTS
        self._start = monotonic()
        self._budget_s = options.budget_s
        self._references: dict[int, Mapping[str, Array]] = {}  # by model
        self._steps = len(tries) + 1 + _MAX_ROUNDS
        self._done = 0

    @property
    def spent_s(self) -> float:
        return monotonic() - self._start

    @property
    def complete(self) -> bool:
        """Every candidate had its chance, and the best were compared."""
        tried = all(t.outcome != "untried" for t in self._tries)
        return tried and any(t.outcome == "measured" for t in self._tries)

    def run(self) -> str:
        """Try and measure all; returns why nothing could be, or nothing."""
        self._tell("running the reference")
        try:
            self._references[0] = self._refer(0, self._left())
        except (CrashedError, RefusedError) as error:
            return f"the reference cannot be run: {error}"
        except HungError:
            return f"the reference alone takes longer than {self._budget_s:g} s"
        slowest = 0.0
        for number, attempt in enumerate(self._tries):
            left = self._budget_s * (_TRIAL_SHARE if number else 1) - self.spent_s
            if left <= 0:
                break
            self._tell(f"trying {attempt}")
            timeout = max(_LEAST_TIMEOUT_S, 10 * slowest) if slowest else left
            began = monotonic()
            self._try(attempt, min(timeout, left), cut=left < timeout)
            if attempt.outcome == "ok":
                slowest = max(slowest, monotonic() - began)
        if self._in_turns:
            self._compare()
        return ""

    def _refer(self, number: int, timeout_s: float) -> Mapping[str, Array]:
        """Compute the outputs of a model with nothing of its graph rewritten."""
        plain = f"{DEFAULT_BACKEND}:optimization=none"
        _, outputs = self._worker.ask(timeout_s, do="run", model=number, tactic=plain, outputs=True)
        self._worker.ask(max(1.0, self._left()), do="drop", model=number, tactic=plain)
        return outputs

    def _judge(self, attempt: _Try, outputs: Mapping[str, Array], timeout_s: float) -> str | None:
        """Name the fault of outputs. Lower precisions are compared with the same graph."""
        exact = self._references[0]
        attempt.error, wrong = difference(outputs, exact)
        if attempt.precision == "fp32":
            return wrong
        number = attempt.number
        if number not in self._references:
            try:
                self._references[number] = self._refer(number, timeout_s)
            except RefusedError:  # types that the reference does not compute, such as BF16
                self._references[number] = exact
        return too_noisy(outputs, self._references[number], NOISE_DB[attempt.precision])

    def _try(self, attempt: _Try, timeout_s: float, *, cut: bool) -> None:
        """Try a tactic once; `cut`: `timeout_s` is less than it should have."""
        deadline = monotonic() + timeout_s
        try:
            answer, outputs = self._ask(attempt, timeout_s, outputs=True)
            attempt.load_s = answer["load_s"]
            wrong = self._judge(attempt, outputs, max(0.1, deadline - monotonic()))
            if wrong is None:
                for _ in range(_TRIAL_WINDOWS):
                    self._measure(attempt, deadline - monotonic(), _TRIAL_WINDOW_S)
                attempt.outcome = "ok"
            else:
                attempt.outcome, attempt.note = "wrong", wrong
            self._ask(attempt, max(1.0, deadline - monotonic()), do="drop")
        except (CrashedError, HungError, RefusedError) as error:
            if cut and isinstance(error, HungError):
                attempt.note = "the time was up"
            else:
                _out(attempt, error, timeout_s)

    def _ask(
        self, attempt: _Try, timeout_s: float, *, do: str = "run", **more: object
    ) -> tuple[dict[str, Any], Mapping[str, Array]]:
        return self._workers[attempt.tactic.amx].ask(
            timeout_s,
            do=do,
            model=attempt.number,
            precision=attempt.precision,
            tactic=str(attempt.tactic),
            **more,
        )

    def _measure(self, attempt: _Try, timeout_s: float, window_s: float) -> None:
        answer, _ = self._ask(attempt, max(0.1, timeout_s), window_s=window_s, at_least=_AT_LEAST)
        attempt.latencies_ms.append(answer["latency_ms"])
        attempt.rates.append(answer["runs_per_s"] * self._items)
        attempt.cpu_ms.append(answer["cpu_ms"])

    def _compare(self) -> None:
        """Measure the best in turns, dropping those that fall behind."""
        objective = self._objective
        tried = [t for t in self._tries if t.outcome == "ok"]
        able = [t for t in tried if not t.offered]
        if not able:
            return None
        able.sort(key=lambda t: t.promise(objective))
        limit = able[0].promise(objective) * _WORTH
        left = [t for t in able if t.promise(objective) <= limit][: self._finalists]
        offers = sorted((t for t in tried if t.offered), key=lambda t: t.promise(objective))
        left += [t for t in offers[:1] if t.promise(objective) < able[0].promise(objective)]
        first = {id(t): (t.latencies_ms[:], t.rates[:]) for t in left}
        for attempt in left:  # the trial is noise by now
            attempt.latencies_ms.clear()
            attempt.rates.clear()
        for number in range(_MAX_ROUNDS):
            shift = number % len(left)
            for attempt in left[shift:] + left[:shift]:
                expected = max(first[id(attempt)][0]) / 1e3 * _AT_LEAST + _ROUND_WINDOW_S
                if expected + (0 if number else attempt.load_s or 0) > self._left():
                    return self._settle(first)
                self._tell(f"comparing {attempt}", number)
                timeout = max(_LEAST_TIMEOUT_S, 10 * expected) + (attempt.load_s or 0)
                try:
                    self._measure(attempt, min(timeout, self._left()), _ROUND_WINDOW_S)
                except (CrashedError, HungError, RefusedError) as error:
                    if isinstance(error, HungError) and timeout > self._left():
                        return self._settle(first)
                    _out(attempt, error, timeout)
            left = [t for t in left if t.outcome == "ok"]
            if number + 1 >= _MIN_ROUNDS:
                costs = [t.cost(objective) for t in left if not t.offered]
                left = self._ahead(left, min(costs, default=0.0))
            rivals = sum(not t.offered for t in left)
            if not rivals or (rivals == 1 and number + 1 >= _MIN_ROUNDS):
                break
        return self._settle(first)

    def _ahead(self, left: list[_Try], best: float) -> list[_Try]:
        kept = []
        for attempt in left:
            if attempt.offered or min(attempt.costs(self._objective)) <= best * _BEHIND:
                kept.append(attempt)
            else:
                attempt.outcome = "measured"
        return kept

    def _settle(self, first: Mapping[int, tuple[list[float], list[float]]]) -> None:
        for attempt in self._tries:
            if id(attempt) not in first or attempt.outcome not in ("ok", "measured"):
                continue
            if attempt.rates:
                attempt.outcome = "measured"
            else:  # the time was up before its turn
                attempt.latencies_ms, attempt.rates = map(list, first[id(attempt)])

    def best(self) -> _Try | None:
        """The winner; among those measured in turns, if any were."""
        for outcome in ("measured", "ok"):
            able = [t for t in self._tries if t.outcome == outcome and not t.offered]
            if able:
                return min(able, key=lambda t: t.cost(self._objective))
        return None

    def _left(self) -> float:
        return max(0.05, self._budget_s - self.spent_s)

    def _tell(self, text: str, round_number: int | None = None) -> None:
        if self._progress is None:
            return
        if round_number is None:
            self._done += 1
        else:
            self._done = len(self._tries) + 1 + round_number
        self._progress(min(self._done, self._steps), self._steps, text)


def _out(attempt: _Try, error: CrashedError | HungError | RefusedError, timeout_s: float) -> None:
    if isinstance(error, HungError):
        attempt.outcome, attempt.note = "hung", f"no answer within {timeout_s:.1f} s"
    else:
        attempt.outcome = "crashed" if isinstance(error, CrashedError) else "failed"
        attempt.note = str(error)

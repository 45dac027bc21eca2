"""A worker process that runs users' code: started, called, ended, started again."""

from __future__ import annotations

import json
import os
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from headrace._core import _native
from headrace._core.errors import ParserError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import current_gpu
from headrace._core.retry import Backoff
from headrace.custom.guard import ipc
from headrace.custom.guard.answers import StartedAnswer, read_answer
from headrace.custom.guard.arena import OutputArena
from headrace.custom.guard.crash import (
    Death,
    Ending,
    LibraryDiedError,
    describe,
    sanitizer_of,
)
from headrace.custom.guard.handle import WorkerHandle
from headrace.custom.guard.ipc import (
    Arrays,
    ProtocolError,
    SharedRegion,
    Writer,
    arrays_in,
    error_from,
    put_arrays,
)
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.protections import OPEN, held_notice, open_notice

if TYPE_CHECKING:
    from headrace._core.types import Array, Message


SERVE = "headrace.custom.guard.serve"
_BACKOFF = Backoff(0.1, 5.0)  # from the second death on


def deaths() -> dict[str, int]:
    """How often a worker died so far, by the name of its library; of this process."""
    return dict(_deaths)


FORGIVEN_AFTER = 100
"""Calls without a fault after which earlier faults are no longer counted."""

_deaths: Counter[str] = Counter()  # of all workers of this process
_earlier: dict[str, int] = {}  # deaths before the model whose successors count on
_goes_on: ContextVar[bool] = ContextVar("goes_on", default=False)


@contextmanager
def deaths_go_on() -> Iterator[None]:
    """Libraries that are loaded inside count the deaths of the models that they replace, too."""
    token = _goes_on.set(True)
    try:
        yield
    finally:
        _goes_on.reset(token)


_RESTART_HINT = "mend the library, or raise custom-lib-guard-restarts"
_SIDE_LIMIT = 1 << 23  # more than a second of reading JSON

Places = tuple[list[int], list[int]]  # where arrays are copied to, and their bytes


def _require_free(worker: WorkerHandle, what: str) -> None:
    """Refuse a request while the answer to another is not read: they would be mixed up.

    Raises:
        ParserError: this thread waits for an answer already.
    """
    if worker.channel.busy:
        raise ParserError(
            "its worker was called again from inside a call to it (same thread)",
            where=what,
            fix="a signal handler or a finaliser does so: it can set a flag instead",
        )


class GuardedProcess:
    """Runs functions in a worker process, one call at a time.

    When the worker dies the call raises; the next call starts a worker and runs `setup` in it. The
    worker's first GPU is that of the thread that makes this object.

    Args:
        name: of the library, for messages.
        options: limits of the worker.
        python: Python's own crash handler reports Python's frames.
        setup: prepares a new worker with calls of `invoke`.
        on_news: gets decisions and notices that a worker sends beside results, as JSON.
        on_death: called when a worker has died.

    Attributes:
        deaths: of workers, so far.
        generation: number of the current worker, from 1 on.
        lock: held by the thread that uses the worker.
        arena: memory for the arrays of `call` that the worker reads where they are.
        notices: what the kernel could not close to the worker, what of the environment it has not.
    """

    def __init__(
        self,
        name: str,
        options: GuardOptions,
        *,
        python: bool = False,
        setup: Callable[[], None] | None = None,
        on_news: Callable[[Message], None] | None = None,
        on_death: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.deaths = 0
        self._gpu = current_gpu()
        self._calls = 0
        self.generation = 0
        self.lock = _native.CallLock()
        self.arena = OutputArena()
        self.notices: list[Finding] = []
        self._python = python
        self._setup = setup
        self._on_news, self._on_death = on_news, on_death
        self._worker: WorkerHandle | None = None
        self._recent = 0  # deaths that are not forgiven
        self._clean = 0  # calls since the last one
        self._not_before = 0.0
        self._setting_up = False
        self._last: Death | None = None
        self._holder = _Holder()
        weakref.finalize(self, _end, self._holder)
        if not _goes_on.get():
            _earlier[name] = _deaths[name]
        self._earlier = _earlier.get(name, 0)

    @property
    def calls(self) -> int:
        """Number of answered requests, errors of the library included."""
        with self.lock:
            return self._calls

    @property
    def pid(self) -> int | None:
        """The worker's process id while there is one."""
        return None if self._worker is None else self._worker.pid

    def close(self) -> None:
        """End the worker; the next call starts another."""
        with self.lock:
            worker, self._worker = self._worker, None
            self._holder.worker = None
            if worker is not None and worker.owner == os.getpid():
                worker.end("died")
            elif worker is not None:
                worker.close()

    def invoke(
        self,
        function: str,
        payload: Message | None = None,
        arrays: Sequence[Array] = (),
        *,
        what: str,
        timeout_s: float | None = None,
        answer: type[Any] = dict,
    ) -> tuple[Any, Arrays]:
        """Call a function in the worker.

        Args:
            function: `module:name` of a `headrace.custom.guard.serve.Operation`.
            payload: its first argument; JSON types.
            arrays: its second argument, copied into shared memory.
            what: library and function of the user, for errors.
            timeout_s: None is `load_timeout_s`.
            answer: class of what it answers, such as those of `answers`; anything else ends the
                worker.

        Returns:
            Its result; the arrays are valid until the next call.

        Raises:
            LibraryDiedError: the worker died, or did not return in time, or is given up.
            HeadraceError: the function raised it.
        """
        with self.lock:
            worker = self.started(what)
            timeout_s = self.options.load_timeout_s if timeout_s is None else timeout_s
            _require_free(worker, what)
            with worker.channel:
                payload = payload or {}
                message: Message = {"do": function, "payload": payload, "what": what}
                room = 4096 + len(json.dumps(message)) + 128 * len(arrays)
                message["arrays"] = payload.pop("_arrays", None) or put_arrays(
                    list(arrays), Writer(worker.inputs, start=room)
                )
                data = json.dumps(message).encode()
                worker.inputs.ensure(len(data))
                worker.inputs.put(0, data)
                worker.words[ipc.OP] = ipc.MESSAGE
                worker.words[ipc.MESSAGE_BYTES] = len(data)
                side = self._exchange(worker, [], ([], []), timeout_s, what)
                try:
                    told = read_answer(side["payload"], answer)
                    return told, arrays_in(side["arrays"], worker.outputs)
                except (KeyError, ProtocolError) as error:
                    raise self.died(worker, "nonsense", what, timeout_s) from error

    def call(
        self,
        arrays: list[Array],
        offsets: list[int],
        sizes: list[int],
        read: Callable[[memoryview, SharedRegion], Any],
        what: str,
        *,
        shared: bool = True,
    ) -> tuple[Any, bool]:
        """Call the parser that was prepared last.

        Args:
            arrays: copied to `offsets` of the input region.
            offsets: as it was prepared.
            sizes: bytes of the arrays, as it was prepared.
            read: makes the result of numbers and arrays in the output region.
            what: library and function of the user, for errors.
            shared: arrays of `arena` are not copied.

        Returns:
            The result, and whether the parser wrote into arrays of `arena` (into a copy of them).

        Raises:
            LibraryDiedError: as `invoke`.
            HeadraceError: as `invoke`.
        """
        worker = self._worker
        if worker is None:
            raise _closed_error(what)
        _require_free(worker, what)
        layout = offsets, sizes
        with worker.channel:
            self._post_call(worker, arrays, layout, what, shared)
            refused = shared and worker.words[ipc.WROTE] == ipc.NOT_SHARED
            if refused:  # before the parser was called
                self._post_call(worker, arrays, layout, what, False)
            try:
                parsed = read(worker.words[ipc.VALUES :], worker.outputs)
            except ProtocolError as error:
                raise self.died(worker, "nonsense", what, self.options.timeout_s) from error
            return parsed, refused or bool(worker.words[ipc.WROTE])

    def _post_call(
        self, worker: WorkerHandle, arrays: Arrays, layout: Places, what: str, shared: bool
    ) -> None:
        worker.words[ipc.OP] = ipc.CALL
        to = [worker.inputs.address + offset for offset in layout[0]]
        slots = self.arena.slots if shared else None
        self._exchange(worker, arrays, (to, layout[1]), self.options.timeout_s, what, slots)

    def started(self, what: str) -> WorkerHandle:
        """Return the worker; start one if there is none.

        Raises:
            LibraryDiedError: it died too often, or dies while it is set up.
        """
        if self._worker is not None and self._worker.owner != os.getpid():
            self._worker.close()  # this process was forked: that worker is its parent's
            self._worker = None
            self._setting_up = False
        if self._worker is not None:
            return self._worker
        if self._recent > self.options.restarts:
            last = f"; the last time it {self._last.found}" if self._last else ""
            raise LibraryDiedError(
                f"the library is not called any more: its worker died {self._times} times{last}",
                where=what,
                fix=_RESTART_HINT,
            )
        if (delay := self._not_before - monotonic()) > 0:
            sleep(delay)
        self._worker = self._holder.worker = WorkerHandle(
            self.options, self._python, self.arena.fd, self._gpu
        )
        self.generation += 1
        if self.generation == 1:
            self.notices = self._first_notices()
        if self._setup is not None and not self._setting_up:
            self._setting_up = True
            try:
                self._setup()
            except LibraryDiedError:
                raise
            except BaseException:
                self.close()
                raise
            finally:
                self._setting_up = False
        assert self._worker is not None
        return self._worker

    def _first_notices(self) -> list[Finding]:
        """Ask the first worker which protections the kernel refused; the next ones are alike."""
        assert self._worker is not None
        told, _ = self.invoke(f"{SERVE}:tell_open", what=self.name, answer=StartedAnswer)
        unknown = [name for name, _ in told.left if name not in OPEN]
        if unknown:
            raise self.died(self._worker, "nonsense", self.name, 0)
        return [*open_notice(told.left), *held_notice(self._worker.held, self.name)]

    def grow_inputs(self, size: int, what: str) -> SharedRegion:
        """Make the input region at least `size` bytes.

        Raises:
            LibraryDiedError: the worker was closed.
        """
        if self._worker is None:
            raise _closed_error(what)
        self._worker.inputs.ensure(size)
        return self._worker.inputs

    def _exchange(
        self,
        worker: WorkerHandle,
        arrays: Arrays,
        to: Places,
        timeout_s: float,
        what: str,
        slots: object = None,
    ) -> Message:
        """Post a request, wait, and read the JSON that comes beside the result."""
        worker.words[ipc.INPUT_SIZE] = worker.inputs.size
        try:
            ending = worker.channel.ask(arrays, *to, timeout_s, worker.pid, worker.pidfd, slots)
        except BaseException:  # Ctrl-C: its answer would be taken for that of the next request
            self.close()
            raise
        if ending != "answered":
            raise self.died(worker, ending, what, timeout_s)
        words = worker.words
        try:
            worker.outputs.follow(words[ipc.OUTPUT_SIZE])
            side = _read_side(words, worker.outputs)
            error = error_from(side.get("error")) if words[ipc.STATUS] else None
            if self._on_news is not None and side:
                self._on_news(side)
        except (ProtocolError, OverflowError, RecursionError, OSError) as nonsense:
            raise self.died(worker, "nonsense", what, timeout_s) from nonsense
        self._calls += 1
        self._clean += 1
        if self._clean >= FORGIVEN_AFTER:
            self._recent = 0
        if error is not None:
            raise error
        return side

    @property
    def _times(self) -> int:
        """How often its workers died; those of the models that this one replaces count too."""
        return _deaths[self.name] - self._earlier

    def restarts_notice(self) -> Finding | None:
        """How often its workers died, from the second time on: errors name a cause once."""
        times = self._times
        if times < 2 or self._last is None:
            return None
        text = f"its worker process died {times} times; the last time it {self._last.found}"
        return Finding("worker-died", "warning", text, self.name, {"deaths": times})

    def nonsense(self, what: str) -> LibraryDiedError:
        """End the worker after an answer that no sound worker gives, and make the error."""
        if self._worker is None:
            return _closed_error(what)
        return self.died(self._worker, "nonsense", what, 0)

    def died(
        self, worker: WorkerHandle, ending: str, what: str, timeout_s: float
    ) -> LibraryDiedError:
        """End a worker that cannot go on, and make the error for its call."""
        if worker is not self._worker or worker.channel.closed:
            return _closed_error(what)
        self._worker = self._holder.worker = None
        kind: Ending = "late" if ending == "late" else "died" if ending == "died" else "nonsense"
        report, code = worker.end(kind)
        event, trace = describe(report, code, kind, timeout_s)
        if report is None and code is not None and code > 0 and (tool := sanitizer_of(self.name)):
            event += f", as {tool} does: its report is above"
        self.deaths += 1
        _deaths[self.name] += 1
        self._recent += 1
        self._clean = 0
        if self._recent > 1:
            self._not_before = monotonic() + _BACKOFF.delay_s(self._recent - 2)
        self._last = Death(event, trace, report, code, late=kind == "late")
        if self._on_death is not None:
            self._on_death()
        return self._death_error(what, self._last)

    def _death_error(self, what: str, death: Death) -> LibraryDiedError:
        limit = self.options.restarts
        fix, after = list(death.trace), ""
        if not self.options.once:
            after = "; its worker process is started again"
            if self._recent > limit:
                after = f"; it is not started again after {limit + 1} faults"
                fix.append(_RESTART_HINT)
        data = {"end": death.found}
        text = f"{death.who} {{end}}{after}"
        return LibraryDiedError(text, where=what, fix=fix, data=data, death=death)


def _closed_error(what: str) -> LibraryDiedError:
    """Make the error for a call during which `close` was called, as signal handlers may."""
    return LibraryDiedError("the function's worker was closed during the call", where=what)


class _Holder:
    """Names the worker that ends when its `GuardedProcess` is collected."""

    worker: WorkerHandle | None = None


def _end(holder: _Holder) -> None:
    worker, holder.worker = holder.worker, None
    if worker is not None and worker.owner == os.getpid():
        worker.close()
        worker.keeper.reap_later(worker.pid)


def _read_side(words: memoryview, outputs: SharedRegion) -> Message:
    size = words[ipc.SIDE_BYTES]
    if not size:
        return {}
    if size > _SIDE_LIMIT:
        raise ProtocolError(f"a message of {size} bytes")
    try:
        data = outputs.take(words[ipc.SIDE_START], size)
        side = json.loads(data)
        if b"\\ud" in data:  # halves of letters: only those that stand for bytes are texts
            json.dumps(side, ensure_ascii=False).encode(errors="surrogateescape")
    except ValueError as error:
        raise ProtocolError(f"a message that cannot be read: {error}") from error
    if not isinstance(side, dict):
        raise ProtocolError("a message that is no object")
    return side

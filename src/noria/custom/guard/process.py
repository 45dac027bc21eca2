"""A worker process that runs somebody's code: started, asked, ended, started again."""

from __future__ import annotations

import json
import os
import select
import socket
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import numpy.typing as npt

from noria import _native
from noria._core.errors import ParserError
from noria.custom.guard import wire
from noria.custom.guard.arena import OutputArena
from noria.custom.guard.crash import Ending, Report, describe, read_report
from noria.custom.guard.errors import Death, LibraryDied
from noria.custom.guard.keeper import end_process, keeper
from noria.custom.guard.keeper_main import HANG_SIGNAL
from noria.custom.guard.messages import arrays_in, error_from, put_arrays
from noria.custom.guard.options import GuardOptions
from noria.custom.guard.sanitizers import sanitizer_of
from noria.custom.guard.wire import Nonsense, Region, Writer, control_words, new_memory

FORGIVEN_AFTER = 100
"""Calls without a fault after which earlier faults are no longer counted."""

_MORE = "mend the library, or raise custom-lib-guard-restarts"
_HANG_REPORT_S = 1.0
_SIDE_LIMIT = 1 << 23  # more than a second of reading JSON

Arrays = list[npt.NDArray[Any]]
Places = tuple[list[int], list[int]]  # where arrays are copied to, and their bytes


class _Running:
    """One worker: its memory, the link to it, its process."""

    def __init__(self, options: GuardOptions, python: bool, results: int) -> None:
        self.fds: dict[str, int] = {}
        self.owner = os.getpid()
        self.channel: Any = None
        try:
            for name, size in (
                ("page", wire.CONTROL_BYTES),
                ("inputs", wire.INPUT_BYTES),
                ("outputs", wire.INPUT_BYTES),
            ):
                self.fds[name] = new_memory(name, size)
            self.fds["report"] = os.memfd_create("noria-report", os.MFD_CLOEXEC)
            # Not eventfds: to write into one waits where the worker has filled it. Its own end
            # stays open here, so that closing it there is no event.
            for name, end in zip(("mine", "theirs"), socket.socketpair(), strict=True):
                self.fds[name] = end.detach()
            self.inputs, self.outputs = Region(self.fds["inputs"]), Region(self.fds["outputs"])
            self.words = control_words(self.fds["page"])
            before, after = ("page", "inputs", "outputs"), ("theirs", "report")
            given = [*(self.fds[n] for n in before), results, *(self.fds[n] for n in after)]
            self.keeper = keeper()
            with _standard_streams() as streams:
                self.pid, self.pidfd = self.keeper.start(
                    [*given, *streams],
                    python=python,
                    memory_bytes=options.memory_mib << 20,
                )
            self.fds["process"] = self.pidfd
            self.channel = _native.GuardChannel(self.fds["page"], self.fds["mine"])
        except BaseException:
            self.close()
            raise

    def report(self) -> Report | None:
        data = b""
        with suppress(OSError):
            while part := os.pread(self.fds["report"], 1 << 20, len(data)):
                data += part
                if len(data) > 1 << 24:
                    break
        return read_report(data)

    def end(self, ending: Ending) -> tuple[Report | None, int | None]:
        """Make sure that it is over; how it was."""
        if ending == "late":
            _native.guard_signal_main_thread(self.pid, HANG_SIGNAL)
            until = monotonic() + _HANG_REPORT_S
            while monotonic() < until and not self._reported():
                if select.select([self.pidfd], [], [], 0.01)[0]:
                    break
        end_process(self.pidfd)
        report, code = self.report(), self.keeper.reap(self.pid)
        self.close()
        return report or None, code

    def stop(self) -> None:
        """End it, whatever it does."""
        if self.owner == os.getpid():
            self.end("died")
        else:
            self.close()

    def _reported(self) -> bool:
        size = os.fstat(self.fds["report"]).st_size
        return size >= 4 and os.pread(self.fds["report"], 4, size - 4) == b"end\n"

    def close(self) -> None:
        if self.channel is not None:
            self.channel.closed = True
        if "process" in self.fds and self.owner == os.getpid():  # not in a forked child
            end_process(self.fds["process"])
        for fd in self.fds.values():
            with suppress(OSError):
                os.close(fd)
        self.fds = {}


class _standard_streams:
    """Descriptors that the worker prints to: the application's, or nothing."""

    def __enter__(self) -> list[int]:
        self._opened: list[int] = []
        found = []
        for fd in (1, 2):
            try:
                os.fstat(fd)
            except OSError:
                fd = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                self._opened.append(fd)
            found.append(fd)
        return found

    def __exit__(self, *_: object) -> None:
        for fd in self._opened:
            os.close(fd)


def _require_free(running: _Running, what: str) -> None:
    """Refuse to ask a worker while it is asked, until its answer was read: the answers would be
    taken for one another.

    Raises:
        ParserError: it is asked already, by this thread.
    """
    if running.channel.busy:
        raise ParserError(
            "its worker was called again from inside a call to it (same thread)",
            where=what,
            fix="a signal handler or a finaliser does so: it can set a flag instead",
        )


class GuardedProcess:
    """Runs functions in a worker process; a base for whatever calls a user's code.

    One call at a time. When the worker dies the call raises, and the next one starts it again,
    after `setup` was done anew.

    Args:
        name: of the library, for messages.
        python: whether Python's own crash handler shall tell Python's frames.
        setup: what a new worker is asked first; calls `invoke`.
        on_news: told what workers say beside results: decisions and notices, as JSON.

    Attributes:
        deaths: so far, altogether.
        lock: held by whoever asks the worker.
        unprotected: what could not be taken from the worker, in words.
        arena: memory for the arrays of `call` that the worker reads where they are.
    """

    def __init__(
        self,
        name: str,
        options: GuardOptions,
        *,
        python: bool = False,
        setup: Callable[[], None] | None = None,
        on_news: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.name = name
        self.options = options
        self.deaths = 0
        self._calls = 0
        self.unprotected: list[str] = []
        self.generation = 0
        self.lock = _native.CallLock()
        self.arena = OutputArena()
        self._python = python
        self._setup = setup
        self._on_news = on_news
        self._running: _Running | None = None
        self._recent = 0  # deaths that are not forgiven
        self._clean = 0  # calls since the last one
        self._not_before = 0.0
        self._setting_up = False
        self._last: Death | None = None
        self._holder = _Holder()
        weakref.finalize(self, _end, self._holder)

    @property
    def calls(self) -> int:
        """Answered so far, errors of the library included."""
        with self.lock:
            return self._calls

    @property
    def pid(self) -> int | None:
        """The worker's process id while there is one."""
        return None if self._running is None else self._running.pid

    def close(self) -> None:
        """End the worker; the next call starts another."""
        with self.lock:
            running, self._running = self._running, None
            self._holder.running = None
            if running is not None:
                running.stop()

    def invoke(
        self,
        function: str,
        payload: dict[str, Any] | None = None,
        arrays: Sequence[npt.NDArray[Any]] = (),
        *,
        what: str,
        timeout_s: float | None = None,
    ) -> tuple[dict[str, Any], Arrays]:
        """Call a function in the worker.

        Args:
            function: `module:name` of a `noria.custom.guard.serve.Operation`.
            payload: given to it; JSON types.
            arrays: given to it, copied into shared memory.
            what: library and function of the user, as errors shall name them.
            timeout_s: None is `load_timeout_s`.

        Returns:
            What it returned; the arrays are valid until the next call.

        Raises:
            LibraryDied: the worker died, or did not return in time, or is given up.
            NoriaError: what the function raised.
        """
        with self.lock:
            running = self.running(what)
            timeout_s = self.options.load_timeout_s if timeout_s is None else timeout_s
            _require_free(running, what)
            with running.channel:
                self._put_message(running, function, payload or {}, list(arrays), what)
                side = self._exchange(running, [], ([], []), timeout_s, what)
                try:
                    return dict(side["payload"]), arrays_in(side["arrays"], running.outputs)
                except (KeyError, TypeError, ValueError, Nonsense) as error:
                    raise self.died(running, "nonsense", what, timeout_s) from error

    def call(
        self,
        arrays: list[npt.NDArray[Any]],
        offsets: list[int],
        sizes: list[int],
        read: Callable[[memoryview, Region, int], Any],
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
            what: library and function of the user, as errors shall name them.
            shared: arrays of `arena` are not copied.

        Returns:
            The result, and whether the parser wrote into arrays of `arena` (into a copy of them).

        Raises:
            LibraryDied: as `invoke`.
            NoriaError: as `invoke`.
        """
        running = self._running
        if running is None:
            raise self._closed(what)
        _require_free(running, what)
        places = offsets, sizes
        with running.channel:
            self._post_call(running, arrays, places, what, shared)
            refused = shared and running.words[wire.WROTE] == wire.NOT_SHARED
            if refused:  # before the parser was called
                self._post_call(running, arrays, places, what, False)
            try:
                found = read(running.words[wire.VALUES :], running.outputs, 0)
            except Nonsense as error:
                raise self.died(running, "nonsense", what, self.options.timeout_s) from error
            return found, refused or bool(running.words[wire.WROTE])

    def _post_call(
        self, running: _Running, arrays: Arrays, places: Places, what: str, shared: bool
    ) -> None:
        running.words[wire.OP] = wire.CALL
        to = [running.inputs.address + offset for offset in places[0]]
        slots = self.arena.slots if shared else None
        self._exchange(running, arrays, (to, places[1]), self.options.timeout_s, what, slots)

    def running(self, what: str) -> _Running:
        """The worker, started if there is none.

        Raises:
            LibraryDied: it died too often, or dies while it is set up.
        """
        if self._running is not None and self._running.owner != os.getpid():
            self._running.close()  # this process was forked: that worker is its parent's
            self._running = None
            self._setting_up = False
        if self._running is not None:
            return self._running
        if self._recent > self.options.restarts:
            raise self._given_up(what)
        if (delay := self._not_before - monotonic()) > 0:
            sleep(delay)
        self._running = self._holder.running = _Running(self.options, self._python, self.arena.fd)
        self.generation += 1
        if self._setup is not None and not self._setting_up:
            self._setting_up = True
            try:
                self._setup()
            except LibraryDied:
                raise
            except BaseException:
                self.close()
                raise
            finally:
                self._setting_up = False
        assert self._running is not None
        return self._running

    def grow_inputs(self, size: int, what: str) -> Region:
        """The input region with at least `size` bytes.

        Raises:
            LibraryDied: the worker was closed.
        """
        if self._running is None:
            raise self._closed(what)
        self._running.inputs.ensure(size)
        return self._running.inputs

    def _put_message(
        self, running: _Running, function: str, payload: dict[str, Any], arrays: Arrays, what: str
    ) -> None:
        message: dict[str, Any] = {"do": function, "payload": payload, "what": what}
        room = 4096 + len(json.dumps(message)) + 128 * len(arrays)
        message["arrays"] = payload.pop("_arrays", None) or put_arrays(
            arrays, Writer(running.inputs, start=room)
        )
        data = json.dumps(message).encode()
        running.inputs.ensure(len(data))
        running.inputs.put(0, data)
        running.words[wire.OP] = wire.MESSAGE
        running.words[wire.MESSAGE_BYTES] = len(data)

    def _exchange(
        self,
        running: _Running,
        arrays: Arrays,
        to: Places,
        timeout_s: float,
        what: str,
        slots: Any = None,
    ) -> dict[str, Any]:
        """Post, wait, and read what is said beside the result."""
        running.words[wire.INPUT_SIZE] = running.inputs.size
        try:
            ending = running.channel.ask(arrays, *to, timeout_s, running.pid, running.pidfd, slots)
        except BaseException:  # Ctrl-C: its answer would be taken for that of the next request
            self.close()
            raise
        if ending != "answered":
            raise self.died(running, ending, what, timeout_s)
        words = running.words
        try:
            running.outputs.follow(words[wire.OUTPUT_SIZE])
            side = _side(words, running.outputs)
            error = error_from(side.get("error")) if words[wire.STATUS] else None
            if self._on_news is not None and side:
                self._on_news(side)
        except (Nonsense, OverflowError, RecursionError, OSError) as nonsense:
            raise self.died(running, "nonsense", what, timeout_s) from nonsense
        self._calls += 1
        self._clean += 1
        if self._clean >= FORGIVEN_AFTER:
            self._recent = 0
        if error is not None:
            raise error
        return side

    def died(self, running: _Running, ending: str, what: str, timeout_s: float) -> LibraryDied:
        """The error for a worker that is over or will be at once; it is gone afterwards."""
        if running is not self._running or running.channel.closed:
            return self._closed(what)
        self._running = self._holder.running = None
        kind: Ending = "late" if ending == "late" else "died" if ending == "died" else "nonsense"
        report, code = running.end(kind)
        found, trace = describe(report, code, kind, timeout_s)
        if report is None and code is not None and code > 0 and (tool := sanitizer_of(self.name)):
            found += f", as {tool} does: its report is above"
        self.deaths += 1
        self._recent += 1
        self._clean = 0
        pause = 0.0 if self._recent < 2 else min(0.1 * 2 ** (self._recent - 2), 5.0)
        self._not_before = monotonic() + pause
        self._last = Death(found, trace, report, code, late=kind == "late")
        return self._error(what, self._last)

    def _closed(self, what: str) -> LibraryDied:
        """The error for a call during which `close` was called: by a signal handler, say."""
        return LibraryDied("the function's worker was closed during the call", where=what)

    def _error(self, what: str, death: Death) -> LibraryDied:
        limit = self.options.restarts
        left = limit - self._recent
        fix = list(death.trace)
        if self.options.once:
            after = ""
        elif left < 0:
            after = f"; it is not started again after {limit + 1} faults"
            fix.append(_MORE)
        else:
            after = "; its worker process is started again"
        error = LibraryDied(f"the function {death.found}{after}", where=what, fix=fix)
        error.death = death
        return error

    def _given_up(self, what: str) -> LibraryDied:
        last = f"; the last time it {self._last.found}" if self._last else ""
        return LibraryDied(
            f"the library is not called any more: its worker died {self._recent} times{last}",
            where=what,
            fix=_MORE,
        )


class _Holder:
    """What is left to end when a `GuardedProcess` is collected."""

    running: _Running | None = None


def _end(holder: _Holder) -> None:
    running, holder.running = holder.running, None
    if running is not None and running.owner == os.getpid():
        running.close()
        running.keeper.reap_later(running.pid)


def _side(words: memoryview, outputs: Region) -> dict[str, Any]:
    size = words[wire.SIDE_BYTES]
    if not size:
        return {}
    if size > _SIDE_LIMIT:
        raise Nonsense(f"a message of {size} bytes")
    try:
        side = json.loads(outputs.take(words[wire.SIDE_START], size))
    except ValueError as error:
        raise Nonsense(f"a message that cannot be read: {error}") from error
    if not isinstance(side, dict):
        raise Nonsense("a message that is none")
    return side

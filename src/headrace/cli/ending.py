"""The end of a command on a signal, within seconds, also in calls that do not return."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.machinery import ExtensionFileLoader
from time import monotonic, sleep
from types import FrameType
from typing import ClassVar

from headrace._core.threads import Countdown, say_failure, start_thread
from headrace.cli.output import echo

STOP_S = 2.5  # how long the first signal waits for threads that are in calls
_LEAVE_S = 1.0  # the same for the second one
SERVICE_STOP_S = 15.0  # the same of a service, whose models are not waited for
_MORE_S = 2.0  # from there to the end, unless files are being finished
_LOOK_S = 0.05
_LOADING = frozenset(
    (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_USUAL = (signal.default_int_handler, signal.SIG_DFL)  # what a process starts with


class _State:
    """The end of this process, as far as it is asked for."""

    asked: ClassVar[bool] = False  # a signal came that ends it
    finishing: ClassVar[Callable[[], bool]] = staticmethod(lambda: False)  # its files are
    stop_s: ClassVar[float] = STOP_S  # how long the stop waits
    watch: ClassVar[list[tuple[threading.Thread, int]]] = []  # its thread, and what wakes it


@contextmanager
def signals_watched() -> Iterator[None]:
    """End the process some seconds after a signal, though its main thread does not come to it.

    Python's handlers run in the main thread, between two of its steps: a call into a library that
    loads a model or opens a source puts them off. SIGTERM and hang-ups are heard as Ctrl-C is, so
    that locks, temporary folders and workers go with the process; those that are ignored stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {n: h for n in _SIGNALS if (h := signal.getsignal(n)) in _USUAL}
    for number in usual:
        signal.signal(number, _interrupt)
    before = _begin_watch()
    try:
        yield
    except SystemExit as end:
        _leave_if_asked(end.code)
        raise
    finally:
        for number, handler in usual.items():
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, handler)
        _end_watch(before)


@contextmanager
def without_watch() -> Iterator[bool]:
    """Have no thread that watches signals; yield True if this process may be forked then.

    False where another program called the command.
    """
    if not _State.watch or threading.current_thread() is not threading.main_thread():
        yield False
        return
    thread = _end_watch(-1)
    thread.join()
    try:
        yield True
    finally:
        _begin_watch()


def _begin_watch() -> int:
    """Start the thread that is woken by signals; return the descriptor that was woken before."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    name = "headrace-signals"
    thread = start_thread(partial(_watch, reader), name=name, failed=partial(say_failure, name))
    _State.watch.append((thread, writer))
    return before


def _end_watch(before: int) -> threading.Thread:
    thread, writer = _State.watch.pop()
    signal.set_wakeup_fd(before)
    os.close(writer)
    return thread


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not within an extension module that is being imported.

    That of `onnx` makes types then, and an exception out of there ends the process with SIGABRT or
    SIGSEGV; it is raised as soon as the module is there.
    """
    if _in_extension(frame):
        Countdown(_LOOK_S, partial(interrupt_main, signal.Signals(number)), "headrace-leave")
    else:
        signal.default_int_handler(number, frame)


def _in_extension(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code in _LOADING and isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


def unwatch_signals() -> None:
    """Leave signals to code that handles them itself."""
    if threading.current_thread() is threading.main_thread():
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)


@contextmanager
def finish_on_signal(
    stop: Callable[[], None],
    say: Callable[[str], object],
    finishing: Callable[[], bool] = lambda: False,
    stop_s: float = STOP_S,
) -> Iterator[None]:
    """First Ctrl-C, SIGTERM or hang-up: finish the files properly. Second: leave at once.

    That is, whatever a library is busy with. A signal that is ignored (`nohup`, a background job)
    stays ignored.

    Args:
        stop: ends the work, in a signal handler.
        say: prints a line.
        finishing: True while files are finished, which has its time.
        stop_s: how long `stop` waits.
    """

    def finish(number: int, frame: object) -> None:
        for other in previous:
            signal.signal(other, leave)
        _State.asked = True
        stop()
        with suppress(OSError):  # after a hang-up there is nobody to tell
            again = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
            say(f"stopping: finishing the files ({again} again leaves at once)")

    def leave(number: int, frame: object) -> None:
        countdowns.append(Countdown(_LEAVE_S, _leave, "headrace-leave"))
        raise KeyboardInterrupt

    countdowns: list[Countdown] = []
    signals = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {n: signal.signal(n, finish) for n in signals}
    _State.finishing, _State.stop_s = finishing, stop_s
    try:
        yield
    finally:
        for countdown in countdowns:
            countdown.stop()
        for number, handler in previous.items():
            signal.signal(number, handler)
        _State.finishing, _State.stop_s = staticmethod(lambda: False), STOP_S


def _leave_if_asked(code: object) -> None:
    """End the process after a signal without waiting for threads that are in calls."""
    if _State.asked:
        leave_at_once(code)


def leave_at_once(code: object) -> None:
    """End the process without waiting for threads that are in calls."""
    status = code if isinstance(code, int) else int(code is not None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    _exit(status)


def _exit(status: int) -> None:
    Countdown(_LEAVE_S, partial(os._exit, status), "headrace-leave")
    with suppress(BaseException):
        atexit._run_exitfuncs()  # locks and temporary folders go
    os._exit(status)


def _watch(reader: int) -> None:
    with os.fdopen(reader, "rb", buffering=0) as pipe:  # open to the end, for further signals
        numbers = pipe.read(64)
        while numbers and not any(number in _SIGNALS for number in numbers):
            numbers = pipe.read(64)
        if not numbers:
            return  # the command is over
        _State.asked = True
        end = monotonic() + _State.stop_s + _MORE_S
        while monotonic() < end:
            sleep(_LOOK_S)
            if _State.finishing():
                end = max(end, monotonic() + _MORE_S)
        _leave()


def _leave() -> None:
    """End the process though a thread does not: it is in a call that cannot be interrupted."""
    from headrace.cli import EXIT_INTERRUPTED

    with suppress(OSError):
        echo("error: interrupted in a call that did not end; files may be left as *.part", err=True)
    _exit(EXIT_INTERRUPTED)

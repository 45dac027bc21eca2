"""Ctrl-C, and notices that can wait: runs in one process and in several share these."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click

from headrace._core.findings import Finding

_LEAVE_S = 1.0  # how long the second Ctrl-C waits for threads that are in calls


def is_routine(notice: Finding) -> bool:
    """Return whether a notice can wait until the results are printed.

    True for every choice that went as expected. What a bare model was taken for is none, but for
    the evidence: its user gave no config to look that up in.
    """
    of_model = (notice.where or "").lower().endswith(".onnx")
    return notice.level == "info" and not (of_model and notice.code != "recognised-from")


def say_aside(text: str) -> None:
    """Print a line on standard error."""
    click.echo(text, err=True)


@contextmanager
def finish_on_signal(
    stop: Callable[[], None], say: Callable[[str], object] = say_aside
) -> Iterator[None]:
    """First Ctrl-C, SIGTERM or hang-up: finish the files properly. Second: leave at once.

    That is, whatever a library is busy with.

    A signal that is ignored (`nohup`, a background job) stays ignored.
    """
    timer = threading.Timer(_LEAVE_S, _leave)
    timer.daemon = True

    def finish(number: int, frame: object) -> None:
        for other in previous:
            signal.signal(other, leave)
        stop()
        with suppress(OSError):  # after a hang-up there is nobody to tell
            say("stopping: finishing the files (Ctrl-C again leaves at once)")

    def leave(number: int, frame: object) -> None:
        if not timer.is_alive():
            timer.start()
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signals = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {n: signal.signal(n, finish) for n in signals}
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in previous.items():
            signal.signal(number, handler)


def _leave() -> None:
    """End the process though a thread does not: it is in a call that cannot be interrupted."""
    from headrace.cli import EXIT_INTERRUPTED

    with suppress(OSError):
        click.echo(
            "error: interrupted in a call that did not end; files may be left as *.part", err=True
        )
    os._exit(EXIT_INTERRUPTED)

"""Background threads: none of them ends in silence, and none prints a traceback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from headrace._core.errors import HeadraceError
from headrace._core.text import error_text, printable, shortened

_SHOWN = 300
_unbound = threading.Event()


def forbid_binding() -> None:
    """Take note that threads of this process, a guarded worker, may not be bound to cores."""
    _unbound.set()


def may_bind() -> bool:
    """Whether threads may be bound to cores; libraries print an error where they may not."""
    return not _unbound.is_set()


def start_thread(
    work: Callable[[], object],
    *,
    name: str,
    failed: Callable[[Exception], object],
) -> threading.Thread:
    """Start a thread that the end of the program does not wait for.

    Args:
        work: all that it does.
        name: of the thread; begins with `headrace-`.
        failed: called there with what `work` raised, see `as_exception`; makes a state of it that
            somebody reads: an error of the run, a notice, a failed result.

    Raises:
        HeadraceError: the system gives no further thread.
    """
    thread = threading.Thread(target=_guarded, args=(work, name, failed), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise HeadraceError(
            f"the thread {name} cannot be started: {error}",
            fix="fewer sources, streams or --threads need fewer; ulimit -u is the limit of a user",
        ) from error
    return thread


def _guarded(work: Callable[[], object], name: str, failed: Callable[[Exception], object]) -> None:
    try:
        work()
    except BaseException as error:  # nobody else hears of it
        try:
            failed(as_exception(error))
        except BaseException as second:
            say_failure(name, error, second)


def as_exception(error: BaseException) -> Exception:
    """Return the error of a thread; SystemExit and its like are wrapped, as they end it alone."""
    if isinstance(error, Exception):
        return error
    wrapped = HeadraceError(f"code that runs in a thread raised {error_text(error)}")
    wrapped.__cause__ = error
    return wrapped


def say_failure(name: str, *errors: BaseException) -> None:
    """Print one line about a failed thread, for failures that no result can carry."""
    texts = "; then ".join(shortened(error_text(error), _SHOWN) for error in errors)
    with suppress(Exception):  # there may be no standard error
        print(printable(f"error: {name} ended: {texts}"), file=sys.stderr)


def run_together(work: Callable[[int], object], barrier: threading.Barrier, *, name: str) -> None:
    """Call `work(0)` here and `work(1)` and further ones in threads, one per party of `barrier`.

    Args:
        work: waits at the barrier with the others.
        barrier: aborted when one of them fails, so that nobody waits for it.
        name: of the threads; begins with `headrace-`.

    Raises:
        Exception: the first that one of them raised; all have ended.
    """
    errors: list[BaseException] = []

    def give_up(error: BaseException) -> None:
        errors.append(error)
        barrier.abort()

    threads: list[threading.Thread] = []
    try:
        threads += (
            start_thread(partial(work, number), name=name, failed=give_up)
            for number in range(1, barrier.parties)
        )
        work(0)
    except BaseException as error:
        give_up(error)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Countdown:
    """Calls a function in a thread of its own when a time is over, unless it is stopped before.

    Args:
        seconds: from now.
        act: what is done then.
        name: of the thread.
    """

    def __init__(self, seconds: float, act: Callable[[], object], name: str) -> None:
        self._stopped = threading.Event()

        def wait() -> None:
            if not self._stopped.wait(seconds):
                act()

        start_thread(wait, name=name, failed=lambda error: say_failure(name, error))

    def stop(self) -> None:
        """Do not call it."""
        self._stopped.set()

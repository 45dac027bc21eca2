"""A thread that fails says so where somebody listens, elsewhere in one line; never a traceback."""

from __future__ import annotations

import threading

import pytest

from headrace._core.threads import Countdown, run_together, start_thread
from headrace.errors import HeadraceError


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), RecursionError()])
def test_what_a_thread_raises_is_handed_over(
    error: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise error

    heard: list[BaseException] = []
    start_thread(work, name="headrace-test", failed=heard.append).join()
    (told,) = heard
    assert error in (told, told.__cause__)
    assert isinstance(told, Exception)
    assert capfd.readouterr().err == ""


def test_who_cannot_take_it_is_not_silent_either(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise ValueError("first\nline")

    def failed(error: BaseException) -> None:
        raise KeyError("second")

    start_thread(work, name="headrace-test", failed=failed).join()
    assert capfd.readouterr().err.splitlines() == [
        "error: headrace-test ended: ValueError: first\\nline; then KeyError: 'second'"
    ]


def test_a_system_without_threads_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(HeadraceError, match="headrace-test cannot be started"):
        start_thread(print, name="headrace-test", failed=print)


def test_a_countdown_acts_unless_it_is_stopped() -> None:
    over, never = threading.Event(), threading.Event()
    stopped = Countdown(60, never.set, "headrace-test")
    Countdown(0.01, over.set, "headrace-test")
    stopped.stop()
    assert over.wait(10)
    assert not never.is_set()


@pytest.mark.parametrize("culprit", range(3))
def test_the_first_error_of_threads_that_wait_for_each_other_is_raised(culprit: int) -> None:
    barrier, ended = threading.Barrier(3), list[int]()

    def work(number: int) -> None:
        try:
            if number == culprit:
                raise ValueError("the cause")
            barrier.wait(10)
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="the cause"):
        run_together(work, barrier, name="headrace-test")
    assert sorted(ended) == [0, 1, 2]

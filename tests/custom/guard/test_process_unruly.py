"""Libraries that take signals, processes, threads and sockets for themselves."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.errors import ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
NETWORK, PARAMS = NetworkInfo(32, 32, 3), DetectionParams(1, np.zeros(1, np.float32))
SIZE = 20_000
PLAIN, LATE_WRITE, WITHOUT_SIGNALS, FORKED, SIGNALLING, FULL, SHUT, ENDLESS = range(8)
TIMEOUT_S = 1.0

Ask = Callable[..., float]


@pytest.fixture
def library(compile_parser: Compile, tmp_path: Path) -> Iterator[GuardedLibrary]:
    path = compile_parser("unruly.cpp", "-pthread")
    options = GuardOptions(crash_dir=tmp_path / "crashes", timeout_s=TIMEOUT_S)
    opened = open_library(path, guard="always", guard_options=options)
    assert isinstance(opened, GuardedLibrary)
    yield opened
    opened.close()


@pytest.fixture
def ask(library: GuardedLibrary) -> Ask:
    """The sum of one memory that is shared, after what the parser did on the way."""
    parse = library.bbox_parser("ParseUnruly")
    array = library.output_memory.take(np.float32, (SIZE,))
    assert array is not None

    def asked(what: int, argument: int = 0, value: int = 1) -> float:
        array.fill(value)
        array[:2] = what, argument
        return float(parse({"a": Layer("a", array)}, NETWORK, PARAMS).boxes[0, 0])

    return asked


def test_a_thread_that_writes_after_its_call_changes_no_later_one(ask: Ask) -> None:
    for value in (1, 2):
        assert ask(PLAIN, value=value) == value * (SIZE - 2)
    ask(LATE_WRITE)
    time.sleep(0.1)
    for value in (3, 4, 5):
        assert ask(PLAIN, value=value) == value * (SIZE - 2)


def test_one_that_blocks_signals_gets_copies_after_the_first_fault(ask: Ask) -> None:
    with pytest.raises(LibraryDiedError, match="SIGSEGV"):
        ask(WITHOUT_SIGNALS)
    for value in (1, 2, 3):
        assert ask(WITHOUT_SIGNALS, value=value) == value * (SIZE - 2)


def test_a_forked_copy_does_not_answer(ask: Ask, library: GuardedLibrary) -> None:
    pid = library.process.pid
    for value in range(1, 31):
        assert ask(FORKED, value=value) == value * (SIZE - 2)
        assert ask(PLAIN, value=value + 1) == (value + 1) * (SIZE - 2)
    time.sleep(0.05)
    children = Path(f"/proc/{pid}/task/{pid}/children")
    alive = [
        child
        for child in children.read_text().split()
        if ") Z" not in Path(f"/proc/{child}/stat").read_text()
    ] if children.exists() else []  # fmt: skip
    assert not alive


def test_it_cannot_signal_the_application(ask: Ask) -> None:
    got = []
    before = signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
    try:
        ask(SIGNALLING, argument=os.getpid())
        ask(SIGNALLING, argument=os.getpid(), value=2)
        time.sleep(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not got


@pytest.mark.parametrize("what", [FULL, SHUT])
@pytest.mark.slow
def test_the_application_waits_for_nothing_but_its_limit(ask: Ask, what: int) -> None:
    ask(PLAIN)
    started = time.monotonic()
    with pytest.raises(LibraryDiedError):
        ask(what)
    assert time.monotonic() - started < TIMEOUT_S + 5
    assert ask(PLAIN) == SIZE - 2


@pytest.mark.slow
def test_signals_of_the_application_do_not_prolong_the_limit(ask: Ask) -> None:
    ticks = []
    before = signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
    started = time.monotonic()
    try:
        with pytest.raises(LibraryDiedError, match="did not return within 1 s"):
            ask(ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < TIMEOUT_S + 5
    assert ticks


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["always", "never"])
@pytest.mark.sampled
def test_a_call_out_of_a_call_is_refused(
    compile_parser: Compile, tmp_path: Path, guard: Any
) -> None:
    """By a handler of a signal, which Python runs while it waits or right after the call."""
    options = GuardOptions(crash_dir=tmp_path)
    library = open_library(compile_parser("slow.cpp"), guard=guard, guard_options=options)
    parse = library.bbox_parser("ParseSlowly")
    layers = {"a": Layer("a", np.full(4, 7, np.float32))}
    others = {"a": Layer("a", np.full(4, 8, np.float32))}
    told: list[str] = []

    def again(*_: object) -> None:
        try:
            told.append(str(parse(others, NETWORK, PARAMS).boxes[0, 0]))
        except ParserError as error:
            told.append(error.finding.sentence)

    before = signal.signal(signal.SIGALRM, again)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert parse(layers, NETWORK, PARAMS).boxes[0, 0] == 7
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    refused = "the parser was called again from inside its own call (same thread)"
    assert told in ([refused], ["8.0"])
    assert parse(others, NETWORK, PARAMS).boxes[0, 0] == 8
    if isinstance(library, GuardedLibrary):
        library.close()


def test_a_library_closed_during_a_call_says_so(library: GuardedLibrary, ask: Ask) -> None:
    ask(PLAIN)
    before = signal.signal(signal.SIGALRM, lambda *_: library.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(LibraryDiedError, match="was closed during the call"):
            ask(ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ask(PLAIN) == SIZE - 2

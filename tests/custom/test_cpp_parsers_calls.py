"""Calls of detector parsers, here and in a worker: results, errors, threads, the lock."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core import _native
from headrace.custom import open_library
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.validate import CheckedParser, CustomLibrary
from headrace.errors import HeadraceError
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo, Space
from tests.custom.conftest import Compile
from tests.together import together

NETWORK = NetworkInfo(32, 32, 3)
PARAMS = DetectionParams(2, np.array([0.1, 0.2], np.float32))
RETURNED, FALSE, THROWN, NAN, WILD_CLASS = range(5)


@pytest.fixture(scope="module")
def guarded(
    compile_parser: Compile, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedLibrary]:
    if why := keeper.can_guard():
        pytest.skip(f"no workers here: {why}")
    options = GuardOptions(crash_dir=tmp_path_factory.mktemp("crashes"))
    opened = open_library(compile_parser("commands.cpp"), guard="always", guard_options=options)
    assert isinstance(opened, GuardedLibrary)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["never", "always"])
def library(compile_parser: Compile, request: Any) -> CustomLibrary:
    if request.param == "always":
        found: CustomLibrary = request.getfixturevalue("guarded")
        return found
    return open_library(compile_parser("commands.cpp"), guard="never")


@pytest.fixture
def parse(library: CustomLibrary) -> CheckedParser:
    """One that has been called."""
    parser = library.bbox_parser("ParseCommand")
    parser(tensor(RETURNED, 2, 7), NETWORK, PARAMS)
    return parser


def tensor(kind: int, count: int, value: float) -> dict[str, Layer]:
    values = np.zeros((1, 64), np.float32)
    values[0, :3] = kind, count, value
    return {"a": Layer("a", values)}


def outcome(parse: CheckedParser, *given: Any) -> Any:
    try:
        found = parse(*given)
    except HeadraceError as error:
        return type(error), error.finding.sentence
    return found.boxes.tolist(), found.scores.tolist(), found.class_ids.tolist()


def test_any_number_of_boxes_comes_back(parse: CheckedParser) -> None:
    for count in (0, 1, 5):
        found = parse(tensor(RETURNED, count, 8), NETWORK, PARAMS)
        assert found.boxes[:, 0].tolist() == [8 + i for i in range(count)]


def test_the_result_is_as_any_other(parse: CheckedParser) -> None:
    found = parse(tensor(RETURNED, 3, 8), NETWORK, PARAMS)
    assert type(found) is Detections
    assert found.space is Space.NETWORK
    assert found.masks is None
    assert found.angles is None
    assert (found.boxes.shape, found.boxes.dtype) == ((3, 4), np.float32)
    assert (found.scores.shape, found.scores.dtype) == ((3,), np.float32)
    assert (found.class_ids.shape, found.class_ids.dtype) == ((3,), np.int32)
    assert all(a.flags.carray for a in (found.boxes, found.scores, found.class_ids))
    again = found.select(np.array([2, 0]))
    del found
    gc.collect()
    assert again.boxes[:, 0].tolist() == [10, 8]
    again.boxes = np.zeros((2, 4), np.float32)  # it has the slots of the class
    assert repr(again).startswith("Detections(2 boxes in network space")


@pytest.mark.parametrize("kind", [FALSE, THROWN, NAN, WILD_CLASS])
def test_a_later_call_fails_as_a_first_one_does(
    library: CustomLibrary, parse: CheckedParser, kind: int
) -> None:
    first = library.bbox_parser("ParseCommand")
    wanted = outcome(first, tensor(kind, 3, 8), NETWORK, PARAMS)
    for _ in range(3):
        parse(tensor(RETURNED, 1, 9), NETWORK, PARAMS)
        assert outcome(parse, tensor(kind, 3, 8), NETWORK, PARAMS) == wanted
        # nothing that the failed call left answers a later one
        assert parse(tensor(RETURNED, 1, 6), NETWORK, PARAMS).boxes[0, 0] == 6


def test_thresholds_sizes_and_names_may_change_between_calls(parse: CheckedParser) -> None:
    layers = tensor(RETURNED, 2, 8)
    same = DetectionParams(2, np.array([0.5, 0.6], np.float32))
    assert parse(layers, NETWORK, same).scores.tolist() == pytest.approx([0.5, 0.6])
    assert parse(layers, NetworkInfo(64, 48, 3), same).boxes[:, 1].tolist() == [48, 48]
    two = {"b": layers["a"], "c": layers["a"]}
    for _ in range(2):
        assert parse(two, NETWORK, same).boxes[:, 2].tolist() == [2, 2]


def test_arguments_may_be_named_and_must_be_all(parse: CheckedParser) -> None:
    layers = tensor(RETURNED, 1, 8)
    assert parse(layers=layers, network=NETWORK, params=PARAMS).boxes[0, 0] == 8
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        parse(layers, NETWORK)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional arguments but 5 were given"):
        parse(layers, NETWORK, PARAMS, 1)  # type: ignore[call-arg]


def test_threads_that_share_a_parser_get_their_own_boxes(parse: CheckedParser) -> None:
    def work(number: int) -> None:
        layers = tensor(RETURNED, number + 1, 100 * number)
        for _ in range(300):
            found = parse(layers, NETWORK, PARAMS)
            assert found.boxes[:, 0].tolist() == [100 * number + i for i in range(number + 1)]

    together(work, 4)


@pytest.mark.slow
def test_parsers_are_collected(library: CustomLibrary) -> None:
    layers = tensor(RETURNED, 1, 8)

    def cycle() -> None:
        parse = library.bbox_parser("ParseCommand")
        parse(layers, NETWORK, PARAMS)
        parse(layers, NETWORK, PARAMS)
        parse.notices.append(parse)  # type: ignore[arg-type]

    def alive() -> int:
        gc.collect()
        return sum(isinstance(o, CheckedParser) for o in gc.get_objects())

    before = alive()
    for _ in range(5):
        cycle()
    assert alive() == before


def test_guarded_calls_are_counted(guarded: GuardedLibrary) -> None:
    parse = guarded.bbox_parser("ParseCommand")
    before = guarded.process.calls
    for _ in range(7):
        parse(tensor(RETURNED, 1, 8), NETWORK, PARAMS)
    assert guarded.process.calls >= before + 7  # and preparing them
    before = guarded.process.calls
    for _ in range(7):
        parse(tensor(RETURNED, 1, 8), NETWORK, PARAMS)
    assert guarded.process.calls == before + 7


class _Closing:
    """A layer that closes the library when it is looked at."""

    def __init__(self, library: GuardedLibrary) -> None:
        self.library, self.closes = library, False
        self.values = np.zeros((1, 1 << 16), np.float32)
        self.values[0, :3] = RETURNED, 1, 8

    @property
    def data(self) -> np.ndarray[Any, Any]:
        if self.closes:
            self.library.close()
        return self.values


def test_a_worker_closed_while_layers_are_read_is_not_written_to(guarded: GuardedLibrary) -> None:
    parse, closing = guarded.bbox_parser("ParseCommand"), _Closing(guarded)
    layers: Any = {"a": closing}
    for closes in (False, False, True, False, False, True):
        closing.closes = closes
        if closes:
            with pytest.raises(HeadraceError, match="was closed during the call"):
                parse(layers, NETWORK, PARAMS)
        else:
            assert parse(layers, NETWORK, PARAMS).boxes[0, 0] == 8


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_a_library_is_trusted_after_exactly_as_many_calls(
    compile_parser: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    options = GuardOptions(clean_calls=20, crash_dir=tmp_path)
    library = open_library(compile_parser("commands.cpp"), guard="auto", guard_options=options)
    assert isinstance(library, GuardedLibrary)
    parsers = [library.bbox_parser("ParseCommand") for _ in range(2)]

    def trusted() -> bool:
        return any("from the next start on it is trusted" in n.sentence for n in library.decisions)

    for i in range(20):  # by turns of five: most calls are like the last one
        assert not trusted()
        parsers[i // 5 % 2](tensor(RETURNED, 1, 8), NETWORK, PARAMS)
    assert trusted()
    library.close()


class TestLock:
    def test_its_thread_may_enter_it_again(self) -> None:
        lock = _native.CallLock()
        with lock, lock:
            pass
        with pytest.raises(RuntimeError, match="has not entered"):
            lock.__exit__(None, None, None)

    def test_others_wait(self) -> None:
        lock, order = _native.CallLock(), []

        def other() -> None:
            with lock:
                order.append("other")

        with lock:
            thread = threading.Thread(target=other)
            thread.start()
            with lock:
                time.sleep(0.05)
            order.append("first")
        thread.join(10)
        assert order == ["first", "other"]

    def test_one_thing_at_a_time(self) -> None:
        lock, counts = _native.CallLock(), [0, 0]

        def work(_: int) -> None:
            for _ in range(2000):
                with lock:
                    counts[0] += 1
                    held = counts[0]
                    assert held == 1
                    counts[1] += 1
                    counts[0] -= 1

        together(work, 4)
        assert counts == [0, 8000]

    def test_a_signal_ends_the_wait(self) -> None:
        lock = _native.CallLock()
        taken, done = threading.Event(), threading.Event()

        def holder() -> None:
            with lock:
                taken.set()
                done.wait(30)

        def stop(*_: object) -> None:
            raise InterruptedError("stopped")

        thread = threading.Thread(target=holder)
        thread.start()
        taken.wait(10)
        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(InterruptedError), lock:
                raise AssertionError("it was entered")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            done.set()
            thread.join(10)
        with lock:
            pass

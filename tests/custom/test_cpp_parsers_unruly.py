"""Unruly programs call parsers: in signal handlers, in forked processes, while they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.validate import CustomLibrary
from headrace.errors import ParserError
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile

NETWORK = NetworkInfo(32, 32, 3)
PARAMS = DetectionParams(2, np.array([0.1, 0.2], np.float32))
RETURNED, SLOW, SLOW_FALSE = 0, 6, 7
MS = 120


@pytest.fixture(params=["never", "always"])
def library(compile_parser: Compile, tmp_path: Path, request: Any) -> Iterator[CustomLibrary]:
    if request.param == "always" and (why := keeper.can_guard()):
        pytest.skip(f"no workers here: {why}")
    options = GuardOptions(crash_dir=tmp_path)
    opened = open_library(
        compile_parser("commands.cpp"), guard=request.param, guard_options=options
    )
    yield opened
    if isinstance(opened, GuardedLibrary):
        opened.close()


@pytest.fixture
def parse(library: CustomLibrary) -> Any:
    """One that has been called twice: the next call is like the last one."""
    parser = library.bbox_parser("ParseCommand")
    for _ in range(2):
        parser(tensor(RETURNED, 1, 7), NETWORK, PARAMS)
    return parser


def tensor(kind: int, count: int, value: float, size: int = 64) -> dict[str, Layer]:
    values = np.zeros((1, size), np.float32)
    values[0, :5] = kind, count, value, 0, MS
    return {"a": Layer("a", values)}


def lefts(parse: Any, *given: Any) -> list[float]:
    found: list[float] = parse(tensor(*given), NETWORK, PARAMS).boxes[:, 0].tolist()
    return found


@contextmanager
def on_alarm(act: Callable[[], None], after_s: float = 0.03) -> Iterator[list[BaseException]]:
    """Calls it in a signal handler once; what it raised."""
    raised: list[BaseException] = []

    def handle(*_: object) -> None:
        try:
            act()
        except Exception as error:
            raised.append(error)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield raised
        time.sleep(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", [SLOW, SLOW_FALSE])
def test_a_handlers_call_is_not_given_the_result_of_the_call_it_interrupted(
    parse: Any, kind: int
) -> None:
    found: list[list[float]] = []
    with on_alarm(lambda: found.append(lefts(parse, RETURNED, 2, 50))) as raised:
        if kind == SLOW:
            assert lefts(parse, kind, 3, 9) == [9, 10, 11]
        else:
            with pytest.raises(ParserError, match="returned false"):
                lefts(parse, kind, 3, 9)
    assert found == [[50, 51]] or "from inside its own call" in str(raised[0])
    assert lefts(parse, RETURNED, 1, 77) == [77]


def test_a_library_may_be_closed_by_a_handler_when_the_answer_is_there(
    library: CustomLibrary, parse: Any
) -> None:
    if not isinstance(library, GuardedLibrary):
        pytest.skip("nothing is closed")

    def close() -> None:
        time.sleep(2 * MS / 1000)
        library.close()

    for _ in range(2):
        assert lefts(parse, RETURNED, 1, 7) == [7]
        with on_alarm(close), pytest.raises(LibraryDiedError, match="closed during the call"):
            lefts(parse, SLOW, 3, 9)
    assert lefts(parse, RETURNED, 1, 77) == [77]
    assert library.process.deaths == 0


def test_a_handler_may_open_a_parser_or_is_refused(library: CustomLibrary, parse: Any) -> None:
    opened: list[Any] = []
    with on_alarm(lambda: opened.append(library.bbox_parser("ParseCommand"))) as raised:
        assert lefts(parse, SLOW, 3, 9) == [9, 10, 11]
    assert opened or "from inside a call to it" in str(raised[0])
    assert lefts(parse, SLOW, 1, 5) == [5]
    assert lefts(library.bbox_parser("ParseCommand"), RETURNED, 1, 6) == [6]


@pytest.mark.slow
def test_forked_processes_call_while_threads_of_their_parent_do(parse: Any) -> None:
    stop = threading.Event()
    seen: list[list[float]] = []

    def work() -> None:
        while not stop.is_set():
            seen.append(lefts(parse, SLOW, 1, 30))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    ends = []
    try:
        for i in range(3):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # what waits for ever ends
                right = all(lefts(parse, RETURNED, 1, i + k) == [i + k] for k in range(3))
                os._exit(0 if right else 1)
            ends.append(os.waitpid(child, 0)[1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert ends == [0, 0, 0]
    assert seen
    assert all(found == [30] for found in seen)


EXITS = """
import sys, threading, time
from pathlib import Path
from headrace.custom import open_library
from tests.custom.test_cpp_parsers_unruly import NETWORK, PARAMS, RETURNED, SLOW, tensor

library = open_library(Path(sys.argv[1]), guard=sys.argv[2])
parse = library.bbox_parser("ParseCommand")
layers = tensor(int(sys.argv[3]), 2, 30)
def work():
    while True:
        parse(layers, NETWORK, PARAMS)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["never", "always"])
@pytest.mark.parametrize("kind", [RETURNED, SLOW])
def test_a_program_may_end_while_its_daemons_call(
    compile_parser: Compile, guard: str, kind: int
) -> None:
    if guard == "always" and (why := keeper.can_guard()):
        pytest.skip(f"no workers here: {why}")
    command = [sys.executable, "-c", EXITS, str(compile_parser("commands.cpp")), guard, str(kind)]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


class _Changing:
    """A layer whose array is another one each time."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = arrays
        self.asked = 0

    @property
    def data(self) -> Any:
        self.asked += 1
        return self.arrays[self.asked % len(self.arrays)]


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_arrays_that_grow_during_a_call_are_not_written_past_their_place(
    parse: Any, turns: int
) -> None:
    small, large = (tensor(RETURNED, 1, 8, n)["a"].data for n in (64, 1 << 21))
    layer: Any = _Changing(*[small] * turns, large)
    for _ in range(12):
        found = parse({"a": layer}, NETWORK, PARAMS)
        assert found.boxes[0, 0] == 8
        assert found.boxes[0, 3] in (64, 1 << 21)


def test_arrays_that_lie_are_refused(parse: Any) -> None:
    class Liar(np.ndarray):
        @property
        def ndim(self) -> int:  # type: ignore[override]
            return 2

        @property
        def dtype(self) -> Any:  # type: ignore[override]
            return np.dtype(np.float32)

    for array in (np.zeros((1,) * 30 + (64,), np.float32), np.zeros((1, 64))):
        with pytest.raises((ParserError, ValueError)):
            parse({"a": Layer("a", array.view(Liar))}, NETWORK, PARAMS)


def test_a_layer_may_take_itself_out_of_the_dict(parse: Any) -> None:
    layers: dict[str, Any] = {}
    array = tensor(RETURNED, 1, 8)["a"].data

    class Gone:
        def __getattribute__(self, name: str) -> Any:
            layers.clear()
            raise AttributeError(name)

        def __getattr__(self, name: str) -> Any:
            return array

    for _ in range(3):
        layers["a"] = Gone()
        assert parse(layers, NETWORK, PARAMS).boxes[0, 0] == 8

"""One thread of all processes makes a decoder of a GPU; one that hangs is not waited for long."""

from __future__ import annotations

import tempfile
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

from headrace._core.gpu import driver_turn
from headrace._core.gpu.driver_turn import DriverTurn


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def most_at_once(turns: list[DriverTurn]) -> int:
    inside: list[int] = []

    def work(turn: DriverTurn) -> int:
        with turn:
            inside.append(0)
            sleep(0.01)
            most = len(inside)
            inside.pop()
        return most

    with ThreadPoolExecutor(len(turns)) as pool:
        return max(pool.map(work, turns))


def test_one_thread_of_each_process_and_one_process_at_a_time() -> None:
    here, there = DriverTurn(0), DriverTurn(0)  # each process has its own
    assert most_at_once([here, here, here, there, there]) == 1
    assert most_at_once([here, DriverTurn(1)]) == 2


def test_a_process_that_hangs_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_turn, "_PATIENCE_S", 0.1)
    start = monotonic()
    with DriverTurn(0), DriverTurn(0):
        assert 0.1 <= monotonic() - start < 5
    with DriverTurn(0):
        assert monotonic() - start < 5


def test_a_wait_that_is_interrupted_leaves_the_turn_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    turn = DriverTurn(0)
    with DriverTurn(0), monkeypatch.context() as patch:
        patch.setattr(driver_turn, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt), turn:
            pass
    assert most_at_once([turn, turn]) == 1


def test_where_no_file_can_be_made_threads_take_turns(folder: Path) -> None:
    turn = DriverTurn(0)
    (folder / "elsewhere").touch()
    turn._path.symlink_to(folder / "elsewhere")
    assert most_at_once([turn, turn, turn]) == 1


class Decoder:
    """What is weakly referred to."""


def test_who_ends_a_decoder_does_not_wait_for_those_that_are_made() -> None:
    turn = DriverTurn(0)
    held: list[object] = [Decoder()]
    there = weakref.ref(held[0])
    with turn:
        turn.end(held)
        sleep(0.05)
        assert there() is not None
    until = monotonic() + 5
    while there() is not None and monotonic() < until:
        sleep(0.01)
    assert there() is None

"""Whatever happens to the sender is a state: it goes on, says so, and loses nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace._core.findings import Finding
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool
from headrace.media.sources.reconnect import Losses


class Taking:
    """A broker that takes all, once it has raised what it was asked to raise."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.got = list(errors), list[bytes]()
        self.refuses: Callable[[bytes], bool] = lambda message: False

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        if self.errors:
            raise self.errors.pop(0)
        self.got += messages
        return [m for m in messages if self.refuses(m)]

    def close(self) -> None:
        if self.errors:
            raise self.errors[0]

    def stop(self) -> None:
        pass


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("away"), AssertionError(), RecursionError("too deep"), MemoryError(),
        SystemExit(3), KeyboardInterrupt(), ValueError("é\n\x1b[31m"), StopIteration(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.sampled
def test_what_a_client_raises_is_told_and_tried_again(
    tmp_path: Path, error: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    broker, notices = Taking(error, error), list[Finding]()
    sender = Sender(Spool(tmp_path), broker, mark=False, watch=Losses(notices, "x", "at", "none"))
    sender.put(b"{}")
    _until(lambda: sender.sent == 1 and not sender.away)
    assert (sender.failures, sender.waiting) == (2, 0)
    assert sender.close() == 0
    assert broker.got == [b"{}"]
    assert [n.code for n in notices] == ["connection-lost"]
    assert "it came after" in str(notices[0])
    assert capfd.readouterr().err == ""


def test_while_it_is_away_that_is_said(tmp_path: Path) -> None:
    notices: list[Finding] = []
    broker = Taking(*[OSError(111, "refused")] * 1000)
    sender = Sender(Spool(tmp_path), broker, watch=Losses(notices, "x", "stopped at", "nothing"))
    sender.put(b"{}")
    _until(lambda: sender.failures > 0)
    assert [n.code for n in notices] == ["connection-away"]
    assert (sender.away, sender.waiting, sender.lost) == (True, 1, 0)
    assert sender.last_error == "[Errno 111] refused"
    assert sender.close(0.05) == 1
    assert [n.code for n in notices] == ["connection-lost"]


@contextmanager
def _full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".seg"):
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        yield


def test_a_full_disk_costs_no_message_and_no_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Taking()
    sender = Sender(Spool(tmp_path / "spool"), broker, mark=False)
    sender.put(b"1")
    _until(lambda: sender.sent == 1)
    with _full(monkeypatch):
        sender.put(b"2")
        sender.put(b"3")
        _until(lambda: sender.sent == 3)
        assert sender.failures > 0
    sender.put(b"4")
    assert sender.close() == 0
    assert broker.got == [b"1", b"2", b"3", b"4"]
    assert sender.lost == 0


def test_what_neither_disk_nor_broker_takes_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender(Spool(tmp_path / "spool"), Taking(*[OSError("away")] * 1000))
    with _full(monkeypatch):
        for _ in range(30):
            sender.put(bytes(100_000))
        assert sender.close(0.05) == 0
    assert sender.lost == 30


def test_a_spool_that_is_removed_or_cannot_be_read_is_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, broker = tmp_path / "spool", Taking()
    spool = Spool(folder)
    sender = Sender(spool, broker, mark=False)
    real = Spool.peek
    errors = [OSError(24, "Too many open files")] * 2

    def peek(self: Spool, count: int = 64) -> list[tuple[bytes, bool]]:
        if errors:
            raise errors.pop()
        return real(self, count)

    monkeypatch.setattr(Spool, "peek", peek)
    sender.put(b"1")
    _until(lambda: sender.sent == 1)
    assert sender.failures == 2
    shutil.rmtree(folder)
    sender.put(b"2")
    assert sender.close() == 0
    assert broker.got == [b"1", b"2"]
    assert not folder.exists()


def test_refused_messages_that_cannot_be_written_down_are_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Taking()
    broker.refuses = lambda message: b"2" in message
    real = Spool.set_aside
    errors = [OSError(28, "No space left on device")] * 3

    def set_aside(self: Spool, messages: Sequence[bytes]) -> None:
        if errors and messages:
            raise errors.pop()
        real(self, messages)

    monkeypatch.setattr(Spool, "set_aside", set_aside)
    sender = Sender(Spool(tmp_path), broker, mark=False)
    for n in range(4):
        sender.put(b"%d" % n)
    assert sender.close() == 0
    assert sorted(broker.got) == [b"0", b"1", b"2", b"3"]
    assert (sender.sent, sender.refused, sender.failures) == (3, 1, 3)
    assert (tmp_path / "refused.jsonl").read_bytes() == b"2\n"

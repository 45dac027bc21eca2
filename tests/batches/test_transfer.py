"""Files and folders elsewhere whose server is silent, drips, or sends without end."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.batches import remote, transfer
from headrace.batches.bucket import Bucket
from headrace.batches.remote import fetched, listed
from headrace.batches.storage import StorageError
from headrace.batches.transfer import Transfer, TransferError, within
from headrace.errors import MediaError
from tests.media.messages.rogue import WAYS, rogue

fsspec = pytest.importorskip("fsspec")
memory = pytest.importorskip("fsspec.implementations.memory")


class Slow(memory.MemoryFileSystem):  # type: ignore[misc]
    """Files of a memory whose calls behave as they are told, by name."""

    protocol = "slow"
    over = threading.Event()

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        if "silent" in path:
            self.over.wait(20)
        return {"name": path, "size": 3_000_000, "type": "file"}

    def find(self, path: str, *arguments: Any, **options: Any) -> list[str]:
        self.over.wait(20)
        return []

    def cat_file(self, path: str, **options: Any) -> bytes:
        raise FileNotFoundError(path)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        over = self.over

        class File(io.RawIOBase):
            def read(self, size: int = -1) -> bytes:
                over.wait(0.05 if "drip" in path else 0.0)
                return b"a" if "drip" in path else bytes(size)

        return File()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fsspec.register_implementation("slow", Slow, clobber=True)
    Slow.over.clear()
    monkeypatch.setattr(within, "__defaults__", (0.5,))
    monkeypatch.setattr(remote, "LIST_S", 0.5)
    monkeypatch.setattr(remote, "CALL_S", 0.5)
    monkeypatch.setattr(remote, "MOST_BYTES", 8 << 20)
    yield
    Slow.over.set()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("silent.mp4", "it takes longer than 0.5 s"),
        ("drip.mp4", "it takes longer than 0.5 s, only "),
        ("endless.mp4", "there came more than 3,000,000 bytes"),
    ],
)
def test_a_file_of_a_bad_storage_is_refused(name: str, words: str) -> None:
    with pytest.raises(MediaError, match=f"^slow://x/{name}: cannot be fetched: {words}"):  # noqa: SIM117
        with fetched(f"slow://x/{name}"):
            pass


def test_a_folder_or_bucket_that_never_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MediaError, match=r"it takes longer than 0\.5 s"):
        list(listed("slow://x/folder/"))
    monkeypatch.setattr("headrace.batches.bucket.LIST_S", 0.5)
    bucket = Bucket("slow://x/results")
    with pytest.raises(StorageError, match=r"the storage refuses: it takes longer than 0\.5 s"):
        list(bucket.names(""))
    assert bucket.repeated == 0, "a call that may still come through is not repeated"


def test_a_long_file_has_time_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PIECE", 10)

    def work(at: Transfer) -> str:
        for _ in range(12):
            time.sleep(0.1)
            at.size += 10
        return "all of it"

    assert within(work, 0.6) == "all of it"
    with pytest.raises(ZeroDivisionError):
        within(lambda _: 1 // 0)


def test_a_copy_that_nobody_waits_for_ends() -> None:
    ended = threading.Event()

    def work(at: Transfer) -> None:
        at.copy(Slow().open("drip"), io.BytesIO(), 1 << 30)
        ended.set()

    with pytest.raises(TransferError, match="only "):
        within(work, 0.3)
    assert ended.wait(10)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled
def test_a_bad_web_server_is_refused(way: str) -> None:
    pytest.importorskip("aiohttp")
    with rogue("webhook+http", way) as port:
        with pytest.raises(MediaError, match="cannot be fetched"):
            list(listed(f"http://127.0.0.1:{port}/folder/"))
        with pytest.raises(MediaError, match="cannot be fetched"):  # noqa: SIM117
            with fetched(f"http://127.0.0.1:{port}/x.mp4"):
                pass

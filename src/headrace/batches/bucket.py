"""The results of a batch in a bucket: `s3://`, `gs://` and every scheme of fsspec that is written.

    URL/run.json, manifest.parquet, report.html, objects/…   as in a folder
    URL/ledger/000000.jsonl                                  the ledger in segments

An object of a storage service appears whole or not at all, and cannot be appended to. So a table is
uploaded first, then its line goes into the next segment, which is put only if no object has that
name. A run claims the place with a segment before it removes anything: an earlier one that still
writes is refused its next segment. What was uploaded without a line runs again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import sleep
from typing import TypeVar

from headrace._core.errors import HeadraceError
from headrace._core.lazy import import_extra
from headrace._core.retry import Backoff
from headrace._core.storages import NO_BUCKET, missing_package, refusal
from headrace._core.urls import url_name
from headrace.batches.scratch import scratch_folder
from headrace.batches.storage import GO_ON, StorageError
from headrace.batches.transfer import CALL_S, LIST_S, PIECE, TransferError, within

_SEGMENT = "ledger/{:06}.jsonl"
_BACKOFF, _MOST_REPEATED = Backoff(0.8, 8.0), 4  # a service that is busy says so for seconds
_CLAIM = b"claim "  # begins a segment that has no lines
_FINAL = ("credential", "nosuchbucket", "no such bucket", "accessdenied", "forbidden",
          "invalidaccesskey", "signaturedoesnotmatch")  # fmt: skip

T = TypeVar("T")


class Bucket:
    """Objects below a URL.

    Args:
        url: a folder of a storage that is written, as `s3://bucket/results/`.

    Attributes:
        url: without credentials, for messages.
        repeated: calls that were answered at a second or later attempt.
        segments: of the ledger that are there.

    Raises:
        StorageError: the storage refuses.
        MissingExtraError: a package is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url_name(url).rstrip("/")
        self.repeated = 0
        self.segments = 0
        core = import_extra("fsspec.core", "remote")
        try:
            self.system, path = core.url_to_fs(url)
        except ImportError as error:  # fsspec is there, the package for this scheme is not
            raise missing_package(url, error) from error
        except Exception as error:  # file systems of other projects raise anything
            raise self._error(error) from error
        self.path = str(path).rstrip("/")

    def read_state(self, folder: Path) -> None:
        """Put `run.json` and the ledger into a folder of this machine.

        Raises:
            StorageError: the storage refuses.
            HeadraceError: there are other things below the URL.
        """
        run = self._read("run.json")
        if run is None:
            if others := sorted(self.names("")):
                raise HeadraceError(
                    f"the bucket holds other things there: {', '.join(others[:3])}",
                    where=self.url,
                    expected="a new or empty place, or one of an earlier batch",
                )
            return
        (folder / "run.json").write_bytes(run)
        there = sorted(self.names("ledger"))
        expected_names = [_SEGMENT.format(number) for number in range(len(there))]
        if there != expected_names:
            gap = next(w for w, t in zip(expected_names, there, strict=True) if w != t)
            raise HeadraceError(
                f"{gap} is missing: the ledger has a gap",
                where=self.url,
                fix="put the object back, or run into a new place",
            )
        with open(folder / "ledger.jsonl", "wb") as ledger:
            for name in there:
                segment = self._read(name) or b""
                if not segment.startswith(_CLAIM):
                    ledger.write(segment)
        self.segments = len(there)

    def claim(self) -> None:
        """Take the place over: a run that wrote there until now is refused its next segment.

        Raises:
            StorageError: another run has come between, or the storage refuses.
        """
        self.append(_CLAIM + uuid.uuid4().hex.encode() + b"\n")

    def append(self, lines: bytes) -> None:
        """Put the next segment of the ledger.

        Raises:
            StorageError: another run has put it, or the storage refuses.
        """
        name = _SEGMENT.format(self.segments)
        try:
            self._write(lambda: self.system.pipe_file(self._at(name), lines, mode="create"))
        except FileExistsError as error:
            # an attempt that seemed to fail may have come through
            if self._read(name) != lines:
                raise StorageError(
                    "another batch is writing to this place",
                    where=self.url,
                    fix="wait until it ends, or choose another place",
                ) from error
        self.segments += 1

    def put(self, file: Path, name: str) -> None:
        """Upload a file whole.

        Raises:
            StorageError: the storage refuses.
        """
        size = file.stat().st_size
        seconds = CALL_S * (1 + size / PIECE)
        self._write(lambda: self.system.put_file(str(file), self._at(name)), seconds)
        stored_size = self._call(lambda: self.system.info(self._at(name), refresh=True)["size"])
        if stored_size != size:
            raise StorageError(
                f"{name} has {stored_size} bytes there after an upload of {size}",
                where=self.url,
                fix=GO_ON,
            )

    def get(self, name: str, file: Path) -> None:
        """Fetch an object into a file.

        Raises:
            FileNotFoundError: it is not there.
            StorageError: the storage refuses.
        """
        size = self._call(lambda: self.system.info(self._at(name))["size"])
        seconds = CALL_S * (1 + size / PIECE)
        self._call(lambda: self.system.get_file(self._at(name), str(file)), seconds)

    def remove(self, name: str) -> None:
        """Remove an object that may be there.

        Raises:
            StorageError: the storage refuses.
        """
        with suppress(FileNotFoundError):
            self._call(lambda: self.system.rm_file(self._at(name)))

    def names(self, below: str) -> Iterator[str]:
        """Names of the objects below a folder of the bucket.

        Raises:
            StorageError: the storage refuses.
        """
        self.system.invalidate_cache()
        try:
            place = self._at(below) if below else self.path
            paths = self._call(lambda: self.system.find(place), LIST_S)
        except FileNotFoundError:
            return
        for path in paths:
            yield str(path)[len(self.path) :].lstrip("/")

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._call(lambda: self.system.cat_file(self._at(name)))
        except FileNotFoundError:
            return None
        return content

    def _write(self, work: Callable[[], object], seconds: float = CALL_S) -> None:
        try:
            self._call(work, seconds)
        except FileNotFoundError as error:
            raise StorageError(NO_BUCKET, where=self.url, fix=GO_ON) from error

    def _call(self, work: Callable[[], T], seconds: float = CALL_S) -> T:
        """Call the storage, again after a pause if it is busy or out of reach.

        Raises:
            FileNotFoundError: the object is not there.
            FileExistsError: the object is there.
            StorageError: the storage refuses, or stays out of reach.
        """
        for attempt in count():
            try:
                return within(lambda _: work(), seconds)
            except (FileNotFoundError, FileExistsError):
                raise
            except Exception as error:  # file systems of other projects raise anything
                text = f"{type(error).__name__} {error}".lower()
                refused = isinstance(error, PermissionError | TransferError)
                final = refused or any(word in text for word in _FINAL)
                if final or attempt == _MOST_REPEATED:
                    raise self._error(error) from error
            self.repeated += 1
            sleep(_BACKOFF.delay_s(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _error(self, error: Exception) -> StorageError:
        text, fix = (str(error), ()) if isinstance(error, TransferError) else refusal(error)
        text = f"the storage refuses: {text}"
        return StorageError(text, where=self.url, fix=[*fix, GO_ON])


@contextmanager
def results_place(out: str | Path) -> Iterator[tuple[Path, Bucket | None]]:
    """The folder of this machine for results, and the bucket they go to if `out` is a URL.

    Raises:
        StorageError: the bucket refuses.
        HeadraceError: it holds other things.
    """
    if not is_bucket(out):
        yield Path(out), None
        return
    with scratch_folder() as folder:
        bucket = Bucket(str(out))
        bucket.read_state(folder)
        yield folder, bucket


def is_bucket(out: str | Path) -> bool:
    """Return whether results go to a storage elsewhere: True for every URL but `file://`."""
    return isinstance(out, str) and "://" in out and not out.startswith("file://")

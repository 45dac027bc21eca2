"""The folder of a batch: results that are there whole or not at all.

    DIR/run.json            what made it: hashes of configs, models, libraries and options
    DIR/ledger.jsonl        one line for each outcome; the truth about what is done
    DIR/manifest.parquet    the same as a table, written at the end of each run
    DIR/objects/run=…/shard=…/UNIT.parquet
    DIR/jsonl, coco, video  one file per input, if asked for
    DIR/.parts              results that are being made

A worker writes below `.parts`. The driver renames, then appends to the ledger. Killed between the
two, the file is there without its line: the next run removes it, and does the unit again.

Where results go to a bucket, DIR is a folder of this machine for the time of the run. Tables are
uploaded instead of renamed, and lines of the ledger follow them, see `bucket`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import hash_file, try_lock
from headrace.batches.bucket import Bucket
from headrace.batches.inside import (
    files_inside,
    folder_inside,
    move_inside,
    refuse_links,
    remove_inside,
)
from headrace.batches.ledger import Ledger, StoredFile, UnitRecord
from headrace.batches.storage import StorageError, storage_errors
from headrace.batches.units import BatchUnit, Content
from headrace.media.sinks.base import make_folder

SUFFIXES = {"parquet": ".parquet", "jsonl": ".jsonl", "coco": ".json", "video": ".mp4"}
KINDS = tuple(SUFFIXES)
MANIFEST = "manifest.parquet"
_OURS = frozenset(("run.json", "ledger.jsonl", MANIFEST, "objects", "report.html", ".lock",
                   ".parts", *KINDS))  # fmt: skip
_TABLE = re.compile(r"/shard=[0-9a-f]/[0-9a-f]{16}\.parquet")
_PLAIN = re.compile(r"[^\w.-]+")
_MAX_STEM = 80
_UPLOADS = 8  # files at once
_MOST_PENDING = 64  # units that wait for their uploads
_SEGMENT_S, _SEGMENT_LINES = 5.0, 1000  # of the ledger: a killed run repeats at most so much


class BatchFolder:
    """One run's hold on the folder of a batch.

    Args:
        path: the folder; it is made.
        run: id of the run, see `identity.run_id`.
        bucket: where results go instead; `path` holds its ledger then.

    Attributes:
        parts: where workers write; of this run alone.
        ledger: what is done.
        where: the folder or the bucket, for messages.

    Raises:
        StorageError: it cannot be made or written.
        HeadraceError: another run holds it, or it holds other things.
    """

    def __init__(self, path: Path, run: str, bucket: Bucket | None = None) -> None:
        self.path = path
        self.run = run
        self.where = str(path) if bucket is None else bucket.url
        self._bucket = bucket
        self._uploads = ThreadPoolExecutor(_UPLOADS, "headrace-upload")
        self._pending: deque[tuple[list[Future[None]], UnitRecord]] = deque()
        self._unsaved: list[bytes] = []
        self._saved_s = monotonic()
        try:
            make_folder(path, str(path))
        except MediaError as error:
            raise StorageError(error.finding, where=str(path), code=StorageError.code) from error
        _refuse_strangers(path)
        with storage_errors(path):
            refuse_links(path, sorted(_OURS))
        self._lock = _locked(path)
        try:
            parts = [".parts", uuid.uuid4().hex[:12]]
            self.parts = path.joinpath(*parts)
            with storage_errors(path):
                shutil.rmtree(path / ".parts", ignore_errors=True)
                with folder_inside(path, parts, make=True):
                    pass
            self._refuse_lost_ledger()
            self.ledger = Ledger(path / "ledger.jsonl")
        except BaseException:
            os.close(self._lock)
            raise

    def place(self, unit: BatchUnit, kind: str) -> str:
        """Where a result of a unit belongs, below the folder."""
        if kind == "parquet":
            return f"objects/run={self.run}/shard={unit.id[0]}/{unit.id}.parquet"
        stem = _PLAIN.sub("_", Path(unit.input.split("?")[0]).stem).strip("._")[:_MAX_STEM]
        return f"{kind}/{stem or 'input'}-{unit.id[:8]}{SUFFIXES[kind]}"

    def commit(
        self, unit: BatchUnit, record: UnitRecord, files: Mapping[str, Content]
    ) -> UnitRecord:
        """Put the files of a unit in their places and add its line to the ledger.

        Raises:
            StorageError: that cannot be done; the unit is not done then.
        """
        stored: dict[str, StoredFile] = {}
        uploads: list[Future[None]] = []
        for kind, content in files.items():
            location = self.place(unit, kind)
            with storage_errors(self.path):
                if isinstance(content, bytes):
                    content = self._written(unit, kind, content)
                size, digest = hash_file(content)
                rows = parquet_rows(content) if kind == "parquet" else None
                if self._bucket is not None:
                    uploads.append(self._uploads.submit(_uploaded, self._bucket, content, location))
                else:
                    move_inside(content, self.path, location)
            stored[kind] = StoredFile(location, size, digest, rows)
        record = record.changed(files=stored)
        if self._bucket is None:
            self.append(record)
        else:
            self._pending.append((uploads, record))
            self._take_uploaded(_MOST_PENDING)
        return record

    def _take_uploaded(self, most: int) -> None:
        """Write the lines of units with uploaded files, in order; wait while more than `most` wait.

        Raises:
            StorageError: an upload has failed.
        """
        while self._pending:
            uploads, record = self._pending[0]
            if len(self._pending) <= most and not all(one.done() for one in uploads):
                return
            for one in uploads:
                one.result()
            self._pending.popleft()
            self._add_line(record)

    def _written(self, unit: BatchUnit, kind: str, content: bytes) -> Path:
        path = self.parts / f"{unit.id}{SUFFIXES[kind]}"
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return path

    def append(self, record: UnitRecord) -> None:
        """Add a line to the ledger.

        Raises:
            StorageError: it cannot be written.
        """
        self._take_uploaded(0)
        self._add_line(record)

    def _add_line(self, record: UnitRecord) -> None:
        try:
            self.ledger.append(record)
        except HeadraceError as error:
            raise StorageError(error.finding, code=StorageError.code) from error
        if self._bucket is not None:
            self._unsaved.append(record.to_json() + b"\n")
            if len(self._unsaved) >= _SEGMENT_LINES:
                self._save_lines(self._bucket)

    def _save_lines(self, bucket: Bucket) -> None:
        bucket.append(b"".join(self._unsaved))
        self._unsaved.clear()
        self._saved_s = monotonic()

    def save(self) -> None:
        """Wait for uploads, and bring every line to where it is kept.

        Raises:
            StorageError: that cannot be done.
        """
        try:
            self._take_uploaded(0)
        finally:
            if self._bucket is not None and self._unsaved:
                self._save_lines(self._bucket)

    def keep_up(self) -> None:
        """Save lines of the ledger that have waited for seconds, however long the next unit takes.

        Raises:
            StorageError: that cannot be done.
        """
        self._take_uploaded(_MOST_PENDING)
        if self._bucket is not None and self._unsaved and monotonic() - self._saved_s > _SEGMENT_S:
            self._save_lines(self._bucket)

    def publish(self, name: str) -> None:
        """Bring a file of the folder to the bucket, if there is one.

        Raises:
            StorageError: that cannot be done.
        """
        if self._bucket is not None:
            self._bucket.put(self.path / name, name)

    @contextlib.contextmanager
    def at_hand(self, location: str) -> Iterator[Path]:
        """A result as a file of this machine.

        Raises:
            FileNotFoundError: it is not there.
            StorageError: it cannot be fetched.
        """
        if self._bucket is None:
            yield self.path / location
            return
        with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
            path = Path(folder, Path(location).name)
            self._bucket.get(location, path)
            yield path

    def remove_results(self, units: Iterable[BatchUnit], kinds: Iterable[str]) -> None:
        """Remove the result files of units that are void."""
        kinds = tuple(kinds)
        self._take_uploaded(0)
        for unit in units:
            for kind in kinds:
                self._remove(self.place(unit, kind))

    def _remove(self, location: str) -> None:
        if self._bucket is not None:
            self._bucket.remove(location)
            return
        with storage_errors(self.path):
            remove_inside(self.path, location)

    def _refuse_lost_ledger(self) -> None:
        """Refuse tables without the ledger that knows them: they would be removed as leftovers."""
        if self._bucket is None and not (self.path / "ledger.jsonl").exists():
            table = next(self.tables(), None)
            if table is not None:
                raise HeadraceError(
                    f"ledger.jsonl is gone, and {table} is there: nothing says whether it is whole",
                    where=str(self.path),
                    fix="put the ledger back, or choose another folder",
                )

    def reconcile(self) -> int:
        """Make files and ledger agree: a file without its line goes, a line without its file, too.

        Tables of other runs, and files that no run names so, stay.

        Returns:
            How many units that were done have to run again.

        Raises:
            StorageError: a file cannot be removed.
        """
        if self._bucket is not None:
            self._bucket.claim()
        there: set[bytes] = set()
        for location in self.tables():
            stem = Path(location).stem
            if self.ledger.outcome(stem) == "done":
                there.add(bytes.fromhex(stem))
            else:
                self._remove(location)
        gone = [k for k, v in self.ledger.outcomes.items() if v == "done" and k not in there]
        for key in gone:
            self.ledger.outcomes[key] = "lost"
        return len(gone)

    def tables(self) -> Iterator[str]:
        """Places of the tables of this run that are there."""
        own = f"objects/run={self.run}"
        for name in self._below(own):
            if _TABLE.fullmatch(name.removeprefix(own)):
                yield name

    def read_as_tables(self) -> Iterator[str]:
        """Places of all files that readers of the folder `objects` take for tables."""
        if self._bucket is not None:
            yield from self._bucket.names("objects")
            return
        with contextlib.suppress(FileNotFoundError), storage_errors(self.path):
            for entry in sorted(os.listdir(self.path / "objects")):
                if (self.path / "objects" / entry).is_dir():
                    yield from self._below(f"objects/{entry}")

    def _below(self, location: str) -> Iterator[str]:
        if self._bucket is not None:
            yield from self._bucket.names(location)
            return
        with storage_errors(self.path):
            yield from files_inside(self.path, location.split("/"))

    def close(self) -> None:
        """Remove results that were not committed, and let the folder go.

        Raises:
            StorageError: the last lines of the ledger cannot be brought to the disk.
        """
        self._uploads.shutdown(cancel_futures=True)
        shutil.rmtree(self.path / ".parts", ignore_errors=True)
        try:
            with storage_errors(self.path):
                self.ledger.close()
        finally:
            os.close(self._lock)


def _uploaded(bucket: Bucket, content: Path, location: str) -> None:
    bucket.put(content, location)
    content.unlink(missing_ok=True)


def _refuse_strangers(path: Path) -> None:
    others = sorted(p.name for p in path.iterdir() if p.name not in _OURS)
    if others and not (path / "ledger.jsonl").exists():
        raise HeadraceError(
            f"the folder holds other things: {', '.join(others[:3])}",
            where=str(path),
            expected="a new or empty folder, or one of an earlier batch",
        )


def _locked(path: Path) -> int:
    with storage_errors(path):
        fd = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        try_lock(fd)
    except BlockingIOError as error:
        os.close(fd)
        raise HeadraceError(
            "another batch is writing to this folder",
            where=str(path),
            fix="wait until it ends, or choose another folder",
        ) from error
    return fd


def parquet_rows(path: Path) -> int:
    """Rows of a Parquet file, read from its end.

    Raises:
        OSError: it is no Parquet file.
    """
    import pyarrow
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except pyarrow.ArrowException as error:
        raise OSError(f"no Parquet file: {error}") from error

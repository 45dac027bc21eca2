"""The folder of a batch: results that are there whole or not at all.

    DIR/run.json            what made it: hashes of configs, models, libraries and options
    DIR/ledger.jsonl        one line for each outcome; the truth about what is done
    DIR/manifest.parquet    the same as a table, written at the end of each run
    DIR/objects/run=…/shard=…/UNIT.parquet   rows of a unit, or of a pack of small ones
    DIR/frames/run=…/shard=…/UNIT.parquet    the same of frames
    DIR/waiting/objects, frames/…            tables of small units until they are packed
    DIR/jsonl, coco, video  one file per input, if asked for
    DIR/.parts              results that are being made

A worker writes below `.parts`. The driver renames, then appends to the ledger. Killed between the
two, the file is there without its line: the next run removes it, and does the unit again.

A small unit is done when its line is there, too; its tables wait. Packed, they go into one file,
a line says so, and they are removed. Readers of `objects` and `frames` see no row twice.

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
from typing import Any

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import hash_file, sha256_of, try_lock
from headrace.batches.bucket import Bucket
from headrace.batches.inside import (
    files_inside,
    folder_inside,
    move_inside,
    refuse_links,
    remove_inside,
)
from headrace.batches.ledger import Ledger, StoredFile, UnitRecord
from headrace.batches.packing import WAITING, agreement, is_small, waiting_place
from headrace.batches.storage import StorageError, storage_errors
from headrace.batches.tables import TABLES, read_table, table_rows, write_joined
from headrace.batches.units import BatchUnit, Content
from headrace.media.sinks.base import make_folder

SUFFIXES = {
    "parquet": ".parquet",
    "frames": ".parquet",
    "jsonl": ".jsonl",
    "coco": ".json",
    "video": ".mp4",
}
KINDS = tuple(SUFFIXES)
MANIFEST = "manifest.parquet"
_OURS = frozenset(("run.json", "ledger.jsonl", MANIFEST, *TABLES.values(), WAITING, "report.html",
                   ".lock", ".parts", *KINDS))  # fmt: skip
_TABLE = re.compile(r"/shard=[0-9a-f]/[0-9a-f]{16}\.parquet")
_WAITS = re.compile(r"/[0-9a-f]/[0-9a-f]{16}\.table")
_PLAIN = re.compile(r"[^\w.-]+")
_MAX_STEM = 80
_UPLOADS = 8  # files at once
_MOST_PENDING = 64  # units that wait for their uploads
_PACK_UNITS, _PACK_BYTES = 1000, 32 << 20
_HELD_S = 60.0  # small results for a bucket wait here: a killed run repeats at most so much
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
        self._small: dict[str, int] = {}  # unit -> bytes of its tables that wait
        self._small_since_s = 0.0
        self._held: dict[
            str, tuple[list[Future[None]], UnitRecord]
        ] = {}  # of a bucket: no line yet
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
        if kind in TABLES:
            return self._table_place(kind, unit.id)
        stem = _PLAIN.sub("_", Path(unit.input.split("?")[0]).stem).strip("._")[:_MAX_STEM]
        return f"{kind}/{stem or 'input'}-{unit.id[:8]}{SUFFIXES[kind]}"

    def _table_place(self, kind: str, name: str) -> str:
        return f"{TABLES[kind]}/run={self.run}/shard={name[0]}/{name}.parquet"

    def commit(
        self, unit: BatchUnit, record: UnitRecord, files: Mapping[str, Content]
    ) -> UnitRecord:
        """Put the files of a unit in their places and add its line to the ledger.

        Raises:
            StorageError: that cannot be done; the unit is not done then.
        """
        stored: dict[str, StoredFile] = {}
        uploads: list[Future[None]] = []
        with storage_errors(self.path):
            paths = {
                k: self._written(unit, k, c) if isinstance(c, bytes) else c
                for k, c in files.items()
            }
            small = is_small(unit, [path for kind, path in paths.items() if kind in TABLES])
        for kind, content in paths.items():
            waits = small and kind in TABLES
            location = waiting_place(kind, unit.id) if waits else self.place(unit, kind)
            with storage_errors(self.path):
                size, digest = hash_file(content)
                rows = table_rows(content) if kind in TABLES else None
                if self._bucket is None or waits:
                    move_inside(content, self.path, location)
                else:
                    uploads.append(self._uploads.submit(_uploaded, self._bucket, content, location))
            stored[kind] = StoredFile(location, size, digest, rows)
        record = record.changed(files=stored)
        if self._bucket is None:
            self.append(record)
        elif small:
            self._small_since_s = monotonic() if not self._held else self._small_since_s
            self._held[unit.id] = uploads, record
            self._wait_for_pack(record)
        else:
            self._pending.append((uploads, record))
            self._take_uploaded(_MOST_PENDING)
        return record

    def _wait_for_pack(self, record: UnitRecord) -> None:
        tables = (stored for kind, stored in record.files.items() if kind in TABLES)
        self._small[record.unit] = sum(stored.size_bytes for stored in tables)

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
        path = self.parts / f"{unit.id}-{kind}{SUFFIXES[kind]}"
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
        waits = any(stored.path.startswith(f"{WAITING}/") for stored in record.files.values())
        if self._bucket is None and record.outcome == "done" and waits:
            self._wait_for_pack(record)
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
            self._pack()
        finally:
            if self._bucket is not None and self._unsaved:
                self._save_lines(self._bucket)

    def keep_up(self) -> None:
        """Save lines of the ledger that have waited for seconds, however long the next unit takes.

        Raises:
            StorageError: that cannot be done.
        """
        self._take_uploaded(_MOST_PENDING)
        late = bool(self._held) and monotonic() - self._small_since_s > _HELD_S
        if late or len(self._small) >= _PACK_UNITS or sum(self._small.values()) >= _PACK_BYTES:
            self._pack()
        if self._bucket is not None and self._unsaved and monotonic() - self._saved_s > _SEGMENT_S:
            self._save_lines(self._bucket)

    def _pack(self) -> None:
        """Make one table of each kind of those that wait.

        Raises:
            StorageError: that cannot be done; they wait on.
        """
        units = list(self._small)
        if not units:
            return
        # Of two runs into one bucket the earlier must not replace a pack of the later.
        salt = "" if self._bucket is None else self.parts.name
        name = sha256_of("".join([salt, *units]).encode())[:16]
        stored: dict[str, StoredFile] = {}
        for kind in TABLES:
            part, location = self.parts / f"{name}-{kind}", self._table_place(kind, name)
            with storage_errors(self.path):
                rows = write_joined((self._waiting_table(kind, unit) for unit in units), part)
                stored[kind] = StoredFile(location, *hash_file(part), rows)
                if self._bucket is None:
                    move_inside(part, self.path, location)
            if self._bucket is not None:
                if kind == next(iter(TABLES)):
                    self._bucket.claim()  # a later run may have taken the place over
                _uploaded(self._bucket, part, location)
        record = UnitRecord(name, "", "packed", files=stored, units=tuple(units))
        self._small.clear()
        try:
            for unit in units if self._bucket is not None else ():
                self._add_line(self._uploaded_record(unit))
            self._add_line(record)
            if self._bucket is not None:
                self._save_lines(self._bucket)
        except StorageError:
            if self._bucket is not None:  # its rows have no line
                with contextlib.suppress(StorageError):
                    for one in stored.values():
                        self._bucket.remove(one.path)
            raise
        for unit in units:
            for kind in TABLES:
                with storage_errors(self.path):
                    remove_inside(self.path, waiting_place(kind, unit))

    def _waiting_table(self, kind: str, unit: str) -> Any:
        return read_table(self.path / waiting_place(kind, unit))

    def _uploaded_record(self, unit: str) -> UnitRecord:
        """The record of a unit that waited, once its other files are in the bucket.

        Raises:
            StorageError: an upload has failed.
        """
        uploads, record = self._held.pop(unit)
        for one in uploads:
            one.result()
        return record

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
            every = (name for kind in TABLES for name in (*self._final(kind), *self._waiting(kind)))
            table = next(iter(every), None)
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
        final = {kind: self._ids(self._final(kind)) for kind in TABLES}
        waiting = {kind: self._ids(self._waiting(kind)) for kind in TABLES}
        agreed = agreement(self.ledger, final, waiting)
        for key in agreed.gone:
            self.ledger.outcomes[key] = "lost"
        for kind in TABLES:
            if final[kind] - agreed.final:
                self._remove_others(list(self._final(kind)), agreed.final)
            if waiting[kind] - agreed.waiting:
                self._remove_others(list(self._waiting(kind)), agreed.waiting)
        self._small = {key.hex(): self._waiting_bytes(key.hex()) for key in agreed.waiting}
        return len(agreed.gone)

    def _remove_others(self, locations: Iterable[str], ids: set[bytes]) -> None:
        for location in locations:
            if bytes.fromhex(Path(location).stem) not in ids:
                self._remove(location)

    @staticmethod
    def _ids(locations: Iterable[str]) -> set[bytes]:
        return {bytes.fromhex(Path(location).stem) for location in locations}

    def _final(self, kind: str) -> Iterator[str]:
        """Places of the tables of this run that readers see."""
        own = f"{TABLES[kind]}/run={self.run}"
        for name in self._below(own):
            if _TABLE.fullmatch(name.removeprefix(own)):
                yield name

    def _waiting(self, kind: str) -> Iterator[str]:
        """Places of the tables that wait to be packed."""
        own = f"{WAITING}/{TABLES[kind]}"
        if self._bucket is None:
            for name in self._below(own):
                if _WAITS.fullmatch(name.removeprefix(own)):
                    yield name

    def _waiting_bytes(self, unit: str) -> int:
        places = [self.path / waiting_place(kind, unit) for kind in TABLES]
        with storage_errors(self.path):
            return sum(place.stat().st_size for place in places)

    def read_as_tables(self) -> Iterator[str]:
        """Places of all files that readers of `objects` and `frames` take for tables."""
        for folder in TABLES.values():
            if self._bucket is not None:
                yield from self._bucket.names(folder)
                continue
            with contextlib.suppress(FileNotFoundError), storage_errors(self.path):
                for entry in sorted(os.listdir(self.path / folder)):
                    if (self.path / folder / entry).is_dir():
                        yield from self._below(f"{folder}/{entry}")

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

"""The folder of a batch: results that are there whole or not at all.

    DIR/run.json            what made it: hashes of configs, models, libraries and options
    DIR/ledger.jsonl        one line for each outcome; the truth about what is done
    DIR/manifest.parquet    the same as a table, written at the end of each run
    DIR/objects/run=…/shard=…/UNIT.parquet
    DIR/jsonl, coco, video  one file per input, if asked for
    DIR/.parts              results that are being made

A worker writes below `.parts`. The driver renames, then appends to the ledger. Killed between the
two, the file is there without its line: the next run removes it, and does the unit again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from noria._core.errors import MediaError, NoriaError
from noria.batches.ledger import Ledger, StoredFile, UnitRecord
from noria.batches.units import BatchUnit, Content
from noria.media.sinks.base import make_folder

SUFFIXES = {"parquet": ".parquet", "jsonl": ".jsonl", "coco": ".json", "video": ".mp4"}
KINDS = tuple(SUFFIXES)
MANIFEST = "manifest.parquet"
_OURS = frozenset(("run.json", "ledger.jsonl", MANIFEST, "objects", "report.html", ".lock",
                   ".parts", *KINDS))  # fmt: skip
GO_ON = "what is committed is kept; go on with --resume when this is put right"
_PLAIN = re.compile(r"[^\w.-]+")
_MAX_STEM = 80


class StorageError(NoriaError):
    """Results cannot be written: the disk is full, read-only, or the folder is gone."""

    exit_code = MediaError.exit_code


class BatchFolder:
    """One run's hold on the folder of a batch.

    Args:
        path: the folder; it is made.
        run: id of the run, see `identity.run_id`.

    Attributes:
        parts: where workers write; of this run alone.
        ledger: what is done.

    Raises:
        StorageError: it cannot be made or written.
        NoriaError: another run holds it, or it holds other things.
    """

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        self.run = run
        try:
            make_folder(path, str(path))
        except MediaError as error:
            raise StorageError(error.found, where=str(path), fix=error.fix) from error
        _refuse_strangers(path)
        self._lock = _locked(path)
        try:
            self.parts = path / ".parts" / uuid.uuid4().hex[:12]
            with storage_errors(path):
                shutil.rmtree(path / ".parts", ignore_errors=True)
                self.parts.mkdir(parents=True)
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
        for kind, content in files.items():
            place = self.place(unit, kind)
            with storage_errors(self.path):
                if isinstance(content, bytes):
                    content = self._written(unit, kind, content)
                size, digest = hash_of(content)
                target = self.path / place
                if not target.parent.is_dir():
                    target.parent.mkdir(parents=True)
                os.replace(content, target)
            rows = parquet_rows(target) if kind == "parquet" else None
            stored[kind] = StoredFile(place, size, digest, rows)
        record = record.changed(files=stored)
        self.append(record)
        return record

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
        try:
            self.ledger.append(record)
        except NoriaError as error:
            raise StorageError(error.found, where=error.where, fix=error.fix) from error

    def remove_results(self, units: Iterable[BatchUnit], kinds: Iterable[str]) -> None:
        """Remove the result files of units that are void."""
        kinds = tuple(kinds)
        for unit in units:
            for kind in kinds:
                with contextlib.suppress(FileNotFoundError):
                    (self.path / self.place(unit, kind)).unlink()

    def reconcile(self) -> int:
        """Make files and ledger agree: a file without its line goes, a line without its file, too.

        Returns:
            How many units that were done have to run again.
        """
        there: set[bytes] = set()
        for path in self.objects():
            if (
                re.fullmatch(r"[0-9a-f]{16}", path.stem)
                and self.ledger.outcome(path.stem) == "done"
            ):
                there.add(bytes.fromhex(path.stem))
            else:
                with storage_errors(self.path):
                    path.unlink(missing_ok=True)
        gone = [k for k, v in self.ledger.outcomes.items() if v == "done" and k not in there]
        for key in gone:
            self.ledger.outcomes[key] = "lost"
        return len(gone)

    def objects(self) -> Iterator[Path]:
        """Every Parquet file of objects."""
        return (self.path / "objects").glob("run=*/shard=*/*.parquet")

    def close(self) -> None:
        """Remove results that were not committed, and let the folder go."""
        shutil.rmtree(self.path / ".parts", ignore_errors=True)
        try:
            self.ledger.close()
        finally:
            os.close(self._lock)


def _refuse_strangers(path: Path) -> None:
    others = sorted(p.name for p in path.iterdir() if p.name not in _OURS)
    if others and not (path / "ledger.jsonl").exists():
        raise NoriaError(
            f"the folder holds other things: {', '.join(others[:3])}",
            where=str(path),
            expected="a new or empty folder, or one of an earlier batch",
        )


def _locked(path: Path) -> int:
    with storage_errors(path):
        fd = os.open(path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise NoriaError(
            "another batch is writing to this folder",
            where=str(path),
            fix="wait until it ends, or choose another folder",
        ) from error
    except OSError:
        pass  # network file systems may not know locks
    return fd


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Word the system's refusals to write below `path`.

    Raises:
        StorageError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, path) from error


def storage_error(error: OSError, path: Path) -> StorageError:
    """The plain words for a refusal of the file system."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            found = "the disk is full"
        case errno.EROFS:
            found = "the file system is read-only"
        case errno.EACCES | errno.EPERM:
            found = "the folder may not be written to"
        case errno.ENOENT | errno.ESTALE:
            found = "the folder, or a part of it, was removed during the run"
        case _:
            found = f"results cannot be written: {error.strerror or error}"
    return StorageError(found, where=str(path), fix=GO_ON)


def hash_of(path: Path) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


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

"""The manifest: the last outcome of every unit as a table, and the check of results against it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import headrace
from headrace._core.files import PartFile, hash_file
from headrace._core.lazy import import_extra
from headrace._core.text import quoted
from headrace.batches.bucket import Bucket, results_place
from headrace.batches.columns import Columns, arrays_of, fields_of, parsed
from headrace.batches.folder import MANIFEST, BatchFolder
from headrace.batches.identity import COLUMNS_PART, read_run
from headrace.batches.ledger import StoredFile, UnitRecord, last_records
from headrace.batches.storage import storage_errors
from headrace.batches.tables import TABLES, table_rows
from headrace.meta.arrow_arrays import arrow_array
from headrace.meta.frame_table import FRAME_COLUMNS
from headrace.meta.table import COLUMNS

SCHEMA_VERSION = 2
"""Version of the manifest's columns; a test holds it to them."""

_ROWS = 16384

_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("input", "string", "path or URL, without credentials"),
    ("unit", "string", "16 hexadecimal digits: the name of its files"),
    ("outcome", "string", "done, failed or lost"),
    ("first_frame", "int64", "number of its first frame; null of a whole input"),
    ("frames", "int64", "frames read"),
    ("objects", "int64", "objects found"),
    ("seconds", "float64", "wall-clock seconds of the last attempt"),
    ("attempts", "int32", "how often it was begun"),
    ("size_bytes", "int64", "bytes of the input"),
    ("sha256", "string", "of the input's content"),
    ("error", "string", "why it failed; empty if it did not"),
    ("warnings", "list<string>", "about the input: damaged frames, an early end, not split"),
    ("file", "string", "the table with its objects, below the folder; null if it has none"),
    ("file_sha256", "string", "of that table"),
    ("frames_file", "string", "the table with its frames"),
    ("frames_file_sha256", "string", "of that table"),
    ("finished_ms", "int64", "milliseconds since 1970, UTC"),
)


RESERVED = frozenset((*(name for name, *_ in _COLUMNS), *COLUMNS, *FRAME_COLUMNS, "run", "shard"))
"""Names of columns that tables of a batch have of their own."""


def manifest_schema(columns: Columns = ()) -> Any:
    """The `pyarrow.Schema` of the manifest; each field's metadata has a `description`.

    Args:
        columns: of the user's manifests, which stand behind the own ones.
    """
    pa = import_extra("pyarrow", "arrow")
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float64": pa.float64(),
        "list<string>": pa.list_(pa.string()),
    }
    return pa.schema(
        [
            pa.field(name, types[kind], metadata={"description": text})
            for name, kind, text in _COLUMNS
        ]
        + fields_of(columns),
        {"headrace.schema": str(SCHEMA_VERSION), "headrace.release": headrace.__version__},
    )


def write_manifest(folder: Path) -> Path:
    """Write `manifest.parquet` from the ledger, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    pa, pq = import_extra("pyarrow", "arrow"), import_extra("pyarrow.parquet", "arrow")
    target = folder / MANIFEST
    columns = parsed(read_run(folder)["parts"].get(COLUMNS_PART, ""))
    schema, own = manifest_schema(columns), manifest_schema()
    with storage_errors(folder):
        rows = iter(unit_records(folder))
        with (
            PartFile(target, folder / ".parts" / MANIFEST) as part,
            pq.ParquetWriter(part, schema, compression="zstd") as writer,
        ):
            while chunk := list(islice(rows, _ROWS)):
                lines = [_row(record) for record in chunk]
                arrays = [arrow_array([line[f.name] for line in lines], f.type) for f in own]
                arrays += arrays_of(columns, [record.values for record in chunk])
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return target


def unit_records(folder: Path) -> Iterator[UnitRecord]:
    """The last record of every unit that has an outcome of its own."""
    for record in last_records(folder / "ledger.jsonl"):
        if record.outcome not in ("split", "whole"):
            yield record


def _row(record: UnitRecord) -> dict[str, Any]:
    table, frames = record.files.get("parquet"), record.files.get("frames")
    return record.to_dict() | {
        "first_frame": record.first,
        "file": None if table is None else table.path,
        "file_sha256": None if table is None else table.sha256,
        "frames_file": None if frames is None else frames.path,
        "frames_file_sha256": None if frames is None else frames.sha256,
        "finished_ms": round(record.finished_s * 1000),
    }


class Verified(NamedTuple):
    """The outcome of `verify`.

    Attributes:
        files: how many were read.
        faults: each in words.
        done: inputs with all their results.
        failed: inputs that lack some: they have failed, or a fault has voided them.
    """

    files: int
    faults: list[str]
    done: int
    failed: int


def verify(out: str | Path) -> Verified:
    """Read every result again and hold it against the ledger.

    Results that do not agree are written down as lost: `--resume` does them again.

    Args:
        out: folder of a batch, or URL of its bucket.

    Raises:
        HeadraceError: there is no batch in the folder, or another run is writing it.
        StorageError: the ledger cannot be written.
    """
    with results_place(out) as (folder, bucket):
        return _verified(folder, bucket, out)


def _verified(folder: Path, bucket: Bucket | None, out: str | Path) -> Verified:
    held = BatchFolder(folder, read_run(folder, out)["run"], bucket)
    try:
        faults: list[str] = []
        known: dict[str, str | None] = {}
        inputs: set[str] = set()
        failed: set[str] = set()
        for record in unit_records(folder):
            inputs.add(record.input)
            if record.outcome != "done":
                failed.add(record.input)
                continue
            problems = [
                f"it has no table of {name}"
                for kind, name in TABLES.items()
                if kind not in record.files
            ]
            new = list(problems)
            for stored in record.files.values():
                seen = stored.path in known  # a pack has one fault, and loses all its units
                if not seen:
                    known[stored.path] = _fault_of(held, stored)
                if known[stored.path]:
                    problems.append(f"{stored.path} {known[stored.path]}")
                    new += [] if seen else problems[-1:]
            faults += [f"{quoted(record.input)}: {text}" for text in new]
            if problems:
                failed.add(record.input)
                held.append(record.changed(outcome="lost", files={}, error=problems[0]))
        faults += [
            f"{name}: no line of the ledger knows it"
            for name in held.read_as_tables()
            if name not in known
        ]
        if faults:
            held.save()
            write_manifest(folder)
            held.publish(MANIFEST)
        return Verified(len(known), faults, len(inputs) - len(failed), len(failed))
    finally:
        held.close()


def _fault_of(held: BatchFolder, stored: StoredFile) -> str | None:
    try:
        with held.at_hand(stored.path) as path:
            return _fault(path, stored)
    except FileNotFoundError:
        return "is gone"


def _fault(path: Path, stored: StoredFile) -> str | None:
    try:
        size, digest = hash_file(path)
    except OSError as error:
        return "is gone" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
    if size != stored.size_bytes or digest != stored.sha256:
        return "has changed since it was committed"
    if stored.rows is not None and table_rows(path) != stored.rows:
        return "has another number of rows"
    return None

"""Tables of units: Parquet or Arrow, read by content, and many small ones made one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace._core.lazy import import_extra
from headrace.batches.units import Content

TABLES = {"parquet": "objects", "frames": "frames"}
"""Kind of table -> the folder of its files."""

_ARROW = b"ARROW1"
_ROWS = 65536  # of a group


def read_table(content: Content) -> Any:
    """Read a Parquet or Arrow file, or its bytes, as a `pyarrow.Table`.

    Raises:
        OSError: it is neither, or damaged.
    """
    pa, pq = import_extra("pyarrow", "arrow"), import_extra("pyarrow.parquet", "arrow")

    try:
        source = pa.BufferReader(content) if isinstance(content, bytes) else pa.OSFile(str(content))
        with source:
            head = source.read(len(_ARROW))
            source.seek(0)
            if head == _ARROW:
                return pa.ipc.open_file(source).read_all()
            with pq.ParquetFile(source) as file:
                return file.read()
    except pa.ArrowException as error:
        raise OSError(f"no table: {error}") from error


def is_arrow(path: Path) -> bool:
    """Whether a table is an Arrow file: it is made Parquet before readers see it."""
    with open(path, "rb") as file:
        return file.read(len(_ARROW)) == _ARROW


def table_rows(path: Path) -> int:
    """Rows of a table, read from its end.

    Raises:
        OSError: it is no table.
    """
    pa, pq = import_extra("pyarrow", "arrow"), import_extra("pyarrow.parquet", "arrow")

    try:
        if is_arrow(path):
            with pa.OSFile(str(path)) as file:
                return int(pa.ipc.open_file(file).read_all().num_rows)
        return int(pq.read_metadata(path).num_rows)
    except pa.ArrowException as error:
        raise OSError(f"no table: {error}") from error


def write_joined(tables: Iterable[Any], path: Path) -> int:
    """Write the rows of tables, one behind the other, into a Parquet file on the disk.

    Args:
        tables: of one schema; its metadata is that of the first.
        path: the file.

    Returns:
        The rows.

    Raises:
        OSError: it cannot be written.
    """
    pa, pq = import_extra("pyarrow", "arrow"), import_extra("pyarrow.parquet", "arrow")

    waiting: list[Any] = []
    writer: Any = None
    total = rows = 0
    with open(path, "wb") as file:
        for table in tables:
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema, compression="zstd")
            waiting.append(table)
            rows += table.num_rows
            if rows >= _ROWS:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
                total, rows, waiting = total + rows, 0, []
        if writer is not None:
            writer.write_table(pa.concat_tables(waiting).combine_chunks()) if waiting else None
            writer.close()
        file.flush()
        os.fsync(file.fileno())
    return total + rows

"""Arrow and Parquet: one row per object. The columns are those of `headrace.meta.table`.

Batches have tables of frames, too; their columns are those of `headrace.meta.frame_table`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from headrace._core.files import PartFile
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, create, part_of
from headrace.meta import FrameMeta
from headrace.meta.frame_table import frame_schema, frames_to_arrow
from headrace.meta.table import arrow_schema, to_arrow

MAX_FRAMES, MAX_ROWS = 1024, 16384  # held before they are written: a few MB
_ARROW_MAGIC = b"ARROW1\0\0"
_JOURNAL_S = 1.0  # what a run that is killed may lose


class _QuietFile(io.RawIOBase):
    """A file that keeps an error of `write` for `check`.

    pyarrow's own C++ exception for a failed write ends the process where GStreamer is loaded, which
    brings an unwinder of its own.
    """

    def __init__(self, fd: int) -> None:
        self._file = os.fdopen(fd, "wb")
        self._error: OSError | None = None
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._size += size
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error
        return size

    def tell(self) -> int:
        return self._size

    def check(self) -> None:
        """Raise the error of a write.

        Raises:
            OSError: there was one.
        """
        if self._error is not None:
            raise self._error

    def push(self) -> None:
        """Hand all bytes so far to the system.

        Raises:
            OSError: this, or an earlier write, failed.
        """
        self.check()
        self._file.flush()

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()


class _TableSink(Sink):
    """A table written in pieces; readable once it is finished and renamed from `NAME.part`.

    Args:
        journal: True writes a stream of Arrow's to `NAME.part`, a second behind the frames at
            most, and makes the table of it at the end: a run that is killed loses no row of it.
        metadata: of the file, beside that of the schema.
        constants: a table of one row: columns that every row has, behind those of the schema.

    Raises:
        MissingExtraError: pyarrow is not installed.
        MediaError: it cannot be created.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        journal: bool = False,
        metadata: Mapping[str, str] | None = None,
        constants: Any = None,
    ) -> None:
        super().__init__(name, path)
        self._constants = constants
        schema = self._columns()
        for field in () if constants is None else constants.schema:
            schema = schema.append(field)
        self._schema = schema.with_metadata({**schema.metadata, **(metadata or {})})
        self._part = part_of(path, name, self.kind)
        self._file = _QuietFile(create(self._part.path, name, follow=False))
        self._journal = journal
        self._pushed = monotonic()
        self._writer: Any = (
            self._open_journal() if journal else self._open_writer(self._file, self._schema)
        )
        self._waiting: list[FrameMeta] = []
        self._rows = 0

    @staticmethod
    @abstractmethod
    def _open_writer(file: Any, schema: Any) -> Any:
        """The writer of this kind of table into an open file."""

    def _columns(self) -> Any:
        """The schema of the rows."""
        return arrow_schema()

    def _rows_of(self, metas: Sequence[FrameMeta]) -> Any:
        """The rows of frames as a table."""
        return to_arrow(metas)

    def _open_journal(self) -> Any:
        import pyarrow

        return pyarrow.ipc.new_stream(self._file, self._schema)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        light = self._light(meta)
        if not len(light.objects):
            return
        self._wait(light, len(light.objects))

    def _wait(self, light: FrameMeta, rows: int) -> None:
        self._waiting.append(light)
        self._rows += rows
        late = self._journal and monotonic() - self._pushed >= _JOURNAL_S
        if late or self._rows >= MAX_ROWS or len(self._waiting) >= MAX_FRAMES:
            self._flush()

    def _light(self, meta: FrameMeta) -> FrameMeta:
        """Objects to be written, without the fields that a table has no column for."""
        objects = copy.copy(meta.objects)
        objects.masks = objects.border_colors = None
        objects.segmentations, objects.tensors, objects.user = {}, {}, {}
        finite = np.isfinite(objects.rects).all(axis=1) & np.isfinite(objects.confidences)
        if not finite.all():
            self._lost += int(len(finite) - finite.sum())
            objects.keep(finite)
        return FrameMeta(
            meta.source,
            meta.source_id,
            meta.frame,
            meta.pts_ns,
            meta.width,
            meta.height,
            inferred=meta.inferred,
            objects=objects,
            wall_ns=meta.wall_ns,
            fps=meta.fps,
        )

    def _flush(self) -> None:
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if waiting:
            rows = self._rows_of(waiting)
            for column in () if self._constants is None else self._constants.schema:
                value = self._constants[column.name].combine_chunks()
                rows = rows.append_column(column, value.take([0] * rows.num_rows))
            self._writer.write_table(rows.replace_schema_metadata(self._schema.metadata))
            self._file.check()
        if self._journal:
            self._file.push()
            self._pushed = monotonic()

    def _finish(self) -> None:
        if self._journal:
            self._finish_journal()
            return
        if self._broken:  # half a table cannot be read
            self._give_up()
            return
        try:
            self._flush()
            self._writer.close()  # writes the index: without it nothing can be read
            self._file.check()
            self._file.close()
        except OSError:
            self._give_up()
            raise
        self._part.finish()

    def _finish_journal(self) -> None:
        """Make the table of the journal; where that fails, the journal stays."""
        try:
            if not self._broken:
                self._flush()
                self._writer.close()
                self._file.push()
                table_of_journal(self._part.path, self._part.target)
        finally:
            with contextlib.suppress(OSError):  # the lock ends with it
                self._file.close()

    def _give_up(self) -> None:
        self.kept = 0
        for item in (self._writer, self._file):
            with contextlib.suppress(OSError):  # what it still holds does not fit either
                item.close()
        self._part.discard()


class ParquetSink(_TableSink):
    """A Parquet file, compressed with zstd."""

    kind = "parquet"

    @staticmethod
    def _open_writer(file: Any, schema: Any) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema, compression="zstd")


class ArrowSink(_TableSink):
    """An Arrow IPC file (Feather 2)."""

    kind = "arrow"

    @staticmethod
    def _open_writer(file: Any, schema: Any) -> Any:
        import pyarrow

        return pyarrow.ipc.new_file(file, schema)


class _FrameRows(_TableSink):
    """One row for each frame, also for those without objects."""

    def _columns(self) -> Any:
        return frame_schema()

    def _rows_of(self, metas: Sequence[FrameMeta]) -> Any:
        return frames_to_arrow(metas)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        self._wait(self._light(meta), 1)


class FrameParquetSink(_FrameRows, ParquetSink):
    """A Parquet file of frames."""


class FrameArrowSink(_FrameRows, ArrowSink):
    """An Arrow IPC file of frames."""


def table_of_journal(journal: Path, target: Path, *, if_any: bool = False) -> int:
    """Make a table of the rows in a journal, and remove the journal.

    Args:
        journal: a stream of Arrow's, which may break off.
        target: the table; its kind by its name.
        if_any: True makes no table without rows.

    Returns:
        Its rows.

    Raises:
        OSError: the table cannot be written; the journal stays.
        ValueError: the file is no journal.
    """
    reader = _reader_of(journal)
    batches = _batches(reader)
    first = next(batches, None)
    rows = 0
    if first is not None or not if_any:
        kind = ParquetSink if target.suffix.lower() == ".parquet" else ArrowSink
        temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with PartFile(target, temporary):
            file = _QuietFile(os.open(temporary, flags, 0o666))
            writer = kind._open_writer(file, reader.schema)
            try:
                for group in _groups([] if first is None else itertools.chain([first], batches)):
                    writer.write_table(group)
                    file.check()
                    rows += group.num_rows
                writer.close()
                file.push()
            finally:
                with contextlib.suppress(OSError):
                    file.close()
    reader.close()
    journal.unlink(missing_ok=True)
    return rows


def _reader_of(journal: Path) -> Any:
    """Open a journal, or the part of an Arrow file: that is a stream behind eight bytes."""
    import pyarrow

    file = journal.open("rb")
    try:
        if file.read(len(_ARROW_MAGIC)) != _ARROW_MAGIC:
            file.seek(0)
        return pyarrow.ipc.open_stream(file)
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        file.close()
        raise ValueError(f"{journal} is no journal of a table") from error


def _batches(reader: Any) -> Iterator[Any]:
    """The record batches of a journal, up to the first that is not whole."""
    import pyarrow

    while True:
        try:
            yield reader.read_next_batch()
        except (StopIteration, pyarrow.ArrowException, OSError, EOFError):
            return


def _groups(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of some thousand rows: small groups of rows are slow to read."""
    import pyarrow

    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(item.num_rows for item in held) >= MAX_ROWS:
            yield pyarrow.Table.from_batches(held)
            held = []
    if held:
        yield pyarrow.Table.from_batches(held)

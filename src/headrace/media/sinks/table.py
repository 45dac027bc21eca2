"""Arrow and Parquet: one row per object. The columns are those of `headrace.meta.table`."""

from __future__ import annotations

import contextlib
import copy
import io
import os
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, create, part_of
from headrace.meta import FrameMeta
from headrace.meta.table import arrow_schema, to_arrow

MAX_FRAMES, MAX_ROWS = 1024, 16384  # held before they are written: a few MB


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

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()


class _TableSink(Sink):
    """A table written in pieces; readable once it is finished and renamed from `NAME.part`.

    Raises:
        MissingExtraError: pyarrow is not installed.
        MediaError: it cannot be created.
    """

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name, path)
        self._schema = arrow_schema()
        self._part = part_of(path, name, self.kind)
        self._file = _QuietFile(create(self._part.path, name, follow=False))
        self._writer: Any = self._open_writer()
        self._waiting: list[FrameMeta] = []
        self._rows = 0

    @abstractmethod
    def _open_writer(self) -> Any: ...

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        light = self._light(meta)
        if not len(light.objects):
            return
        self._waiting.append(light)
        self._rows += len(light.objects)
        if self._rows >= MAX_ROWS or len(self._waiting) >= MAX_FRAMES:
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
            objects=objects,
        )

    def _flush(self) -> None:
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if waiting:
            self._writer.write_table(to_arrow(waiting))
            self._file.check()

    def _finish(self) -> None:
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

    def _give_up(self) -> None:
        self.kept = 0
        for item in (self._writer, self._file):
            with contextlib.suppress(OSError):  # what it still holds does not fit either
                item.close()
        self._part.discard()


class ParquetSink(_TableSink):
    """A Parquet file, compressed with zstd."""

    kind = "parquet"

    def _open_writer(self) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(self._file, self._schema, compression="zstd")


class ArrowSink(_TableSink):
    """An Arrow IPC file (Feather 2)."""

    kind = "arrow"

    def _open_writer(self) -> Any:
        import pyarrow

        return pyarrow.ipc.new_file(self._file, self._schema)

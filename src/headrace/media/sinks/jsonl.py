"""JSON Lines: one object per frame. The format is documented in docs/formats.md and stable."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from pathlib import Path

from headrace._core import _native
from headrace._core.errors import MediaError
from headrace._core.files import cut_torn_line
from headrace.media.frame import Frame
from headrace.media.sinks.base import Sink, create, make_folder, require_there, write_all
from headrace.media.sinks.rows import Components, finite_rows, label_of
from headrace.meta import FrameMeta
from headrace.meta.fields import COMPONENT, FIELDS, TRACK, RecordField, extras_in, has_extras
from headrace.meta.json_forms import quoted_text, segmentations_json, to_json
from headrace.meta.results import UNTRACKED_OBJECT_ID


def _keys(row: RecordField) -> tuple[bytes, ...]:
    return tuple(f',"{name}":'.encode() for name in row.names)


def _layout(rows: Sequence[RecordField]) -> tuple[tuple[tuple[bytes, ...], int], ...]:
    return tuple((_keys(row), row.digits) for row in rows)


_NUMBERS = [row for row in FIELDS if row.array and not row.tracked]
_OF_TRACK = [row for row in FIELDS if row.array and row.tracked]
_LAYOUTS = _layout(_NUMBERS), _layout(_OF_TRACK)
_ARRAYS = attrgetter(*(row.array for row in _NUMBERS + _OF_TRACK))
_TRACK_KEY = _keys(TRACK)[0]


class _Heads(dict[tuple[int, int], bytes]):
    """The constant beginning of each class's objects, by (component id, class id)."""

    labels: Mapping[int, Sequence[str]] = {}

    def __missing__(self, key: tuple[int, int]) -> bytes:
        label = quoted_text(label_of(self.labels, key))
        self[key] = _utf8(f'{{"class_id":{key[1]},"label":{label}')
        return self[key]


class LineWriter:
    """Makes the lines."""

    def __init__(self) -> None:
        self._heads = _Heads()
        self._components = Components()

    def line(self, meta: FrameMeta) -> tuple[bytes, int]:
        """The line of one frame with its line feed, and how many objects had to be left out."""
        several = self._components.see(meta)
        objects, lost = self._objects(meta, several) if len(meta.objects) else (b"", 0)
        maps = ""
        if meta.analytics is not None:
            maps = f',"analytics":{to_json(meta.analytics.to_dict())}'
        if meta.segmentations:
            maps += f',"segmentations":{segmentations_json(meta.segmentations)}'
        if not meta.inferred:
            maps += ',"inferred":false'
        if meta.failed:
            maps += f',"failed":{to_json(meta.failed)}'
        wall = f'"wall_ns":{meta.wall_ns},' if meta.live and meta.wall_ns is not None else ""
        head = (
            f'{{"source":{quoted_text(meta.source)},"source_id":{meta.source_id},'
            f'"frame":{meta.frame},"pts_ns":{meta.pts_ns},{wall}'
            f'"width":{meta.width},"height":{meta.height},"objects":['
        )
        return b"%b%b]%b}\n" % (_utf8(head), objects, _utf8(maps) if maps else b""), lost

    def _objects(self, meta: FrameMeta, several: bool) -> tuple[bytes, int]:
        """The members of the list, and how many objects are left out."""
        objects, heads = meta.objects, self._heads
        if heads.labels != objects.labels:
            heads.clear()
            heads.labels = dict(objects.labels)
        rows = [COMPONENT] if several else []
        if has_extras(objects):
            rows += extras_in(objects)
        return _native.json_objects(
            heads,
            objects.component_ids,
            objects.class_ids,
            objects.object_ids,
            UNTRACKED_OBJECT_ID,
            _TRACK_KEY,
            *_LAYOUTS,
            _ARRAYS(objects),
            _tails(meta, rows) if rows else [],
        )


def _tails(meta: FrameMeta, rows: Sequence[RecordField]) -> list[bytes]:
    """For each object that is written, the members behind box and track, each with its comma."""
    kept = finite_rows(meta).kept
    indices: Sequence[int] = range(len(meta.objects)) if kept is None else kept
    positions = {index: position for position, index in enumerate(indices)}
    parts = [""] * len(indices)
    for row in rows:
        form, value_of, head = row.json, row.value, f',"{row.names[0]}":'
        assert form is not None
        assert value_of is not None
        for position, index in enumerate(indices):
            value = value_of(meta, index)
            if row.refers and value is not None:
                value = positions.get(value)
            if value is not None:
                parts[position] += head + form(value)
    return [_utf8(text) for text in parts]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


_stdout: int | None = None


@contextmanager
def standard_output_is(fd: int) -> Iterator[None]:
    """Meanwhile lines for `-` go to the descriptor `fd`, and standard output is free for talk."""
    global _stdout
    before, _stdout = _stdout, fd
    try:
        yield
    finally:
        _stdout = before


class JsonLinesSink(Sink):
    """Writes each line whole and at once, so readers may follow the file while it grows.

    Args:
        path: the file; `-` writes to standard output.
        append: True goes on behind the lines that the file has; the half of a line that a killed
            run left is cut off.
    """

    kind = "jsonl"

    def __init__(self, name: str, path: Path, *, append: bool = False) -> None:
        super().__init__(name, path)
        self._writer = LineWriter()
        self._size = 0
        self._own = str(path) != "-"
        if not self._own:
            if _stdout is not None:
                self._fd = _stdout
                return
            if sys.stdout is None:  # started with >&-
                raise MediaError("standard output is closed", where=name)
            sys.stdout.flush()
            self._fd = sys.stdout.fileno()
            return
        make_folder(path.parent, name)
        self._fd = create(path, name, keep=append)
        self.quick = stat.S_ISREG(os.fstat(self._fd).st_mode)
        if append and self.quick:
            self._continue()

    def _continue(self) -> None:
        """Go to the end of the file's lines."""
        torn = cut_torn_line(self._fd)
        try:
            json.loads(torn)
        except ValueError:
            if torn:
                text = f"the last {len(torn)} bytes were half a line of a run that was cut off: "
                self._notice("output-recovered", "warning", f"{text}they were removed")
        else:  # whole, but for its end
            write_all(self._fd, torn + b"\n")
        self._size = os.lseek(self._fd, 0, os.SEEK_END)

    def write_lines(self, lines: bytes) -> None:
        """Append whole lines that another process made.

        Raises:
            MediaError: as `write`.
        """
        try:
            self._put(lines)
        except OSError as error:
            self._broken = True
            with suppress(MediaError):  # it would be about the same cause
                self.close()
            raise self._write_error(error, "lines of another process") from error
        self.frames += lines.count(b"\n")

    def write_batch(self, frames: Sequence[Frame], metas: Sequence[FrameMeta]) -> None:
        """Append the lines of all frames at once, to a file.

        Raises:
            MediaError: as `write`; the lines before the one that failed are kept.
        """
        if not self._own or self._closed:
            super().write_batch(frames, metas)
            return
        records: list[tuple[bytes, int]] = []
        try:
            records.extend(map(self._writer.line, metas))  # keeps those before one that fails
        finally:
            self._put_all(metas, records)

    def _put_all(self, metas: Sequence[FrameMeta], records: Sequence[tuple[bytes, int]]) -> None:
        """Write the lines of the first frames; if not all fit, one after the other."""
        with suppress(OSError):  # nothing of it is in the file then
            self._put(b"".join(line for line, _ in records))
            self._lost += sum(lost for _, lost in records)
            self.frames += len(records)
            return
        for meta, (line, lost) in zip(metas, records, strict=False):
            self._append(meta, partial(self._put, line))
            self._lost += lost

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        line, lost = self._writer.line(meta)
        self._put(line)
        self._lost += lost

    def _put(self, data: bytes) -> None:
        if self._own:
            require_there(self._fd)
        write_all(self._fd, data, size=self._size if self._own else None)
        self._size += len(data)

    def _finish(self) -> None:
        if not self._own:
            return
        try:
            require_there(self._fd)
        finally:
            os.close(self._fd)  # network file systems report a full disk here

"""The ledger of a batch: one line for each outcome, appended, never changed.

A unit is done when its line is there. A killed run leaves at most one torn line at the end, which
the next one cuts off.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Literal

from headrace._core.errors import HeadraceError
from headrace._core.files import os_reason
from headrace._core.json_record import JsonRecord, RecordError
from headrace.batches.units import BatchUnit, unit_id, unpacked
from headrace.media.sinks.base import require_there, write_all

_UNIT = re.compile(r"[0-9a-f]{16}")
_SYNC_S = 1.0  # a power failure costs the work of the last second; a killed process nothing

Recorded = Literal["done", "failed", "split", "whole", "lost", "packed"]


class StoredFile(JsonRecord, frozen=True, forbid_unknown_fields=True):
    """A committed result file.

    Attributes:
        path: below the folder of the batch, with `/`.
        size_bytes, sha256: of its content.
        rows: of a Parquet file.
    """

    path: str
    size_bytes: int
    sha256: str
    rows: int | None = None


class UnitRecord(JsonRecord, frozen=True, forbid_unknown_fields=True):
    """One line of the ledger.

    Attributes:
        unit: id of the unit.
        input: its path or URL.
        outcome: `done`; `failed`; `split`: its spans are units of their own; `whole`: they did not
            fit, their results are void; `lost`: its results are damaged or gone; `packed`: the
            tables of `units` are one now, the line is that of no unit.
        first: number of its first frame; None of a whole input.
        spans: of `split`, see `units.packed`.
        finished_s: seconds since 1970.
        values: of the user's columns.
        units: ids of those that were packed.
    """

    unit: str
    input: str
    outcome: Recorded
    first: int | None = None
    sha256: str = ""
    size_bytes: int = 0
    frames: int = 0
    objects: int = 0
    seconds: float = 0.0
    attempts: int = 1
    error: str = ""
    warnings: tuple[str, ...] = ()
    files: Mapping[str, StoredFile] = {}
    spans: tuple[list[int], ...] = ()
    finished_s: float = 0.0
    values: tuple[str | int | float | bool | None, ...] = ()
    units: tuple[str, ...] = ()


class Ledger:
    """Reads the lines of a ledger, and appends to it.

    Memory is some 150 bytes for each unit, 300 where it is packed, whatever its line has.

    Args:
        path: the file; it is made if it is not there.

    Attributes:
        outcomes: id -> the last outcome.
        split: id of a video -> the units of its spans.
        packs: id of a pack -> ids of its units.
        pack_of: id of a unit -> the pack that has its rows.

    Raises:
        HeadraceError: a line in the middle is damaged, or the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[bytes, str] = {}
        self.split: dict[bytes, list[BatchUnit]] = {}
        self.packs: dict[bytes, list[bytes]] = {}
        self.pack_of: dict[bytes, bytes] = {}
        self._synced = 0.0
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.fdopen(os.open(path, flags, 0o666), "a+b", buffering=0)
            for record in read_ledger(path):  # before anything is cut: it may be no ledger
                self._see(record)
            self._cut_torn_end()
        except OSError as error:
            raise ledger_error(error, path) from error

    def _cut_torn_end(self) -> None:
        """Cut the bytes that a killed writer left behind the last line feed.

        Raises:
            HeadraceError: they are none of a ledger.
        """
        size = end = self._file.seek(0, os.SEEK_END)
        tail = b""
        while end:
            start = max(0, end - 65536)
            self._file.seek(start)
            before, found, behind = self._file.read(end - start).rpartition(b"\n")
            tail, end = behind + tail, start
            if found:
                end += len(before) + 1
                break
        if b"\0" not in tail and not tail.startswith(b'{"unit":"'[: len(tail)]):
            raise HeadraceError(
                "this is no line of a ledger, and would be cut off",
                where=str(self.path),
                fix="choose another folder for the results",
            )
        if end < size:
            self._file.truncate(end)

    def _see(self, record: UnitRecord) -> None:
        key = bytes.fromhex(record.unit)
        if record.outcome == "packed":
            self.packs[key] = [bytes.fromhex(unit) for unit in record.units]
            self.pack_of.update(dict.fromkeys(self.packs[key], key))
            return
        self.outcomes[key] = record.outcome
        self.pack_of.pop(key, None)  # it has run again
        if record.outcome == "split":
            spans = map(unpacked, record.spans)
            self.split[key] = [
                BatchUnit(record.input, span, False, record.sha256, record.size_bytes)
                for span in spans
            ]
        elif record.outcome == "whole":
            for unit in self.split.pop(key, ()):
                self.outcomes.pop(bytes.fromhex(unit.id), None)

    def outcome(self, unit: str) -> str | None:
        """The last outcome of a unit; None if it has none."""
        return self.outcomes.get(bytes.fromhex(unit))

    def spans_of(self, name: str) -> list[BatchUnit]:
        """The units that an input was split into; empty if it was not."""
        return self.split.get(bytes.fromhex(unit_id(name)), [])

    def append(self, record: UnitRecord) -> None:
        """Add a line, whole or not at all.

        Raises:
            HeadraceError: it cannot be written.
        """
        size = self._file.seek(0, os.SEEK_END)
        try:
            require_there(self._file.fileno())
            write_all(self._file.fileno(), record.to_json() + b"\n", size=size)
            if monotonic() - self._synced > _SYNC_S:
                os.fsync(self._file.fileno())
                self._synced = monotonic()
        except OSError as error:
            raise ledger_error(error, self.path) from error
        self._see(record)

    def counts(self) -> Counter[str]:
        """Number of units by outcome."""
        return Counter(self.outcomes.values())

    def close(self) -> None:
        """Bring everything to the disk.

        Raises:
            OSError: that cannot be done.
        """
        if not self._file.closed:
            with self._file:
                os.fsync(self._file.fileno())


def ledger_error(error: OSError, path: Path) -> HeadraceError:
    """The error of a ledger that cannot be read or written."""
    return HeadraceError(
        f"the ledger cannot be kept: {os_reason(error)}",
        where=str(path),
        fix="units that have a line are kept; go on with --resume when this is put right",
    )


def read_ledger(path: Path) -> Iterator[UnitRecord]:
    """Every whole line of a ledger, in order.

    Raises:
        HeadraceError: a line is damaged.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # still being written, or torn
            try:
                record = UnitRecord.from_json(line)
                _check(record)
            except (RecordError, ValueError) as error:
                raise HeadraceError(
                    f"this line is damaged: {error}",
                    where=f"{path}:{number}",
                    fix="remove the line: its unit runs again with --resume",
                ) from error
            yield record


def _check(record: UnitRecord) -> None:
    """Refuse a record that would lead elsewhere.

    Raises:
        ValueError: its id, a span or a path is none.
    """
    if not all(map(_UNIT.fullmatch, (record.unit, *record.units))):
        raise ValueError("unit: no 16 hexadecimal digits")
    if any(len(numbers) not in (3, 5) for numbers in record.spans):
        raise ValueError("spans: 3 or 5 numbers each")
    for stored in record.files.values():
        if stored.path.startswith("/") or ".." in stored.path.split("/"):
            raise ValueError("files: a path out of the folder")


def last_records(path: Path) -> Iterator[UnitRecord]:
    """The last record of each unit, in order; spans that are void are left out.

    The files of one that was packed are those of its pack. The ledger is read twice, so that memory
    is some 300 bytes for each unit.

    Raises:
        HeadraceError: a line is damaged.
        OSError: the file cannot be read.
    """
    last: dict[bytes, int] = {}
    spans: dict[bytes, list[bytes]] = {}
    packed: dict[bytes, Mapping[str, StoredFile]] = {}
    for number, record in enumerate(read_ledger(path)):
        key = bytes.fromhex(record.unit)
        if record.outcome == "packed":
            packed.update(dict.fromkeys(map(bytes.fromhex, record.units), record.files))
            continue
        last[key] = number
        packed.pop(key, None)
        if record.outcome == "split":
            starts = (numbers[0] for numbers in record.spans)
            spans[key] = [bytes.fromhex(unit_id(record.input, start)) for start in starts]
        elif record.outcome == "whole":
            for span in spans.pop(key, ()):
                last.pop(span, None)
    for number, record in enumerate(read_ledger(path)):
        key = bytes.fromhex(record.unit)
        if record.outcome != "packed" and last.get(key) == number:
            yield record.changed(files={**record.files, **packed[key]}) if key in packed else record

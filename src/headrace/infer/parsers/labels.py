"""The label file: one record per line, fields separated by `;`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headrace._core import formats
from headrace._core.errors import ConfigError
from headrace._core.files import os_reason
from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.text import quoted

_NUMBERED = re.compile(r"\s*([0-9]+)[\s:.,)]+\S")


class Labels(PlainRecord, frozen=True):
    """The records of a label file.

    Attributes:
        records: the fields of each record. Detectors: record `class`, field 0. Classifiers: record
            `attribute` (output layer), field `class`.
        notices: bytes that had to be replaced, and what makes other names than it seems.
    """

    records: tuple[tuple[str, ...], ...] = ()
    notices: tuple[Finding, ...] = ()

    @property
    def detector(self) -> list[str]:
        """The name of each class of a detector."""
        return [fields[0] for fields in self.records]

    def __len__(self) -> int:
        return len(self.records)


def class_name(names: Sequence[str], class_id: int) -> str:
    """The name of a class, or `class 7` where there is none."""
    return names[class_id] if 0 <= class_id < len(names) else f"class {class_id}"


def load_labels(path: str | Path) -> Labels:
    """Read a label file.

    No quoting, no comments, nothing is trimmed: a carriage return stays part of the last field, a
    line of blanks is a record, a trailing `;` adds an empty field. Only completely empty lines are
    skipped, which shifts later classes. Bytes that are not UTF-8 become U+FFFD, with a notice, so
    that labels can always be written and drawn.

    Raises:
        ConfigError: the file cannot be read.
    Source: spec B.8.
    """
    try:
        raw = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the label file cannot be read: {os_reason(error)}",
            where=str(path),
            expected="a text file with one label per line",
            fix="check labelfile-path or --labels; a relative path is taken from the folder of the "
            "config that names it, one of the command line or a program from the working directory",
            code="labels-unreadable",
        ) from error
    if b"\0" in raw and (words := formats.model_words(Path(path))) is not None:
        raise ConfigError(
            f"{words}, not a label file.",
            where=str(path),
            expected="a text file with one label per line",
            fix="check labelfile-path or --labels",
            code="labels-unreadable",
        )
    return _parse(raw, str(path))


def _parse(raw: bytes, where: str) -> Labels:
    notices = []

    def warn(line: int, text: str, code: str) -> None:
        notices.append(Finding(code, "warning", text, f"{where}:{line}"))

    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = raw.decode(errors="replace")
        odd_byte = f"byte 0x{raw[error.start]:02x} is not UTF-8; such bytes become"
        line = raw.count(b"\n", 0, error.start) + 1
        warn(line, f"{odd_byte} \N{REPLACEMENT CHARACTER}", code="labels-encoding")
    if text.startswith("\ufeff"):
        odd_mark = "a byte order mark is part of the first label: save the file without BOM"
        warn(1, odd_mark, code="labels-byte-order-mark")
    lines = text.split("\n")
    if odd := next((n for n, line in enumerate(lines, 1) if line.endswith("\r")), None):
        odd_end = "a carriage return is part of the label: save the file with LF line ends"
        warn(odd, odd_end, code="labels-carriage-return")
    used = text.rstrip("\n").split("\n")
    if "" in used[:-1]:
        number = used.index("") + 1
        skipped = "the line is empty and skipped: names behind it are one class earlier"
        warn(number, skipped, code="labels-empty-line")
    numbers = [int(match[1]) if (match := _NUMBERED.match(line)) else -1 for line in used]
    if len(used) > 2 and numbers in (list(range(len(used))), list(range(1, len(used) + 1))):
        numbered = f"labels begin with their number, which is part of the name: '{quoted(used[0])}'"
        warn(1, numbered, code="labels-numbered")
    return Labels(tuple(tuple(line.split(";")) for line in lines if line), tuple(notices))

"""The label file: one record per line, fields separated by `;`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from noria._core.errors import ConfigError
from noria._core.notices import Notice
from noria.config.enums import NetworkType
from noria.infer.parsers.text import CTC

if TYPE_CHECKING:
    from noria.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Labels:
    """The records of a label file.

    Attributes:
        records: the fields of each record. Detectors: record `class`, field 0. Classifiers: record
            `attribute` (output layer), field `class`.
        notices: bytes that had to be replaced.
    """

    records: tuple[tuple[str, ...], ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def detector(self) -> list[str]:
        """The name of each class of a detector."""
        return [fields[0] for fields in self.records]

    def __len__(self) -> int:
        return len(self.records)


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
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"the label file cannot be read: {reason}",
            where=str(path),
            expected="a text file with one label per line",
            fix="check labelfile-path; a relative path is taken from the config file's folder",
        ) from error
    return _parse(raw, str(path))


def _parse(raw: bytes, where: str) -> Labels:
    notices: tuple[Notice, ...] = ()
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = raw.decode(errors="replace")
        line = raw.count(b"\n", 0, error.start) + 1
        notices = (
            Notice(
                "warning",
                f"byte 0x{raw[error.start]:02x} is not UTF-8; such bytes become"
                " \N{REPLACEMENT CHARACTER}",
                where=f"{where}:{line}",
            ),
        )
    return Labels(tuple(tuple(line.split(";")) for line in text.split("\n") if line), notices)


def label_notices(cfg: ModelConfig, labels: Labels) -> list[Notice]:
    """A warning if there are fewer labels than classes, or a classifier's file looks wrong."""
    where = str(cfg.labelfile_path)
    count = len(labels)
    if cfg.network_type is NetworkType.CLASSIFIER:
        if cfg.parse_classifier_func_name == CTC:  # one character a line
            return []
        if count > 1 and all(len(fields) == 1 for fields in labels.records):
            text = f"{count} lines of one label each: a classifier's label file has one line for"
            text += " each attribute, its classes separated by ';', so only class 0 has a name"
            return [Notice("warning", text, where)]
        return []
    if count >= cfg.num_detected_classes:
        return []
    said = "1 label" if count == 1 else f"{count} labels"
    text = f"{said} for num-detected-classes={cfg.num_detected_classes}"
    return [Notice("warning", f"{text}: objects of the other classes have no name", where)]

"""Calibration tables in TensorRT's text format: the scale of each activation.

    TRT-100300-EntropyCalibration2
    images: 3c008912

The first line is `TRT-<version>-<algorithm>`. Every other line is a tensor's name and the bits of
its float32 scale in big-endian hexadecimal; a name may hold colons and blanks, so a line is split
at its last `": "`. A value is `scale * int8`, and the range of the tensor is 127 times its scale.

Source: custom-library facts 3.2, TensorRT facts 3.6.
"""

from __future__ import annotations

import math
import os
import re
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from headrace._core import formats
from headrace._core.errors import EngineError
from headrace._core.files import os_errors, write_atomically

MAX_TABLE_BYTES = 64 * 2**20
DEFAULT_HEADER = "TRT-100300-EntropyCalibration2"
"""The header for nvinfer and trtexec, which have entropy-2 calibrators alone."""

ALGORITHMS = ("EntropyCalibration2", "EntropyCalibration", "MinMaxCalibration", "LegacyCalibration")
_HEADER = re.compile(r"TRT-(?P<version>[0-9]{1,9})-(?P<algorithm>[A-Za-z0-9_]{1,64})\Z")
_BITS = re.compile(r"[0-9a-fA-F]{1,8}\Z")
_WHOLE = re.compile(r" [0-9a-fA-F]{8}\s*$")
_LARGEST = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]


@dataclass(frozen=True, slots=True)
class CalibrationTable:
    """Scales by tensor name, in the file's order.

    Attributes:
        header: the first line.
        scales: tensor -> float32 scale, >= 0; 0 means that the tensor was not calibrated.
        text: the file, byte for byte (bytes that are no UTF-8 as surrogates).
    """

    header: str
    scales: Mapping[str, float]
    text: str = field(repr=False)

    @classmethod
    def of(cls, scales: Mapping[str, float], header: str = DEFAULT_HEADER) -> CalibrationTable:
        """Make a table; scales are rounded to float32.

        Raises:
            EngineError: a header of another form, a name that a line cannot hold, a scale that is
                negative or not finite in float32.
        """
        if not _HEADER.match(header):
            raise EngineError(
                f"{header!r} cannot head a calibration table",
                expected=f"TRT-<version>-<algorithm>, such as {DEFAULT_HEADER}",
            )
        lines, kept = [header], {}
        for name, scale in scales.items():
            if not name or "\n" in name or "\r" in name:
                raise EngineError(f"the tensor name {name!r} does not fit on a line")
            if not 0 <= scale <= _LARGEST:
                raise EngineError(f"tensor {name!r} has the scale {scale}",
                                  expected="a finite float32, at least 0")  # fmt: skip
            bits = struct.pack(">f", scale)
            lines.append(f"{name}: {bits.hex()}")
            kept[name] = struct.unpack(">f", bits)[0]
        return cls(header, MappingProxyType(kept), "\n".join([*lines, ""]))

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "calibration table") -> CalibrationTable:
        """Read a table.

        Raises:
            EngineError: naming the line that is not as it must be.
        """
        if len(data) > MAX_TABLE_BYTES:
            raise EngineError(
                f"{len(data):,} bytes", where=where,
                expected=f"a calibration table of at most {MAX_TABLE_BYTES:,} bytes",
            )  # fmt: skip
        text = data.decode("utf-8", "surrogateescape")
        first, *rest = text.split("\n")
        header = first.removesuffix("\r")
        if not _HEADER.match(header):
            raise EngineError(
                formats.model_words(Path(where)) or f"the first line is {header[:60]!r}",
                where=where,
                expected=f"TRT-<version>-<algorithm>, such as {DEFAULT_HEADER}",
                fix="int8-calib-file is the text that TensorRT's calibrator or "
                "headrace calibrate writes",
            )
        scales: dict[str, float] = {}
        for number, line in enumerate(rest, 2):
            line = line.removesuffix("\r")
            if line.strip():
                at = f"{where}:{number}"
                name, scale = _entry(line, at)
                if scale and number > len(rest) and not _WHOLE.search(line):
                    raise EngineError(f"the file ends in the line {line[:80]!r}", where=at,
                                      expected="8 hexadecimal digits, or the end of the line",
                                      fix="the table was cut off")  # fmt: skip
                if scales.setdefault(name, scale) != scale:
                    raise EngineError(f"tensor {name!r} has two different scales", where=at)
        return cls(header, MappingProxyType(scales), text)

    @classmethod
    def load(cls, path: str | Path) -> CalibrationTable:
        """Read a file.

        Raises:
            EngineError: it cannot be read, or is no calibration table.
        """
        with os_errors(EngineError, "the calibration table cannot be read", path):
            if not stat.S_ISREG(os.stat(path).st_mode):  # before open: a pipe would block
                raise EngineError("is not a regular file", where=os.fspath(path),
                                  expected="a calibration table")  # fmt: skip
            with open(path, "rb") as file:
                data = file.read(MAX_TABLE_BYTES + 1)
        return cls.from_bytes(data, os.fspath(path))

    def to_bytes(self) -> bytes:
        """The file: for a table that was read, the bytes it was read from."""
        return self.text.encode("utf-8", "surrogateescape")

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            EngineError: it cannot be written.
        """
        with os_errors(EngineError, "the calibration table cannot be written", path):
            write_atomically(Path(path), [self.to_bytes()])

    @property
    def algorithm(self) -> str:
        """The calibration algorithm in the header."""
        return self.header.split("-", 2)[2]

    @property
    def calibrated(self) -> dict[str, float]:
        """Tensors with a scale other than 0."""
        return {name: scale for name, scale in self.scales.items() if scale > 0}


def table_header(version: str, algorithm: str = "EntropyCalibration2") -> str:
    """The first line for a TensorRT release: `10.3.0` -> `TRT-100300-EntropyCalibration2`.

    Raises:
        EngineError: not a version of three numbers; an algorithm TensorRT does not have.
    """
    parts = version.split(".")
    if not (len(parts) == 3 and all(re.fullmatch("[0-9]{1,3}", p) for p in parts)):
        raise EngineError(f"{version!r} is not a TensorRT version", expected="such as 8.6.1")
    if algorithm not in ALGORITHMS:
        raise EngineError(f"{algorithm!r} is not a calibration algorithm",
                          expected=f"one of {', '.join(ALGORITHMS)}")  # fmt: skip
    major, minor, patch = map(int, parts)
    digits = major * (10_000 if major >= 10 else 1_000) + minor * 100 + patch
    return f"TRT-{digits}-{algorithm}"


def _entry(line: str, where: str) -> tuple[str, float]:
    name, colon, bits = line.rpartition(": ")
    bits = bits.strip()
    if not colon or not name or not _BITS.match(bits):
        raise EngineError(
            f"the line is {line[:80]!r}",
            where=where,
            expected="<tensor name>: <the 8 hexadecimal digits of a float32 scale>",
        )
    scale: float = struct.unpack(">f", bytes.fromhex(bits.rjust(8, "0")))[0]
    if not math.isfinite(scale) or scale < 0 or math.copysign(1, scale) < 0:
        raise EngineError(f"tensor {name!r} has the scale {scale}", where=where,
                          expected="a finite number, at least 0")  # fmt: skip
    return name, scale

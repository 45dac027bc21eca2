"""The weights of a Darknet network: numbers in the order of the layers, without names."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noria._core.errors import ModelError
from noria.network.model_bytes import HEAD_BYTES, foreign, looks_like

WHAT = "Darknet weights"
_FIX = "are the .cfg and the .weights of one model?"


class DarknetWeights:
    """Hands out the numbers of a file from front to back, as views.

    The header is three int32 (major, minor, revision) and the number of pictures seen in
    training, which has 8 bytes from version 0.2 on.

    Attributes:
        transposed: matrices are stored with inputs first (very old files).
    """

    def __init__(self, data: bytes, path: Path) -> None:
        self.path = path
        if len(data) < 16:
            raise foreign(data, path, WHAT, f"{len(data)} bytes are too few for a header")
        major, minor, _ = struct.unpack_from("<iii", data)
        if not (0 <= major < 10_000 and 0 <= minor < 10_000):
            words = looks_like(data[:HEAD_BYTES], len(data))
            raise foreign(data, path, WHAT, words or f"version {major}.{minor} is none")
        wide = major * 10 + minor >= 2 and major < 1000 and minor < 1000
        self.transposed = major > 1000 or minor > 1000
        self.at = 20 if wide else 16
        self.data = data

    def take(self, shape: tuple[int, ...], name: str, where: str) -> npt.NDArray[np.float32]:
        """The next numbers, as an array of this shape."""
        count = 1
        for length in shape:
            count *= length
        left = max(0, len(self.data) - self.at)
        if count * 4 > left:
            raise ModelError(
                f"the {name} need {count * 4} bytes ({'x'.join(map(str, shape))}); "
                f"{self.path.name} has {left} left, {count * 4 - left} are missing",
                where=where,
                fix=_FIX,
            )
        found = np.frombuffer(self.data, "<f4", count, self.at).reshape(shape)
        self.at += count * 4
        return found

    def finish(self, last: str) -> None:
        """Refuse a file that goes on."""
        left = len(self.data) - self.at
        if left > 0:
            raise ModelError(
                f"{left} bytes are left after the last layer ({last})",
                where=str(self.path),
                expected=f"{self.at} bytes for this network",
                fix=_FIX,
            )

"""Mean images: the PPM file behind `mean-file`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.files import os_reason
from headrace._core.text import counted

# Magic, width, height and the maximum value, then exactly one separator byte before the pixels.
_HEADER = re.compile(rb"\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s")
_EXPORT = "write it with Pillow: Image.save(path, format='PPM')"


def load_mean(
    path: str | Path, width: int, height: int, channels: int, *, where: str | None = None
) -> npt.NDArray[np.float32]:
    """Read a binary PPM (P6) file as the per-pixel mean.

    The maximum value of the header is ignored (no rescaling), bytes beyond the last pixel too.
    Byte k of a pixel belongs to network channel k: files for BGR models are stored B, G, R. A
    grey model reads one byte per pixel. The original reads the text of a P3 file as if it were
    pixels; headrace refuses it.

    Args:
        path: the file.
        width, height, channels: of the network input; the file's size must equal it.
        where: `file:line: key` of the config naming the file, for errors.

    Returns:
        (height, width, channels) float32 in the network's channel order.

    Raises:
        ConfigError: unreadable, not P6, a comment in the header, another size, or too short.
    Source: spec A.4.
    """

    def refuse(problem: str, expected: str | None = None, fix: str | None = None) -> ConfigError:
        location = where or "mean-file"
        problem = f"{path}: {problem}"
        return ConfigError(problem, where=location, expected=expected, fix=fix, code="mean-file")

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise refuse(f"cannot be read ({os_reason(error)})", "a P6 image") from error
    magic = data.split(maxsplit=1)[0][:16] if data.strip() else b""
    if magic == b"P3":
        raise refuse("is a text PPM (P3)", "a binary PPM (P6)", _EXPORT)
    if magic != b"P6":
        raise refuse(
            f"starts with {magic.decode('ascii', 'backslashreplace')!r}, which is not a PPM image",
            "a binary PPM (P6)",
            _EXPORT,
        )
    header = _HEADER.match(data)
    if header is None:
        raise refuse("ends within its header", "P6, width, height, maximum value, then the pixels")
    size = [token.decode("ascii", "backslashreplace")[:40] for token in header.groups()[1:3]]
    if any(token.startswith("#") for token in size):
        raise refuse("has a comment in its header", "a header without comments", _EXPORT)
    if not all(token.isdecimal() and len(token) < 9 for token in size) or [*map(int, size)] != [
        width,
        height,
    ]:
        raise refuse(
            f"is {size[0]}x{size[1]}",
            f"{width}x{height}, the size of the network input",
            "make the mean image at the network's size",
        )
    pixels = np.frombuffer(data, dtype=np.uint8, offset=header.end())
    count = width * height * channels
    if pixels.size < count:
        raise refuse(
            f"has {pixels.size} bytes of pixels",
            f"{count} ({width}x{height}, {counted(channels, 'channel')})",
        )
    return pixels[:count].reshape(height, width, channels).astype(np.float32)

"""Image files from elsewhere: opened by their content, and bounded before they are decoded."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from headrace._core.errors import MediaError
from headrace._core.files import os_reason
from headrace.binary.regular_files import open_regular
from headrace.media.names import sniff

if TYPE_CHECKING:
    from PIL.Image import Image

# What Pillow raises for damaged files, beside errors of its own.
_DAMAGE = (SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, struct.error)

# Pillow's names. It reads some fifty formats; PostScript among them starts a program.
_FORMATS = ("JPEG", "PNG", "BMP", "DIB", "PPM", "WEBP", "TIFF")
_BY_SUFFIX = {"jpg": "JPEG", "jpe": "JPEG", "dib": "BMP", "tif": "TIFF", "webp": "WebP"}
_READ = frozenset(f"a {kind} image" for kind in ("BMP", "JPEG", "PNG", "TIFF", "WebP"))
_BY_SUFFIX |= dict.fromkeys(("ppm", "pgm", "pbm"), "PNM")

MAX_PIXELS = 100_000_000
"""Pixels of one image. Decoding takes 7 bytes for each, WebP 15: at most 0.7 and 1.5 GB."""

MAX_BYTES = 1 << 30
"""Bytes of one image file."""

_HEADER_BYTES = 64 << 10  # of PNM: Pillow reads comments there byte by byte, minutes for a GiB


def max_pixels() -> int:
    """Pixels that an image may have: `$HEADRACE_MAX_IMAGE_PIXELS`, else `MAX_PIXELS`.

    Raises:
        MediaError: the variable is no number above 0.
    """
    text = os.environ.get("HEADRACE_MAX_IMAGE_PIXELS")
    if not text:
        return MAX_PIXELS
    if text.isascii() and text.isdecimal() and len(text) < 16 and int(text):
        return int(text)
    raise MediaError(
        f"HEADRACE_MAX_IMAGE_PIXELS={text[:40]!r} is no number of pixels", expected="1 or more"
    )


@contextmanager
def opened_image(path: Path, name: str | None = None) -> Iterator[Image]:
    """Open an image file for a block that decodes it.

    Args:
        path: the file.
        name: for messages; None means the path.

    Raises:
        MediaError: it is missing, no regular file, of another format, too large, or damaged, also
            where the block finds that.
    """
    # Imported for their formats: for a name that it does not know, Pillow imports all plug-ins.
    from PIL import Image, TiffImagePlugin, WebPImagePlugin

    del TiffImagePlugin, WebPImagePlugin

    name = name or str(path)
    most = max_pixels()
    try:
        # What Pillow warns of (large images, odd metadata) goes by the filters of the program: they
        # are of all its threads, so that changing them for a while changes them for good at times.
        with (
            open_regular(path, MAX_BYTES) as file,
            _damage_named(path, name),
            _opened(file, name) as image,
        ):
            if image.width * image.height > most:
                raise _too_large(name, most, f"{image.width}x{image.height}")
            yield image
    except Image.DecompressionBombError:
        raise _too_large(name, most, "larger") from None
    except (OSError, MemoryError, Warning, ValueError) as error:  # filters make errors of warnings
        raise MediaError(f"the image cannot be read: {os_reason(error)}", where=name) from error


@contextmanager
def _damage_named(path: Path, name: str) -> Iterator[None]:
    """Replace errors of Pillow, which quote the content.

    Whoever may name a file need not be one who may read it.
    """
    from PIL import UnidentifiedImageError

    try:
        yield
    except UnidentifiedImageError:
        content = sniff(path)
        problem = f"is not an image that can be read: it is {content}"
        suffix = path.suffix[1:].lower()
        if content in _READ:
            problem += " whose content is damaged"
        elif suffix and (kind := _BY_SUFFIX.get(suffix, suffix.upper())) not in problem:
            problem += f", not {kind}"
        raise MediaError(
            problem, where=name, expected="JPEG, PNG, BMP, WebP, TIFF or PNM, by content"
        ) from None
    except _DAMAGE as error:
        raise MediaError("the image cannot be read: its content is damaged", where=name) from error


def _opened(file: BinaryIO, name: str) -> Image:
    from PIL import Image

    head = file.read(_HEADER_BYTES)
    file.seek(0)
    if re.match(rb"P[0-6fy]", head) and len(head) == _HEADER_BYTES:
        words = re.sub(rb"#[^\r\n]*", b"", head).split(None, 3)  # the kind, width and height
        if len(words) < 3:
            raise MediaError(
                f"the header of the image has more than {_HEADER_BYTES >> 10} kB", where=name
            )
    return Image.open(file, formats=_FORMATS)


def _too_large(name: str, most: int, size: str) -> MediaError:
    return MediaError(
        f"the image is too large: {size}",
        where=name,
        expected=f"at most {most:,} pixels",
        fix="cut it into tiles, or set HEADRACE_MAX_IMAGE_PIXELS",
        code="image-too-large",
    )

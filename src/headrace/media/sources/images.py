"""Images as a source: one, a folder, or the files of a pattern."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.files import os_reason
from headrace.media.frame import Frame
from headrace.media.names import sniff
from headrace.media.pixel_format import PixelFormat, Plane
from headrace.media.sources.base import Source

_STRIP_BYTES = 1 << 24


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep back Pillow's warnings about very large images and odd metadata."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_image(path: Path, name: str | None = None) -> Plane:
    """The image in an image file as an (h, w, 3) uint8 RGB array.

    EXIF orientation is applied; gray, palette and CMYK become RGB; 16 bits per channel are scaled
    to 8; alpha is dropped. Of a file with several images the first is read.

    Raises:
        MediaError: missing, not an image, or damaged.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    name = name or str(path)
    try:
        with _quietly(), Image.open(path) as image:
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
            return _rgb(image)
    except UnidentifiedImageError:
        raise MediaError(
            f"is not an image that can be read: it is {sniff(path)}", where=name
        ) from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise MediaError(f"the image cannot be read: {os_reason(error)}", where=name) from error


def image_size(path: Path) -> tuple[int, int] | None:
    """Width and height of an image in pixels, EXIF orientation applied; None if it cannot be read.

    Only the file's head is read.
    """
    from PIL import Image

    try:
        with _quietly(), Image.open(path) as image:
            swap = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
            return image.size[::-1] if swap else image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def _rgb(image: Any) -> Plane:
    if image.mode.startswith("I;16") or image.mode == "I":
        # Mode I also holds what 16-bit files decode to; larger values do not occur in images.
        gray = (np.clip(np.asarray(image.convert("I")), 0, 65535) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if image.mode == "F":
        values = np.nan_to_num(np.asarray(image))
        scale = 255.0 if values.size and values.max() <= 1.0 else 1.0
        gray = np.clip(np.rint(values * scale), 0, 255).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    image = image if image.mode == "RGB" else image.convert("RGB")
    rows = max(1, _STRIP_BYTES // (3 * image.width))
    if rows >= image.height:
        return np.array(image)
    # Pillow hands an array over through two copies of it: strips keep them small.
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        pixels[top:bottom] = image.crop((0, top, image.width, bottom))
    return pixels


class ImageSource(Source):
    """Images in the given order, each its own RGB frame of its own size.

    `frame.source` is the path of the image, which distinguishes their results; times are
    `frame / fps`. An image that cannot be read is left out with a notice; the only image, or all
    of them, is an error.

    Args:
        paths: image files, at least one.
        name: what the user gave.
        fps: how fast they follow each other; None means 25.
    """

    def __init__(
        self, paths: Sequence[Path], name: str, *, source_id: int = 0, fps: float | None = None
    ) -> None:
        super().__init__(name, source_id)
        self.files = tuple(paths)
        self.frames = len(self.files)
        self.fps = fps or (25.0 if len(self.files) > 1 else None)
        self.width, self.height = self._first_size()

    def _first_size(self) -> tuple[int, int]:
        for path in self.files:
            if (size := image_size(path)) is not None:
                return size
            if len(self.files) == 1:
                read_image(path, self.name)  # says what is wrong
        return 0, 0

    def _read(self) -> Generator[Frame, None, None]:
        number = 0
        broken: list[str] = []
        step_ns = 1e9 / (self.fps or 25.0)
        for path in self.files:
            try:
                pixels = read_image(path)
            except MediaError as error:
                if len(self.files) == 1:
                    raise
                self.skipped += 1
                broken.append(f"{path.name} ({error:brief})")
                continue
            if number == 0:
                self.height, self.width = pixels.shape[:2]
            yield Frame(
                (pixels,),
                PixelFormat.RGB,
                pixels.shape[1],
                pixels.shape[0],
                pts_ns=round(number * step_ns),
                frame=number,
                source=str(path),
                source_id=self.source_id,
            )
            number += 1
        if broken:
            more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
            self._notice("left-out", "warning", f"images left out: {', '.join(broken[:5])}{more}")
        if number == 0:
            raise MediaError("not one of the images can be read", where=self.name, fix=broken[:5])

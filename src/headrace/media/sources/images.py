"""Images as a source: one, a folder, or the files of a pattern."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.errors import MediaError
from headrace.media.frame import Frame
from headrace.media.image_file import opened_image
from headrace.media.pixel_format import PixelFormat, Plane
from headrace.media.sources.base import Source
from headrace.media.sources.wall_clock import wall_time_of_photo

_STRIP_BYTES = 1 << 22


# For each EXIF orientation but 1: the upright image as a view in the order that the file stores.
_STORED: dict[int, Callable[[Plane], Plane]] = {
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.transpose(1, 0, 2),
    6: np.rot90,
    7: lambda upright: upright[::-1, ::-1].transpose(1, 0, 2),
    8: lambda upright: np.rot90(upright, -1),
}
_ORIENTATION = 0x0112
_ON_THE_SIDE = (5, 6, 7, 8)


def read_image(path: Path, name: str | None = None) -> Plane:
    """The image in an image file as an (h, w, 3) uint8 RGB array; see `read_photo`.

    Raises:
        MediaError: as `read_photo`.
    """
    return read_photo(path, name)[0]


def read_photo(path: Path, name: str | None = None) -> tuple[Plane, int | None]:
    """The image in an image file as an (h, w, 3) uint8 RGB array, and when it was taken.

    EXIF orientation is applied; gray, palette and CMYK become RGB; 16 bits per channel are scaled
    to 8; alpha is dropped. Of a file with several images the first is read. The time is in
    nanoseconds since 1970, UTC, where EXIF has it with its zone; else None.

    Raises:
        MediaError: missing, not an image, damaged, or of more than `max_pixels()`.
    """
    with opened_image(path, name) as image:
        image.load()
        exif = image.getexif()
        return _rgb(image, exif.get(_ORIENTATION, 1)), wall_time_of_photo(exif)


def image_size(path: Path) -> tuple[int, int] | None:
    """Width and height of an image in pixels, EXIF orientation applied; None if it cannot be read.

    Only the file's head is read, but for PNG, whose orientation may stand behind the pixels.
    """
    try:
        with opened_image(path) as image:
            on_the_side = image.getexif().get(_ORIENTATION, 1) in _ON_THE_SIDE
            return image.size[::-1] if on_the_side else image.size
    except MediaError:
        return None


def _rgb(image: Any, orientation: int) -> Plane:
    # Pillow hands an array over through two copies of it, and turns and converts into others:
    # strips keep them small.
    strips = partial(_strips, image, max(1, _STRIP_BYTES // (3 * image.width)))
    peak = 255.0
    if image.mode == "F":
        peak = max(float(np.nan_to_num(np.asarray(strip)).max()) for _, strip in strips())
    shape = image.size if orientation in _ON_THE_SIDE else image.size[::-1]
    pixels = np.empty((*shape, 3), np.uint8)
    stored = _STORED[orientation](pixels) if orientation in _STORED else pixels
    for top, strip in strips():
        stored[top : top + strip.height] = _strip_rgb(strip, peak)
    return pixels


def _strips(image: Any, rows: int) -> Iterator[tuple[int, Any]]:
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _strip_rgb(image: Any, peak: float) -> Plane:
    if image.mode.startswith("I;16") or image.mode == "I":
        # Mode I also holds what 16-bit files decode to; larger values do not occur in images.
        gray = (np.clip(np.asarray(image.convert("I")), 0, 65535) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if image.mode == "F":
        scale = 255.0 if peak <= 1.0 else 1.0
        gray = np.clip(np.rint(np.nan_to_num(np.asarray(image)) * scale), 0, 255).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


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
        self._asked_fps = fps
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
                pixels, wall_ns = read_photo(path)
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
                wall_ns=wall_ns,
                fps=self._asked_fps,
            )
            number += 1
        if broken:
            more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
            self._notice("left-out", "warning", f"images left out: {', '.join(broken[:5])}{more}")
        if number == 0:
            raise MediaError("not one of the images can be read", where=self.name, fix=broken[:5])

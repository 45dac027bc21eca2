"""Pictures: a folder of them, or one."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

from noria._core.errors import MediaError
from noria.media.frame import Frame
from noria.media.pixel_format import PixelFormat
from noria.media.pixels import to_rgb
from noria.media.sinks.base import Sink, make_folder, spare_source
from noria.media.sinks.files import write_file
from noria.media.sinks.naming import PICTURE_SUFFIXES, FrameNames
from noria.meta import FrameMeta

_NUMBER = re.compile(r"%0?\d*d")
JPEG_QUALITY = 92


def encode_image(frame: Frame, suffix: str) -> bytes:
    """A frame as the content of a `.jpg` or `.png` file."""
    from PIL import Image

    image = Image.fromarray(to_rgb(frame))
    out = io.BytesIO()
    if PICTURE_SUFFIXES[suffix] == "PNG":
        image.save(out, "PNG", compress_level=3)
    else:
        # Video has half the colour resolution already; thin lines on RGB would suffer from it.
        planar = frame.format in (PixelFormat.I420, PixelFormat.NV12)
        image.save(out, "JPEG", quality=JPEG_QUALITY, subsampling=2 if planar else 0)
    return out.getvalue()


class ImageSink(Sink):
    """One picture per frame, JPEG unless the name ends in `.png`.

    Args:
        path: a folder (`frame_000012.jpg` for video, the name of the image for images), a pattern
            such as `out/%06d.png`, or one file, which takes one frame.
        labels: label of each source by id, if there are several and they are known.
    """

    kind = "images"
    needs_pixels = True

    def __init__(self, name: str, path: Path, *, labels: Mapping[int, str] | None = None) -> None:
        super().__init__(name, path)
        self._suffix = path.suffix.lower()
        self._single = False
        self._numbered = False
        if self._suffix not in PICTURE_SUFFIXES or path.is_dir():
            self._folder, pattern, self._suffix = path, "frame_%06d", ".jpg"
        elif "%" in path.name:
            self._folder, pattern, self._numbered = path.parent, path.stem, True
            plain = _NUMBER.sub("", pattern, count=1)
            if "%" in plain or plain == pattern:
                raise MediaError(
                    f"{path.name} is not a pattern", where=name, expected="one %d or %06d in it"
                )
        else:
            self._folder, pattern, self._single = path.parent, "frame_%06d", True
        self._pattern = pattern
        self._names = FrameNames(pattern, labels)
        self._several = len(labels or ()) > 1
        make_folder(self._folder, name)

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if self._single:
            if self.frames:
                raise MediaError(
                    "is one picture, and there is more than one frame",
                    where=self.name,
                    fix=f"write them to a folder: {self.path.with_suffix('')}/",
                )
            target = self.path
        else:
            if self._numbered and frame.source_id == 0 and not self._several:
                stem = self._pattern % frame.frame
            else:
                stem = self._names.stem(frame)
            target = self._folder / f"{stem}{self._suffix}"
        spare_source(target, frame, self.name)
        write_file(target, encode_image(frame, self._suffix))

    def _finish(self) -> None:
        """Every picture is complete already."""

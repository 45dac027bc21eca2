"""Images: a folder of them, or one."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.files import write_where_named
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.pixels import to_rgb
from headrace.media.sinks.base import Sink, make_folder, spare_source
from headrace.media.sinks.naming import ENCODED_SUFFIXES, FrameNames
from headrace.meta import FrameMeta, SegmentationMeta

_NUMBER = re.compile(r"%0?\d*d")
JPEG_QUALITY = 92


def encode_image(frame: Frame, suffix: str, *, max_width: int | None = None) -> bytes:
    """A frame as the content of a `.jpg` or `.png` file, made smaller if wider than `max_width`.

    What a GPU decoded is encoded there where it keeps its size and NVIDIA's library is at hand.
    """
    jpeg, planes = ENCODED_SUFFIXES[suffix] == "JPEG", frame.on_device
    if jpeg and planes is not None and not planes.downloaded:
        from headrace.media.gpu_jpeg import encode_on_gpu, why_no_gpu_jpeg

        if (max_width is None or frame.width <= max_width) and why_no_gpu_jpeg() is None:
            return encode_on_gpu(frame, JPEG_QUALITY)
    from PIL import Image

    image = Image.fromarray(to_rgb(frame))
    if max_width is not None and image.width > max_width:
        height = max(1, round(image.height * max_width / image.width))
        image = image.resize((max_width, height), Image.Resampling.BILINEAR)
    out = io.BytesIO()
    if not jpeg:
        image.save(out, "PNG", compress_level=3)
    else:
        # Video has half the colour resolution already; thin lines on RGB would suffer from it.
        planar = frame.format in (PixelFormat.I420, PixelFormat.NV12)
        image.save(out, "JPEG", quality=JPEG_QUALITY, subsampling=2 if planar else 0)
    return out.getvalue()


class ImageSink(Sink):
    """One image per frame, JPEG unless the name ends in `.png`.

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
        if self._suffix not in ENCODED_SUFFIXES or path.is_dir():
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

    @property
    def folder(self) -> Path:
        """See `Sink.folder`."""
        return self._folder

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if self._single:
            if self.frames:
                raise MediaError(
                    "is one image, and there is more than one frame",
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
        if frame.on_device is not None and ENCODED_SUFFIXES[self._suffix] == "JPEG":
            from headrace.media.gpu_jpeg import GET_IT, why_no_gpu_jpeg

            if (reason := why_no_gpu_jpeg()) is not None:
                text = f"the CPU encodes the images that a GPU decoded: {reason}; {GET_IT}"
                self._notice("jpeg-on-cpu", "info", text)
        write_where_named(target, encode_image(frame, self._suffix), durable=False)


NONE_8, NONE_16 = 255, 65535
_NONE_COLOR = (224, 224, 192)


def palette() -> npt.NDArray[np.uint8]:
    """(256, 3) uint8 colours of the classes: each bit of the index moves one colour, 255 is pale.

    The colours of PASCAL VOC, which labelling tools know: bits 0, 3, 6 of the index are the high
    bits of red; 1, 4, 7 of green; 2, 5 of blue.
    """
    colors = np.zeros((256, 3), np.int64)
    index = np.arange(256)
    for bit in range(8):
        colors[:, bit % 3] |= (index >> bit & 1) << (7 - bit // 3)
    colors[NONE_8] = _NONE_COLOR
    return colors.astype(np.uint8)


def frame_class_map(meta: SegmentationMeta, width: int, height: int) -> npt.NDArray[np.uint16]:
    """The class of each pixel of the frame, from the nearest of the class map.

    Returns:
        (height, width) uint8 with 255 where no class wins, or uint16 with 65535 if there are more
        than 255 classes.
    """
    left, top, inner_width, inner_height = meta.region or (0, 0, meta.width, meta.height)
    xs = left + _nearest(width, inner_width)
    ys = top + _nearest(height, inner_height)
    wide = meta.num_classes > NONE_8
    none = NONE_16 if wide else NONE_8
    small = np.where((meta.class_map < 0) | (meta.class_map >= none), none, meta.class_map)
    small = small.astype(np.uint16 if wide else np.uint8)
    return np.ascontiguousarray(small[ys][:, xs])


def _nearest(size: int, inner: int) -> npt.NDArray[np.int64]:
    """For each of `size` pixels, the one of `inner` its centre is in."""
    at: npt.NDArray[np.int64] = (2 * np.arange(size, dtype=np.int64) + 1) * inner // (2 * size)
    return at


class ClassMapSink(Sink):
    """A folder with `frame_000012.png` in the size of the frame for frame 12, and `classes.json`.

    The pixel value is the class. Frames without a class map have no file. The maps of further
    models on the same frame have `_COMPONENT` behind the name.

    Args:
        labels: label of each source by id, if there are several and they are known.
    """

    kind = "masks"
    fills_folder = True

    def __init__(self, name: str, path: Path, *, labels: Mapping[int, str] | None = None) -> None:
        super().__init__(name, path)
        make_folder(path, name)
        self._names = FrameNames("frame_%06d", labels)
        self._colors = palette()
        self._first: int | None = None
        self._classes: dict[int, tuple[int, list[str]]] = {}

    def _write(self, frame: Frame, meta: FrameMeta) -> None:
        if not meta.segmentations:
            return
        stem = self._names.stem(frame)
        for segmentation in meta.segmentations:
            component = segmentation.component_id
            if self._first is None:
                self._first = component
            if component not in self._classes:
                self._classes[component] = (segmentation.num_classes, list(segmentation.labels))
            suffix = "" if component == self._first else f"_{component}"
            target = self.path / f"{stem}{suffix}.png"
            spare_source(target, frame, self.name)
            write_where_named(target, self._png(segmentation, meta), durable=False)

    def _png(self, segmentation: SegmentationMeta, meta: FrameMeta) -> bytes:
        from PIL import Image

        image: Any = Image.fromarray(frame_class_map(segmentation, meta.width, meta.height))
        if image.mode == "L":
            image.putpalette(self._colors.tobytes())  # makes it an indexed image
        out = io.BytesIO()
        image.save(out, "PNG", compress_level=1)
        return out.getvalue()

    def _finish(self) -> None:
        if not self._classes:
            self._notice(
                "output-empty", "warning", "no frame had a class map, so no image was written"
            )
            return
        colors = self._colors.tolist()
        document = [
            {
                "component_id": component,
                "none": NONE_16 if count > NONE_8 else NONE_8,
                "classes": [
                    {
                        "class_id": i,
                        "label": labels[i] if i < len(labels) else "",
                        **({"color": colors[i]} if count <= NONE_8 else {}),
                    }
                    for i in range(count)
                ],
            }
            for component, (count, labels) in self._classes.items()
        ]
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        data = text.encode("utf-8", "backslashreplace")
        write_where_named(self.path / "classes.json", data, durable=False)

"""One image of many sources, and their metadata as that of this image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from av.video.reformatter import VideoReformatter

from headrace._core.errors import MediaError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace.media.draw.canvas import Canvas, PlanarCanvas
from headrace.media.draw.colors import to_yuv
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.device_tiles import composed, gpu_of
from headrace.media.draw.text import captions, missing_glyphs, render_text
from headrace.media.frame import Frame
from headrace.media.pixel_format import (
    ColorSpace,
    PixelFormat,
    Plane,
    is_full,
    matrix_code,
    plane_shapes,
)
from headrace.media.pixels import plane_array, to_av
from headrace.meta import FrameMeta, Objects, SegmentationMeta
from headrace.meta.objects import NO_MASK

_MAP_STEP = 2  # pixels of the tiled image for each value of the merged class map


@dataclass(frozen=True, slots=True)
class Tile:
    """Where a frame lies on the tiled image, in its pixels; its cell may go on below it."""

    meta: FrameMeta
    left: int
    top: int
    width: int
    height: int
    cell_bottom: int

    def move(self, rects: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(N, 4) rectangles of the frame in the tiled image."""
        ratio = np.array((self.width / self.meta.width, self.height / self.meta.height), np.float32)
        moved: npt.NDArray[np.float32] = rects * np.tile(ratio, 2)
        moved[:, :2] += np.array((self.left, self.top), np.float32)
        return moved


def merge_metas(tiles: list[Tile], width: int, height: int) -> FrameMeta:
    """One `FrameMeta` of an image of `width` x `height` with everything in its pixels.

    Objects keep their order within a frame. The class maps of each model become one for the whole
    image, at half its size, -1 between the tiles; its probabilities are left out, as are raw
    tensors of whole frames.
    """
    meta = FrameMeta("tiles", 0, 0, 0, width, height)
    meta.inferred = any(tile.meta.inferred for tile in tiles)
    meta.objects = _merge_objects([t for t in tiles if len(t.meta.objects)])
    for tile in tiles:
        meta.user += tile.meta.user
        scale = tile.width / tile.meta.width, tile.height / tile.meta.height
        meta.figures += [f.moved(tile.left, tile.top, *scale) for f in tile.meta.figures]
        for segmentation in tile.meta.segmentations:
            _add_class_map(meta, tile, segmentation)
    return meta


def _merge_objects(tiles: list[Tile]) -> Objects:
    merged = Objects()
    parts = [tile.meta.objects for tile in tiles]
    if not parts:
        return merged
    counts = [len(part) for part in parts]
    starts = np.cumsum([0, *counts[:-1]]).tolist()

    def joined(name: str, blank: Any = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        return np.concatenate(
            [blank(n) if c is None else c for c, n in zip(columns, counts, strict=True)]
        )

    for name in ("class_ids", "confidences", "component_ids", "object_ids"):
        setattr(merged, name, joined(name))
    for name in ("angles", "tracker_confidences"):
        setattr(merged, name, joined(name, lambda n: np.zeros(n, np.float32)))
    merged.border_colors = joined("border_colors", lambda n: np.full((n, 4), np.nan, np.float32))
    merged.rects = np.concatenate([t.move(t.meta.objects.rects) for t in tiles])
    if any(part.detector_rects is not None for part in parts):
        boxes = [p.rects if p.detector_rects is None else p.detector_rects for p in parts]
        merged.detector_rects = np.concatenate(
            [t.move(b) for t, b in zip(tiles, boxes, strict=True)]
        )
    merged.parents = np.concatenate(
        [
            np.where(part.parents >= 0, part.parents + start, -1).astype(np.int32)
            for part, start in zip(parts, starts, strict=True)
        ]
    )
    if any(part.masks is not None for part in parts):
        merged.masks = []
        for part, n in zip(parts, counts, strict=True):
            merged.masks += [NO_MASK] * n if part.masks is None else part.masks
    for part, start in zip(parts, starts, strict=True):
        merged.mask_thresholds |= part.mask_thresholds
        merged.labels |= part.labels
        merged.styles |= part.styles
        for name in (
            "classifiers",
            "texts",
            "segmentations",
            "tensors",
            "analytics",
            "reids",
            "user",
        ):
            getattr(merged, name).update(
                {start + index: value for index, value in getattr(part, name).items()}
            )
    return merged


def _add_class_map(meta: FrameMeta, tile: Tile, segmentation: SegmentationMeta) -> None:
    if not segmentation.class_map.size:
        return
    index = next(
        (
            i
            for i, other in enumerate(meta.segmentations)
            if other.component_id == segmentation.component_id
        ),
        None,
    )
    if index is None:
        blank = np.full((meta.height // _MAP_STEP, meta.width // _MAP_STEP), -1, np.int32)
        merged = SegmentationMeta(
            segmentation.component_id, segmentation.num_classes, blank, labels=segmentation.labels
        )
        meta.segmentations.append(merged)
    else:
        merged = meta.segmentations[index]
        if segmentation.num_classes > merged.num_classes:
            merged = meta.segmentations[index] = replace(
                merged, num_classes=segmentation.num_classes
            )
    left, top, width, height = segmentation.region or (
        0,
        0,
        segmentation.width,
        segmentation.height,
    )
    x, y = tile.left // _MAP_STEP, tile.top // _MAP_STEP
    w, h = tile.width // _MAP_STEP, tile.height // _MAP_STEP
    columns = ((np.arange(w) + 0.5) * (width / w) + left).astype(np.intp)
    rows = ((np.arange(h) + 0.5) * (height / h) + top).astype(np.intp)
    columns = np.clip(columns, 0, segmentation.width - 1)
    rows = np.clip(rows, 0, segmentation.height - 1)
    merged.class_map[y : y + h, x : x + w] = segmentation.class_map[rows][:, columns]


_MAX_SIZE = 16384
_MOST_DARK = 4  # cells of a grid without a fixed size: a service outlives thousands of files
_DARK = (16, 18, 22)
_INK, _PAPER = (255, 255, 255, 1.0), (0, 0, 0, 0.55)


@dataclass(slots=True)
class _Scaled:
    """The last image of a source at the size of its tile."""

    frame: Frame
    size: tuple[int, int]
    planes: tuple[Plane, ...]


class Tiler:
    """Puts the latest frames of several sources on one image, and their objects with them.

    Every source has a cell, in the order of source ids and reading order. Cells are kept: a source
    that ended leaves its cell dark, so no image jumps; the cell says why, see `end`. In a full
    grid of fixed size, and among many dark cells, the next source takes one. A frame keeps its
    shape and is centred in its cell; the original tiler stretches it to the cell, which `stretch`
    does too.

    Args:
        rows, columns: of the grid; None is chosen so that the images are as large as possible.
        width, height: size of the composed image, made even.
        stretch: fill each cell, changing the shape of the frame.
        captions: write the name of the source into each cell when there is more than one; sources
            whose files have one name are told apart by their folders, or their numbers.

    Attributes:
        notices: sources that have no cell in a grid of fixed size.

    Raises:
        MediaError: a size that cannot be.

    For one thread at a time.
    """

    def __init__(
        self,
        rows: int | None = None,
        columns: int | None = None,
        width: int = 1280,
        height: int = 720,
        *,
        stretch: bool = False,
        captions: bool = True,
    ) -> None:
        for name, value in (("rows", rows), ("columns", columns)):
            if value is not None and value < 1:
                raise MediaError(f"{name}={value}", where="Tiler", expected="at least 1, or None")
        if not (2 <= width <= _MAX_SIZE and 2 <= height <= _MAX_SIZE):
            raise MediaError(
                f"a tiled image of {width}x{height}",
                where="Tiler",
                expected=f"2 to {_MAX_SIZE} pixels each way",
            )
        self.rows, self.columns = rows, columns
        self.width, self.height = width // 2 * 2, height // 2 * 2
        self.stretch = stretch
        self.captions = captions
        self.notices: list[Finding] = []
        self._sources: list[int] = []
        self._names: dict[int, str] = {}
        self._over: dict[int, str] = {}  # why a source gives no more frames
        self._color: ColorSpace | None = None
        self._scaled: dict[int, _Scaled] = {}
        self._scalers: dict[int, Any] = {}
        self._frames = 0
        self._pts_ns = -1

    def compose(self, pairs: Sequence[tuple[Frame, FrameMeta]]) -> tuple[Frame, FrameMeta]:
        """One image of the given frames, and their metadata in its pixels.

        It is I420, or NV12 in the memory of the GPU that has all frames.

        Args:
            pairs: the latest frame of each source, plain; they are only read.

        Returns:
            A new frame, numbered from 0, with the newest time of `pairs`, and a new `FrameMeta` of
            the source `tiles`: all objects with their rectangles moved, and the class maps of all
            frames as one of the whole image for each model. Raw tensors of frames are left out.
        """
        pairs = sorted(pairs, key=lambda pair: pair[1].source_id)
        for _, meta in pairs:
            self._name(meta.source_id, meta.source)
            self._over.pop(meta.source_id, None)
        if self._color is None and pairs:
            self._color = _color_of(pairs[0][0], ColorSpace.BT601)
        color = self._color or ColorSpace.BT601
        shape = pairs[0][0].width / pairs[0][0].height if pairs else 16 / 9
        rows, columns = self.grid(len(self._sources), shape)
        placed: list[tuple[Frame, Tile]] = []
        for frame, meta in pairs:
            cell = self._sources.index(meta.source_id)
            if cell >= rows * columns:
                note_once(
                    self.notices,
                    Finding(
                        "source-not-shown",
                        "warning",
                        "it is not shown: the tiles have {rows} x {columns} cells",
                        meta.source,
                        {"rows": rows, "columns": columns},
                        remedies=("set more rows and columns of the tiler", "or leave both out"),
                    ),
                )
                continue
            placed.append((frame, self._place(frame, meta, cell, rows, columns)))
        canvas, tiles = self._canvas_of(placed, color), [tile for _, tile in placed]
        if self.captions and len(self._sources) > 1:
            self._write_captions(canvas, tiles, rows, columns)
            if canvas.missing:
                note_once(self.notices, missing_glyphs(canvas.missing))
        return self._finish(canvas, tiles)

    def end(self, source_id: int, name: str, why: str = "ended") -> None:
        """Let the cell of a source say, in a few words, why it is dark from now on.

        The cell of a source that was `removed` goes.
        """
        self._scaled.pop(source_id, None)
        self._scalers.pop(source_id, None)
        if why == "removed":
            self._names.pop(source_id, None)
            self._sources = [i for i in self._sources if i != source_id]
            return
        self._name(source_id, name)
        self._over[source_id] = why

    def _name(self, source_id: int, name: str) -> None:
        if source_id not in self._names:
            full = self.rows and self.columns and len(self._sources) >= self.rows * self.columns
            dark = next((i for i in self._over if i in self._sources), None)
            if dark is not None and (full or len(self._over) > _MOST_DARK):  # the longest dark
                self._sources[self._sources.index(dark)] = source_id
                del self._names[dark], self._over[dark]
            elif full:
                self._sources.append(source_id)
            else:
                self._sources = sorted([*self._sources, source_id])
        self._names[source_id] = name

    def grid(self, count: int, shape: float = 16 / 9) -> tuple[int, int]:
        """Rows and columns for `count` frames, `shape` times as wide as high."""
        count = max(1, count)
        if self.rows and self.columns:
            return self.rows, self.columns
        if self.columns:
            return -(-count // self.columns), self.columns
        if self.rows:
            return self.rows, -(-count // self.rows)

        def size(columns: int) -> float:
            rows = -(-count // columns)
            return min(self.width / columns, self.height / rows * shape)

        # Of equal sizes, the fewest cells, and rather side by side.
        columns = max(
            range(1, count + 1), key=lambda c: (round(size(c), 6), -c * (-(-count // c)), c)
        )
        return -(-count // columns), columns

    def _place(self, frame: Frame, meta: FrameMeta, cell: int, rows: int, columns: int) -> Tile:
        x, y, *box = self._cell(cell, rows, columns)
        width, height = box
        if not self.stretch:
            ratio = min(width / frame.width, height / frame.height)
            width = min(width, max(2, round(frame.width * ratio / 2) * 2))
            height = min(height, max(2, round(frame.height * ratio / 2) * 2))
        left = x + (box[0] - width) // 4 * 2
        top = y + (box[1] - height) // 4 * 2
        return Tile(meta, left, top, width, height, y + box[1])

    def _cell(self, cell: int, rows: int, columns: int) -> tuple[int, int, int, int]:
        """Left, top, width and height."""
        row, column = divmod(cell, columns)
        x = [self.width * i // columns // 2 * 2 for i in (column, column + 1)]
        y = [self.height * i // rows // 2 * 2 for i in (row, row + 1)]
        return x[0], y[0], max(2, x[1] - x[0]), max(2, y[1] - y[0])

    def _canvas_of(self, placed: list[tuple[Frame, Tile]], color: ColorSpace) -> Canvas:
        """The image with all tiles, made where the frames are."""
        gpu = gpu_of([frame for frame, _ in placed])
        if gpu is not None:
            return canvas_for(composed(gpu, placed, (self.width, self.height), color, _DARK))
        canvas = PlanarCanvas(self._blank(color))
        for frame, tile in placed:
            planes = self._scale(frame, tile.meta.source_id, tile, color)
            canvas.put(planes, tile.left, tile.top)
        return canvas

    def _scale(self, frame: Frame, source: int, tile: Tile, color: ColorSpace) -> tuple[Plane, ...]:
        size = (tile.width, tile.height)
        last = self._scaled.get(source)
        if last is not None and last.frame is frame and last.size == size:
            return last.planes
        scaler = self._scalers.get(source)
        if scaler is None:
            scaler = self._scalers[source] = VideoReformatter()
        own = _color_of(frame, ColorSpace.BT601_FULL)
        if (
            frame.format is PixelFormat.I420
            and size == (frame.width, frame.height)
            and own == color
        ):
            planes = tuple(frame.planes)
        else:
            image = scaler.reformat(
                _av_image(frame),
                width=size[0],
                height=size[1],
                format="yuv420p",
                src_colorspace=matrix_code(own),
                dst_colorspace=matrix_code(color),
                src_color_range=2 if is_full(own) else 1,
                dst_color_range=2 if is_full(color) else 1,
                interpolation="BILINEAR",
            )
            shapes = plane_shapes(PixelFormat.I420, *size)
            planes = tuple(plane_array(image.planes[i], s) for i, s in enumerate(shapes))
        self._scaled[source] = _Scaled(frame, size, planes)
        return planes

    def _write_captions(self, canvas: Canvas, tiles: list[Tile], rows: int, columns: int) -> None:
        """The name of each source, below its image where there is room; of dark cells, why."""
        size = max(10, round(self.height / 60))
        longest = max(4, self.width // columns // size)
        names = captions(self._names, longest)
        for tile in tiles:
            text = render_text(names[tile.meta.source_id], "", size, _INK, _PAPER, 4)
            if text.width <= tile.width and text.height <= tile.height:
                bottom = tile.top + tile.height
                free = bottom + text.height <= tile.cell_bottom
                canvas.paste(text, tile.left, bottom if free else bottom - text.height)
        for source_id, why in self._over.items():
            cell = self._sources.index(source_id)
            if cell < rows * columns:
                left, top, width, height = self._cell(cell, rows, columns)
                for line in (names[source_id], *wrap(why, int(1.6 * longest))[:3]):
                    text = render_text(line, "", size, _INK, _PAPER, 4)
                    if text.width <= width and text.height <= height:
                        canvas.paste(text, left, top)
                        top, height = top + text.height, height - text.height

    def _blank(self, color: ColorSpace) -> Frame:
        shapes = plane_shapes(PixelFormat.I420, self.width, self.height)
        values = to_yuv(_DARK, color)
        planes = tuple(np.full(s, v, np.uint8) for s, v in zip(shapes, values, strict=True))
        return Frame(planes, PixelFormat.I420, self.width, self.height, color)

    def _finish(self, canvas: Canvas, tiles: list[Tile]) -> tuple[Frame, FrameMeta]:
        pts_ns = max([self._pts_ns + 1, *(tile.meta.pts_ns for tile in tiles)])
        meta = merge_metas(tiles, self.width, self.height)
        meta.frame, meta.pts_ns = self._frames, pts_ns
        frame = replace(
            canvas.frame(), pts_ns=pts_ns, frame=self._frames, source=meta.source, source_id=0
        )
        self._frames += 1
        self._pts_ns = pts_ns
        return frame, meta


def _color_of(frame: Frame, default: ColorSpace) -> ColorSpace:
    return frame.color if frame.format in (PixelFormat.I420, PixelFormat.NV12) else default


def _av_image(frame: Frame) -> Any:
    """The frame for swscale: the decoder's own image if it is just that, otherwise a copy."""
    own = frame.owner
    if frame.format is PixelFormat.I420 and hasattr(own, "planes") and hasattr(own, "reformat"):
        same = (own.width, own.height) == (frame.width, frame.height) and own.format.name in (
            "yuv420p",
            "yuvj420p",
        )
        if same and own.planes[0].buffer_ptr == frame.planes[0].ctypes.data:
            return own
    return to_av(frame)

"""nvmultistreamtiler: the images of all sources on one, with their metadata moved along."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headrace._core.errors import MediaError
from headrace.gstreamer import pyds
from headrace.gstreamer.elements.element import NVMM, through
from headrace.gstreamer.elements.geometry import black, paste
from headrace.gstreamer.elements.properties import COMMON, Property
from headrace.gstreamer.elements.remake import Remaking
from headrace.gstreamer.elements.surface import Surface
from headrace.gstreamer.elements.tree import frames_of, image_of
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_frame_meta_from_pool,
    nvds_add_frame_meta_to_batch,
)
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, NvDsFrameMeta, items
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat
from headrace.media.resizing import scaled

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.osd import NvOSD_RectParams, NvOSD_TextParams
    from headrace.media.pixel_format import Plane


PROPERTIES = COMMON | {
    "rows": Property("uint", 1, "of tiles", 1),
    "columns": Property("uint", 1, "of tiles", 1),
    "width": Property("uint", 1920, "of the whole image", 16),
    "height": Property("uint", 1080, "of the whole image", 16),
    "show-source": Property("int", -1, "show this source alone; -1: all", -1),
    "buffer-pool-size": Property("uint", 5, "accepted; buffers are made as needed", 4, 10),
    "square-seq-grid": Property("bool", False, "as many rows as columns, by the sources"),
}


class NvMultiStreamTiler(Remaking):
    """Puts the image of source k into column k mod columns, row k div columns."""

    __gtype_name__ = "GstNvMultiStreamTiler"
    ABOUT = ("Tiler", "Filter/Video", "Tiles the images of a batch")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES
    FRAMES = ("batch-size",)

    def __init__(self) -> None:
        super().__init__()
        self._planes: tuple[Plane, ...] = ()
        self._grid = (0, 0)

    def remade(self, batch: NvDsBatchMeta) -> NvDsBatchMeta:
        """Return a batch of one frame, with the images and metadata of all."""
        width, height, only = (self.values[k] for k in ("width", "height", "show-source"))
        frames = [f for f in frames_of(batch) if only < 0 or f.source_id == only]
        rows, columns = self._layout(frames) if only < 0 else (1, 1)
        self._keep_planes(width, height, (rows, columns))
        whole = pyds.NvDsBatchMeta()
        whole.base_meta.meta_type = pyds.NvDsMetaType.NVDS_BATCH_META
        whole.max_frames_in_batch = 1
        one = nvds_acquire_frame_meta_from_pool(whole)
        one.source_frame_width = one.pipeline_width = width
        one.source_frame_height = one.pipeline_height = height
        tile_w, tile_h = width // columns // 2 * 2, height // rows // 2 * 2
        if not (tile_w and tile_h):
            raise MediaError(
                f"{columns} x {rows} tiles do not fit into {width}x{height}", where=self.get_name(),
                fix="set width and height, or rows and columns",
            )  # fmt: skip
        color = ColorSpace.BT601
        for frame in frames:
            tile = int(frame.source_id) if only < 0 else 0
            left, top = tile % columns * tile_w, tile // columns * tile_h
            image = image_of(batch, frame)
            color = image.color
            paste(self._planes, scaled(image, tile_w, tile_h), left, top)
            move(frame, tile_w / image.width, tile_h / image.height, left, top)
            one.buf_pts = max(one.buf_pts, frame.buf_pts)
            one.ntp_timestamp = frame.ntp_timestamp
            one.bInferDone |= frame.bInferDone
            for name in ("obj_meta_list", "display_meta_list", "frame_user_meta_list"):
                for item in items(frame, name):
                    items(one, name).append(item)
        for user in items(batch, "batch_user_meta_list"):
            items(whole, "batch_user_meta_list").append(user)
        planes = tuple(plane.copy() for plane in self._planes)
        whole.surfaces = [Surface(Frame(planes, PixelFormat.I420, width, height, color))]
        nvds_add_frame_meta_to_batch(whole, one)
        return whole

    def _layout(self, frames: list[NvDsFrameMeta]) -> tuple[int, int]:
        """Rows and columns; a nearly square grid where sources do not fit the application's."""
        rows, columns = self.values["rows"], self.values["columns"]
        most = max((int(f.source_id) for f in frames), default=0) + 1
        if self.values["square-seq-grid"]:
            side = math.ceil(math.sqrt(most))
            return side, side
        if self._grid[0] * self._grid[1] >= most and self._grid[0] >= rows:
            return self._grid
        if most > rows * columns:
            columns = math.ceil(math.sqrt(most))
            rows = math.ceil(most / columns)
        return rows, columns

    def _keep_planes(self, width: int, height: int, grid: tuple[int, int]) -> None:
        """Images of sources that are missing from a batch stay; a new grid starts black."""
        if not self._planes or self._grid != grid or self._planes[0].shape != (height, width):
            self._grid, self._planes = grid, black(width, height)


def move(frame: NvDsFrameMeta, ratio_x: float, ratio_y: float, left: int, top: int) -> None:
    """Move all metadata of a frame to its tile."""
    for obj in items(frame, "obj_meta_list"):
        _move_rect(obj.rect_params, ratio_x, ratio_y, left, top)
        _move_text(obj.text_params, ratio_x, ratio_y, left, top)
    for display in items(frame, "display_meta_list"):
        for i in range(display.num_rects):
            _move_rect(display.rect_params[i], ratio_x, ratio_y, left, top)
        for i in range(display.num_labels):
            _move_text(display.text_params[i], ratio_x, ratio_y, left, top)
        for params in (
            *(display.line_params[i] for i in range(display.num_lines)),
            *(display.arrow_params[i] for i in range(display.num_arrows)),
        ):
            params.x1, params.x2 = (int(left + v * ratio_x) for v in (params.x1, params.x2))
            params.y1, params.y2 = (int(top + v * ratio_y) for v in (params.y1, params.y2))
        for i in range(display.num_circles):
            circle = display.circle_params[i]
            circle.xc, circle.yc = int(left + circle.xc * ratio_x), int(top + circle.yc * ratio_y)
            circle.radius = int(circle.radius * min(ratio_x, ratio_y))


def _move_rect(rect: NvOSD_RectParams, ratio_x: float, ratio_y: float, left: int, top: int) -> None:
    rect.left, rect.top = left + rect.left * ratio_x, top + rect.top * ratio_y
    rect.width, rect.height = rect.width * ratio_x, rect.height * ratio_y


def _move_text(text: NvOSD_TextParams, ratio_x: float, ratio_y: float, left: int, top: int) -> None:
    text.x_offset = int(left + text.x_offset * ratio_x)
    text.y_offset = int(top + text.y_offset * ratio_y)

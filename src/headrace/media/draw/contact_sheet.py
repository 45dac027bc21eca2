"""Several frames on one image, to see a scene at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace._core.errors import MediaError
from headrace._core.files import PartFile, os_errors
from headrace.media.frame import Frame
from headrace.media.pixels import to_rgb
from headrace.media.sinks.base import make_folder

_GAP, _BACKGROUND, _INK = 8, (24, 26, 30), (214, 218, 224)


def contact_sheet(
    frames: Sequence[Frame],
    path: str | Path,
    *,
    columns: int | None = None,
    tile_width: int = 640,
    captions: bool = True,
) -> Path:
    """Write a PNG with the given frames in reading order.

    Args:
        frames: drawn or plain, any format and size; each keeps its shape within its tile.
        path: where to write; missing parent folders are created.
        columns: tiles in a row; None makes the sheet about as wide as high.
        tile_width: width of a tile in pixels; its height follows from the first frame.
        captions: frame number and time under each.

    Returns:
        `path`.

    Raises:
        MediaError: there are no frames, or the file cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    path = Path(path)
    if not frames:
        raise MediaError("a contact sheet needs at least one frame", where=str(path))
    if columns is None:
        shape = frames[0].width / frames[0].height
        columns = round(math.sqrt(len(frames) / shape))
    columns = max(1, min(columns, len(frames)))
    rows = -(-len(frames) // columns)
    tile_height = max(1, round(tile_width * frames[0].height / frames[0].width))
    caption = 22 if captions else 0
    step_x, step_y = tile_width + _GAP, tile_height + caption + _GAP
    sheet = Image.new("RGB", (columns * step_x + _GAP, rows * step_y + _GAP), _BACKGROUND)
    ink = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(14)
    for i, frame in enumerate(frames):
        x, y = _GAP + i % columns * step_x, _GAP + i // columns * step_y
        tile = _fitted(Image.fromarray(to_rgb(frame)), tile_width, tile_height)
        left, top = (tile_width - tile.width) // 2, (tile_height - tile.height) // 2
        sheet.paste(tile, (x + left, y + top))
        if captions:
            text = f"frame {frame.frame}   {frame.pts_ns / 1e9:.2f} s"
            ink.text((x + 1, y + tile_height + 4), text, fill=_INK, font=font)
    make_folder(path.parent, str(path))
    with os_errors(MediaError, "the contact sheet cannot be written", path), PartFile(path) as part:
        sheet.save(part, "PNG", optimize=True)
    return path


def _fitted(image: Any, width: int, height: int) -> Any:
    from PIL import Image

    ratio = min(width / image.width, height / image.height)
    size = (max(1, round(image.width * ratio)), max(1, round(image.height * ratio)))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)

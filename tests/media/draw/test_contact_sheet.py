"""Contact sheets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace.errors import MediaError
from headrace.media import Frame, PixelFormat
from headrace.media.draw import contact_sheet


def colored(i: int, width: int = 64, height: int = 36) -> Frame:
    pixels = np.full((height, width, 3), (40 * i, 255 - 40 * i, 128), np.uint8)
    return Frame.from_array(pixels, PixelFormat.RGB, frame=i, pts_ns=i * 10**9)


def test_tiles_in_reading_order(tmp_path: Path) -> None:
    path = contact_sheet(
        [colored(i) for i in range(5)], tmp_path / "new" / "s.png", columns=3, tile_width=128
    )
    assert list(path.parent.iterdir()) == [path]
    sheet = np.asarray(Image.open(path))
    assert sheet.shape[1] == 3 * (128 + 8) + 8
    step = 72 + 22 + 8
    for i in range(5):
        x, y = 8 + i % 3 * 136 + 64, 8 + i // 3 * step + 36
        assert tuple(sheet[y, x]) == (40 * i, 255 - 40 * i, 128)
    assert (sheet[8 + step + 36, 8 + 2 * 136 + 64] == sheet[0, 0]).all()  # no sixth


def test_other_shapes_are_fitted(tmp_path: Path) -> None:
    frames = [colored(0), colored(1, 36, 64)]
    sheet = np.asarray(Image.open(contact_sheet(frames, tmp_path / "s.png", captions=False)))
    assert sheet.shape == (2 * 368 + 8, 656, 3)


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="at least one frame"):
        contact_sheet([], tmp_path / "s.png")
    (tmp_path / "f").touch()
    with pytest.raises(MediaError, match="is a file, not a folder"):
        contact_sheet([colored(0)], tmp_path / "f" / "s.png")

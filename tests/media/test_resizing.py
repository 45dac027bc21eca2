"""Frames get the size of the muxer: stretched, or with black beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.resizing import FrameSize, scaled

KNOWN: dict[str, Any] = {"wall_ns": 5, "fps": 2.0, "live": True}


def frame(width: int, height: int, format: PixelFormat) -> Frame:
    if format is PixelFormat.BGR:
        return Frame.from_array(
            np.full((height, width, 3), 200, np.uint8), frame=7, source_id=3, **KNOWN
        )
    luma = np.full((height, width), 200, np.uint8)
    chroma = np.full((height // 2, width // 2), 90, np.uint8)
    planes = (luma, chroma, chroma)
    if format is PixelFormat.NV12:
        planes = (luma, np.dstack([chroma, chroma]))  # type: ignore[assignment]
    return Frame(planes, format, width, height, frame=7, source_id=3, **KNOWN)


FORMATS = [PixelFormat.BGR, PixelFormat.I420, PixelFormat.NV12]


@pytest.mark.parametrize("format", FORMATS)
def test_an_image_is_stretched(format: PixelFormat) -> None:
    fitted = FrameSize(64, 64).fitted(frame(80, 40, format))
    assert (fitted.width, fitted.height, fitted.format) == (64, 64, format)
    assert (fitted.frame, fitted.source_id) == (7, 3)
    assert {name: getattr(fitted, name) for name in KNOWN} == KNOWN
    assert np.abs(fitted.planes[0].astype(int) - 200).max() <= 1


@pytest.mark.parametrize("format", FORMATS)
def test_padding_keeps_the_aspect_ratio(format: PixelFormat) -> None:
    fitted = FrameSize(64, 64, padding=True).fitted(frame(80, 40, format))
    assert (fitted.width, fitted.height, fitted.format) == (64, 64, format)
    assert {name: getattr(fitted, name) for name in KNOWN} == KNOWN
    luma = fitted.to_rgb()
    assert luma[:31].min() > 60  # the image lies at the top
    assert luma[33:].max() <= 2
    assert (fitted.frame, fitted.source_id) == (7, 3)
    assert {name: getattr(fitted, name) for name in KNOWN} == KNOWN


def test_an_image_of_the_size_is_not_copied() -> None:
    same = frame(80, 40, PixelFormat.I420)
    assert scaled(same, 80, 40) is same
    assert FrameSize(80, 40, padding=True).fitted(same) is same

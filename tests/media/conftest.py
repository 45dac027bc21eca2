"""Tiny clips, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from headrace.media import Frame, PixelFormat
from headrace.meta import Detections, FrameMeta, Space


def luma_of(index: int) -> int:
    """The grey level frame `index` of a test clip is filled with."""
    return 40 + index * 7 % 160


def write_clip(
    path: Path,
    frames: int = 12,
    *,
    size: tuple[int, int] = (64, 48),
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    pts: list[int] | None = None,
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
    color: tuple[int, int] | None = None,
) -> Path:
    """Frame i is filled with `luma_of(i)`; 25 fps unless `pts` (in ms) says otherwise."""
    width, height = size
    with av.open(str(path), "w", container_options=container_options or {}) as out:
        stream = out.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        stream.options = options or {}
        stream.codec_context.thread_count = 1
        if color:
            stream.codec_context.colorspace, stream.codec_context.color_range = color
        for i in range(frames):
            gray = np.full((height, width), luma_of(i), np.uint8)
            image = av.VideoFrame.from_ndarray(gray, format="gray").reformat(format=pix_fmt)
            if pix_fmt == "yuv420p":
                np.frombuffer(image.planes[0], np.uint8)[:] = luma_of(i)  # exactly
            image.pts, image.time_base = (pts[i] if pts else i * 40), Fraction(1, 1000)
            out.mux(stream.encode(image))
        out.mux(stream.encode(None))
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """12 frames of 64x48 at 25 fps."""
    return write_clip(tmp_path / "clip.mp4")


def gray_frame(number: int = 0, size: tuple[int, int] = (64, 48), **fields: Any) -> Frame:
    """An I420 frame filled with `luma_of(number)`."""
    width, height = size
    half = ((height + 1) // 2, (width + 1) // 2)
    planes = (
        np.full((height, width), luma_of(number), np.uint8),
        np.full(half, 128, np.uint8),
        np.full(half, 128, np.uint8),
    )
    fields = {"pts_ns": number * 40_000_000, "frame": number, "source": "made.mp4"} | fields
    return Frame(planes, PixelFormat.I420, width, height, **fields)


MakeMeta = Callable[..., FrameMeta]


@pytest.fixture
def make_meta() -> MakeMeta:
    """Metadata of a frame with given (left, top, width, height, score, class) objects."""

    def make(frame: Frame, *objects: tuple[float, ...], labels: Any = ("car", "bus")) -> FrameMeta:
        meta = FrameMeta(
            frame.source, frame.source_id, frame.frame, frame.pts_ns, frame.width, frame.height,
            inferred=True,
        )  # fmt: skip
        table = np.array(objects, np.float32).reshape(-1, 6)
        found = Detections(
            table[:, :4], table[:, 4], table[:, 5].astype(np.int32), space=Space.FRAME
        )
        meta.objects.append(found, 1, labels=labels)
        return meta

    return make

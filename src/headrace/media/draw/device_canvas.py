"""Drawing on an image where a GPU decoded it; the bytes are those that the CPU draws."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int32, c_uint64
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.gpu.cuda import entered
from headrace.media.device_planes import Components, DevicePlanes
from headrace.media.draw.canvas import (
    Box,
    Canvas,
    PackedCanvas,
    PlanarCanvas,
    byte_of,
    ink_tables,
)
from headrace.media.draw.colors import Rgb
from headrace.media.draw.device_images import DeviceImages
from headrace.media.draw.overlays import Overlay
from headrace.media.draw.text import Rgba, TextBox
from headrace.media.frame import Frame
from headrace.media.pixel_format import ColorSpace, PixelFormat, Plane

_FILL, _OUTLINE, _TEXT = range(3)
COMMAND = np.dtype(
    [
        ("kind", "i4"),
        ("box", "i4", (4,)),
        ("width", "i4"),
        ("opacity", "i4"),
        ("opaque", "i4"),
        ("color", "u1", (4,)),
        ("pitch", "i4"),
        ("cover", "u8"),
        ("inks", "u8"),
    ],
    align=True,
)
"""`Command` of native/gpu/draw_kernel.cu."""

INK = np.dtype([("color", "f4", (3,)), ("bytes", "u1", (3,)), ("alpha", "u1")])
"""`Ink` of native/gpu/draw_kernel.cu."""

_Inks = npt.NDArray[np.void]


class _Sheet(ctypes.Structure):
    """`Sheet` of native/gpu/draw_kernel.cu."""

    _fields_ = (
        ("component", Components),
        *((name, c_uint64) for name in ("commands", "luma", "chroma")),
        *((name, c_int32) for name in ("count", "wide", "width", "height", "pitch")),
    )


class DeviceCanvas(Canvas):
    """A drawing on a frame in a GPU's memory: fills, outlines and texts are drawn there at once.

    With the first overlay all is drawn on the host, as on any other frame.
    """

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame, frame.color)
        self._host: PlanarCanvas | None = None
        self._calls: list[tuple[Any, ...]] = []

    def fill(self, box: Box, color: Rgb, alpha: float = 1.0) -> None:
        """See `Canvas`."""
        if self._host is not None:
            self._host.fill(box, color, alpha)
        else:
            self._calls.append((_FILL, box, 0, color, alpha))

    def outline(self, box: Box, width: int, color: Rgb, alpha: float = 1.0) -> None:
        """See `Canvas`."""
        if self._host is not None:
            self._host.outline(box, width, color, alpha)
        else:
            self._calls.append((_OUTLINE, box, width, color, alpha))

    def paste(self, text: TextBox, left: int, top: int) -> None:
        """See `Canvas`."""
        self._note_missing(text)
        if self._host is not None:
            self._host.paste(text, left, top)
        else:
            self._calls.append((_TEXT, text, left, top))

    def show(self, rgb: Plane) -> None:
        """See `Canvas`."""
        self._on_host().show(rgb)

    def blend(self, overlay: Overlay) -> None:
        """See `Canvas`."""
        self._on_host().blend(overlay)

    def _on_host(self) -> PlanarCanvas:
        if self._host is None:
            self._host = host = PlanarCanvas(self._frame)
            draw = {_FILL: lambda box, _, *look: host.fill(box, *look)}
            draw |= {_OUTLINE: host.outline, _TEXT: host.paste}
            for kind, *arguments in self._calls:
                draw[kind](*arguments)
        return self._host

    def frame(self) -> Frame:
        """The drawn image; NV12 in the memory of the same GPU unless the host drew.

        Raises:
            EngineError: the GPU has no memory left, or failed.
        """
        if self._host is not None:
            return self._host.frame()
        planes = self._frame.on_device
        assert planes is not None
        with entered(planes.gpu):
            drawing = _here.drawings.get(planes.gpu)
            if drawing is None:
                drawing = _here.drawings[planes.gpu] = _Drawing()
            drawn = drawing.run(planes, *self._commands())
        return replace(self._frame, planes=drawn, owner=None)

    def _commands(self) -> tuple[npt.NDArray[np.void], list[Plane], list[_Inks]]:
        """Records of the kernel, with indexes of texts and inks in the place of their addresses."""
        rows: list[tuple[Any, ...]] = []
        covers: list[Plane] = []
        inks: dict[Any, tuple[int, bool, _Inks]] = {}
        for kind, *call in self._calls:
            if kind == _TEXT:
                text, left, top = call
                key = (text.color, text.background)
                if key not in inks:
                    table = _device_inks(*key, self._frame.color)
                    inks[key] = (len(inks), bool((table["alpha"] == 255).all()), table)
                number, opaque, _ = inks[key]
                box = (left, top, left + text.width, top + text.height)
                rows.append((kind, box, 0, 0, opaque, (0,) * 4, text.width, len(covers), number))
                covers.append(text.cover)
            else:
                box, width, color, alpha = call
                ink = (*self._value(color), 0)
                rows.append((kind, box, width, byte_of(alpha), 0, ink, 0, 0, 0))
        return np.array(rows, COMMAND), covers, [table for _, _, table in inks.values()]


@lru_cache(maxsize=256)
def _device_inks(color: Rgba, background: Rgba | None, space: ColorSpace) -> _Inks:
    colors, alphas = ink_tables(color, background, space)
    table = np.zeros(len(alphas), INK)
    table["color"], table["alpha"] = colors, alphas
    table["bytes"] = np.clip(np.rint(colors), 0, 255)
    return table


class _Drawing:
    """Draws on one GPU in one thread."""

    def __init__(self) -> None:
        self._images = DeviceImages("draw")

    def run(
        self,
        planes: DevicePlanes,
        commands: npt.NDArray[np.void],
        covers: list[Plane],
        inks: list[_Inks],
    ) -> DevicePlanes:
        """Draw on a copy; wait until it is there."""
        sizes = [
            commands.nbytes,
            sum(table.nbytes for table in inks),
            sum(c.nbytes for c in covers),
        ]
        base, staging = self._images.stage(sum(sizes) + 1)
        tables, letters = base + sizes[0], base + sizes[0] + sizes[1]
        is_text = commands["kind"] == _TEXT
        commands["inks"][is_text] = commands["inks"][is_text] * (256 * INK.itemsize) + tables
        starts = np.cumsum([0, *(cover.size for cover in covers)], dtype=np.uint64)
        commands["cover"][is_text] = letters + starts[:-1]
        at = 0
        for part in (commands, *inks, *covers):
            staging[at : at + part.nbytes] = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
            at += part.nbytes
        record = _Sheet(
            component=planes.components, commands=base, count=len(commands), wide=planes.wide
        )
        surface = self._images.make(record, planes.width, planes.height)
        return DevicePlanes(surface, gpu=planes.gpu)


class _Here(threading.local):
    """One thread's drawings, by GPU."""

    def __init__(self) -> None:
        self.drawings: dict[int, _Drawing] = {}


_here = _Here()


def canvas_for(frame: Frame) -> Canvas:
    """A canvas in the pixel format of `frame`, or I420 for NV12 and GRAY.

    What is on a GPU and was not copied is drawn there.
    """
    if frame.on_device is not None and not frame.on_device.downloaded:
        return DeviceCanvas(frame)
    if frame.format in (PixelFormat.RGB, PixelFormat.BGR):
        return PackedCanvas(frame)
    return PlanarCanvas(frame)

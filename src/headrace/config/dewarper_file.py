"""The config file of `nvdewarper`, as it is: surfaces, each a view that is made of an image.

Facts: the manual of Gst-nvdewarper and the behaviour of its reader, 5.0 to 9.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.config.app.keys import MOST_SURFACES, AppGroup
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.app.reasons import HARDWARE, Reason
from headrace.config.document import Document, Group, report
from headrace.config.key import Key
from headrace.config.reading import read_bytes, read_document
from headrace.config.values import Kind

_AXES = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
_DEFAULT_SIZE = (960, 752)


class Lens(StrEnum):
    """How directions lie on an image."""

    PERSPECTIVE = "perspective"
    FISHEYE = "fisheye"
    EQUIRECTANGULAR = "equirectangular"
    CYLINDER = "cylinder"
    VERTICAL_CYLINDER = "vertical cylinder"
    PUSHBROOM = "pushbroom"
    PANINI = "Panini"
    STEREOGRAPHIC = "stereographic"


_FISH, _PLANE, _SPHERE = Lens.FISHEYE, Lens.PERSPECTIVE, Lens.EQUIRECTANGULAR
# projection-type -> the lens of the image, that of the view
PROJECTIONS = {
    1: (_FISH, Lens.PUSHBROOM), 2: (_FISH, Lens.VERTICAL_CYLINDER), 3: (_PLANE, _PLANE),
    4: (_FISH, _PLANE), 5: (_FISH, _FISH), 6: (_FISH, Lens.CYLINDER), 7: (_FISH, _SPHERE),
    8: (_FISH, Lens.PANINI), 9: (_PLANE, _SPHERE), 10: (_PLANE, Lens.PANINI),
    11: (_SPHERE, Lens.CYLINDER), 12: (_SPHERE, _SPHERE), 13: (_SPHERE, _FISH),
    14: (_SPHERE, Lens.PANINI), 15: (_SPHERE, _PLANE), 16: (_SPHERE, Lens.PUSHBROOM),
    17: (_SPHERE, Lens.STEREOGRAPHIC), 18: (_SPHERE, Lens.VERTICAL_CYLINDER),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DewarpedSurface:
    """One view of the image. Angles are degrees, lengths pixels; X is right, Y down, Z ahead.

    Attributes:
        projection: its number, a key of `PROJECTIONS`.
        index: number among the surfaces of one kind.
        width, height: of the view.
        top, bottom: angles of its upper and lower edge; both 0: the view has the image's scale.
        pitch, yaw, roll: turn the view upward, rightward and clockwise.
        axes: the order of these turns, the first one around the image's axes.
        matrix: a rotation in their place, column by column.
        focal: of the image, in x and y; None where `fov` gives it.
        fov: the image's vertical angle of view.
        distortion: fisheye: k1 to k4; perspective: k1, k2, k3, p1, p2.
        center: of projection in the image; None is its middle.
        control: parameter of Panini, stereographic and pushbroom views.
        view_focal, view_center: of the view, over what the angles give.
        is_bordered: True has black beyond the image's edge, False its edge.
    """

    projection: int
    index: int
    width: int
    height: int
    top: float = 0.0
    bottom: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0
    axes: str = "YXZ"
    matrix: tuple[float, ...] | None = None
    focal: tuple[float, float] | None = None
    fov: float = 0.0
    distortion: tuple[float, ...] = (0.0,) * 5
    center: tuple[float | None, float | None] = (None, None)
    control: float = 0.6
    view_focal: tuple[float, float] | None = None
    view_center: tuple[float, float] | None = None
    is_bordered: bool = False


@dataclass(frozen=True, slots=True)
class DewarperConfig:
    """The file's values.

    Attributes:
        surfaces: in the order of the file, 1 to 4.
        size: width and height of each output image in pixels; views are scaled to it.
        notices: keys that have no effect, and why.
    """

    surfaces: tuple[DewarpedSurface, ...]
    size: tuple[int, int]
    notices: tuple[Finding, ...] = ()


def _key(name: str, kind: Kind, **more: Any) -> Key:
    return Key(name=name, group="dewarper", kind=kind, default=None, meaning="", **more)


def _keys(*keys: Key) -> dict[str, Key]:
    return {key.name: key for key in keys}


def _size(name: str) -> Key:
    return _key(name, Kind.INT, low=2, high=16384)


def _angle(name: str) -> Key:
    return _key(name, Kind.FLOAT, low=-360, high=360)


_INT, _FLOAT, _FLOATS = Kind.INT, Kind.FLOAT, Kind.FLOATS
_CALIBRATION = Reason("warning", "tables of calibration are not read; write the groups [surfaceN]")
_PROPERTY = AppGroup(
    "property",
    re.compile("property"),
    _keys(
        _size("output-width"),
        _size("output-height"),
        _key("num-batch-buffers", _INT, low=1, high=MOST_SURFACES),
    ),
    unused={
        "enable": Reason("info", "the file counts where it is named"),
        "source-id": Reason("info", "the element's property counts"),
        "gpu-id": HARDWARE,
        "cuda-memory-type": HARDWARE,
        "dewarp-dump-frames": Reason("warning", "images are not dumped; an output shows them"),
        "aisle-calibration-file": _CALIBRATION,
        "spot-calibration-file": _CALIBRATION,
    },
    switched=False,
)
_SURFACE = AppGroup(
    "surfaceN",
    re.compile("surface[0-9]+"),
    _keys(
        _key("projection-type", _INT, low=1, high=max(PROJECTIONS)),
        _key("surface-index", _INT, low=0, high=65535),
        *map(_size, ("width", "height")),
        *map(_angle, ("top-angle", "bottom-angle", "pitch", "yaw", "roll")),
        _key("focal-length", _FLOATS, low=0, high=1e6, counts=(1, 2)),
        _key("src-fov", _FLOAT, low=0, high=360),
        _key("distortion", _FLOATS, low=-1e6, high=1e6, counts=(1, 2, 3, 4, 5)),
        *(_key(name, _FLOAT, low=-1e5, high=1e5) for name in ("src-x0", "src-y0")),
        _key("cuda-address-mode", _INT, low=0, high=1),
        _key("rot-axes", Kind.STRING, choices=_AXES),
        _key("rot-matrix", _FLOATS, low=-1e3, high=1e3, counts=(9,)),
        _key("control", _FLOAT, low=0, high=10),
        _key("dst-focal-length", _FLOATS, low=0, high=1e6, counts=(1, 2)),
        _key("dst-principal-point", _FLOATS, low=-1e5, high=1e5, counts=(2,)),
    ),
    switched=False,
)


def load_dewarper(path: str | Path) -> DewarperConfig:
    """Read a config file of `nvdewarper`.

    Raises:
        ConfigError: it cannot be read, or something in it is refused.
    """
    path = Path(path)
    document = read_document(read_bytes(path), path)
    config = None if document.problems else _read(document)
    report(path, document.problems)
    if config is None:
        raise ConfigError("the file holds no surface", where=str(path), expected="[surface0]")
    return config


def _read(document: Document) -> DewarperConfig | None:
    reader = AppReader(document)
    size, most = _DEFAULT_SIZE, MOST_SURFACES
    surfaces: list[DewarpedSurface] = []
    for group in document.groups.values():
        if _PROPERTY.pattern.fullmatch(group.name):
            section = reader.read(_PROPERTY, group)
            assert section is not None  # nothing switches it off
            size = section.get("output-width", size[0]), section.get("output-height", size[1])
            most = section.get("num-batch-buffers", most)
        elif _SURFACE.pattern.fullmatch(group.name):
            surfaces += _surface(document, reader, group)
        else:
            text = f"[{quoted(group.name)}] is not a group of this file and has no effect"
            document.remark(group.line, text, code="unknown-key")
    reader.tell_unused()
    if len(surfaces) > most:
        text = f"{most} surfaces of {len(surfaces)} are made, as num-batch-buffers says"
        document.remark(1, text, code="key-approximated")
    if document.problems or not surfaces:
        return None
    notices = tuple(notice for _, notice in sorted(document.notices, key=lambda one: one[0]))
    return DewarperConfig(tuple(surfaces[:most]), size, notices)


def _surface(document: Document, reader: AppReader, group: Group) -> list[DewarpedSurface]:
    section = reader.read(_SURFACE, group)
    assert section is not None  # nothing switches it off
    missing = [key for key in ("projection-type", "width", "height") if key not in section.values]
    if missing:
        text = f"[{quoted(group.name)}] has no {missing[0]}."
        document.refuse(group.line, text, f"{', '.join(missing)} in each surface")
        return []
    focal, fov = _pair(section, "focal-length"), section.get("src-fov", 0.0)
    top, bottom = section.get("top-angle", 0.0), section.get("bottom-angle", 0.0)
    if focal is None and not fov:
        text = f"[{quoted(group.name)}] names no lens."
        document.refuse(group.line, text, "focal-length in pixels, or src-fov in degrees")
        return []
    if top <= bottom and (top or bottom):
        text = f"top-angle={top:g} is not above bottom-angle={bottom:g}."
        document.refuse(section.line("top-angle"), text, "the upper edge above the lower one")
        return []
    distortion = tuple(section.get("distortion", ()))
    return [
        DewarpedSurface(
            section.get("projection-type"),
            section.get("surface-index", 0),
            section.get("width"),
            section.get("height"),
            top,
            bottom,
            section.get("pitch", 0.0),
            section.get("yaw", 0.0),
            section.get("roll", 0.0),
            axes=section.get("rot-axes", "YXZ"),
            matrix=section.get("rot-matrix"),
            focal=focal,
            fov=fov,
            distortion=(*distortion, *(0.0,) * (5 - len(distortion))),
            center=(section.get("src-x0") or None, section.get("src-y0") or None),
            control=section.get("control", 0.6),
            view_focal=_pair(section, "dst-focal-length"),
            view_center=section.get("dst-principal-point"),
            is_bordered=section.get("cuda-address-mode", 0) == 1,
        )
    ]


def _pair(section: FoundGroup, key: str) -> tuple[float, float] | None:
    """Two focal lengths; one number counts for both, 0 is none."""
    values = section.get(key, (0.0,))
    return (values[0], values[-1] or values[0]) if values[0] else None

"""A seeded video of parcels on a conveyor belt, with exact ground truth for every frame."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageChops, ImageFilter

from .camera import SIN, SUPERSAMPLE
from .parcels import CLASSES, Design, build, design
from .sprites import Sprite, draw
from .surroundings import BELT_BOTTOM, BELT_TOP, HEIGHT, WIDTH, Belt, Gantry, Surroundings

__all__ = ["FPS", "MIN_VISIBLE", "Scene", "Truth"]

FPS = 25
MIN_VISIBLE = 0.25
"""A parcel of which less than this share can be seen is not asked of a detector."""

Box = tuple[float, float, float, float]
_SHADOW = (7, 8, 11)
_SPRITES_KEPT = 64
_MARGIN = 160 * SUPERSAMPLE


@dataclass(frozen=True)
class Truth:
    """What is known about one parcel in one frame; boxes are (left, top, width, height) in pixels.

    Attributes:
        parcel: number of the parcel in its scene, the same in all frames.
        class_id, label: its kind, an index into and a name of CLASSES.
        box: the tightest box around its visible pixels.
        visible: visible share of its pixels, 0..1.
        code: the characters printed on its label.
        characters: for each character the box of its ink, cut at the frame.
        character_visible: for each character the visible share of its ink box, 0..1.
    """

    parcel: int
    class_id: int
    label: str
    box: Box
    visible: float
    code: str
    characters: tuple[Box, ...]
    character_visible: tuple[float, ...]

    @property
    def ignored(self) -> bool:
        """Too little of it can be seen to count as a miss or as a false alarm."""
        return self.visible < MIN_VISIBLE

    @property
    def readable(self) -> bool:
        """Every character of the code can be seen in full."""
        return all(share > 0.999 for share in self.character_visible)


@dataclass(frozen=True)
class _Parcel:
    number: int
    plan: Design
    start: int  # sub-pixels; x of the centre at frame 0
    row: int  # image row of the centre on the belt


@dataclass(frozen=True)
class _Placed:
    parcel: _Parcel
    sprite: Sprite
    code: str
    pixel: int  # column of the centre
    step: int  # and its sub-pixel position

    @property
    def corner(self) -> tuple[int, int]:
        return self.pixel + self.sprite.left, self.parcel.row + self.sprite.top


@dataclass
class Scene:
    """Everything about one line, from one seed: equal seeds give equal pixels and truths.

    Frames can be asked in any order; neighbours are cheap, since parcels are drawn once and kept.
    """

    seed: int
    _lanes: tuple[list[_Parcel], list[_Parcel]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = self._rng(0)
        self.belt_end = int(rng.choice([WIDTH + 40, rng.integers(380, 560)], p=[0.3, 0.7]))
        has_gantry = rng.random() < 0.6
        column = int(rng.integers(200, 520)) if has_gantry else None
        self.speed = int(rng.integers(9, 17))
        """Sub-pixels per frame."""
        self.density = float(rng.uniform(0.5, 1.4))
        self._surroundings = Surroundings.make(self._rng(1), belt_end=self.belt_end, gantry=column)
        self._belt = Belt.make(self._rng(2), end=self.belt_end)
        self._gantry = None if column is None else Gantry.make(self._rng(3), column)
        self._lens = _lens(float(rng.uniform(0.3, 0.6)))
        self._tone = _tone_curve(rng)
        self._noise = _noise(self._rng(4), float(rng.uniform(1.5, 4.0)))
        self._lanes = ([], [])
        self._lane_rng = (self._rng(5), self._rng(6))
        self._sprites: OrderedDict[int, tuple[Sprite, str]] = OrderedDict()

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *key])

    def frame(self, t: int) -> tuple[npt.NDArray[np.uint8], list[Truth]]:
        """Frame number `t` from 0: (384, 640, 3) uint8 RGB, and a Truth for each parcel that shows.

        Parcels with no visible pixel have no entry; see `Truth.ignored` for those with few.
        """
        placed = self._placed(t)
        image = self._surroundings.image.copy()
        self._belt.paste(image, t * self.speed)
        for p in placed:
            at = (p.pixel + p.sprite.shadow_left, p.parcel.row + p.sprite.shadow_top)
            image.paste(_SHADOW, at, p.sprite.shadow)
        for p in placed:
            colors, coverage = p.sprite.images[p.step]
            image.paste(colors, p.corner, coverage)
        image = ImageChops.multiply(image, self._surroundings.light)
        if self._gantry is not None:
            image = ImageChops.add(image, self._gantry.beam)
            image.paste(self._gantry.image, (0, 0), self._gantry.mask)
        owner = self._owners(placed)
        truths = [_truth(owner, k + 1, p) for k, p in enumerate(placed)]
        return self._camera(image, t), [truth for truth in truths if truth is not None]

    def owners(self, t: int) -> npt.NDArray[np.int32]:
        """(384, 640) int32: the number of the parcel that each pixel of a frame shows, or -1."""
        placed = self._placed(t)
        numbers = np.full(256, -1, np.int32)
        numbers[1 : len(placed) + 1] = [p.parcel.number for p in placed]
        return numbers[self._owners(placed)]

    def _placed(self, t: int) -> list[_Placed]:
        """The parcels in or near the image, in the order of painting: the far lane first."""
        travel = t * self.speed
        placed = []
        for lane in (0, 1):
            self._extend(lane, travel)
            for parcel in self._lanes[lane]:
                if -_MARGIN < parcel.start + travel < WIDTH * SUPERSAMPLE + _MARGIN:
                    sprite, code = self._sprite(parcel)
                    placed.append(
                        _Placed(parcel, sprite, code, *divmod(parcel.start + travel, SUPERSAMPLE))
                    )
        return placed

    def _owners(self, placed: list[_Placed]) -> npt.NDArray[np.uint8]:
        """(384, 640) uint8: 1 + index into `placed` of the parcel a pixel shows, 0 for none."""
        owner = Image.new("L", (WIDTH, HEIGHT), 0)
        for k, p in enumerate(placed):
            owner.paste(k + 1, p.corner, p.sprite.solid[p.step])
        if self._gantry is not None:
            owner.paste(0, (0, 0), self._gantry.solid)
        return np.asarray(owner)

    def _camera(self, image: Image.Image, t: int) -> npt.NDArray[np.uint8]:
        """Lens blur, exposure and white balance, sensor noise."""
        image = image.filter(self._lens).point(self._tone)
        rng = self._rng(7, t)
        x, y = (int(v) for v in rng.integers(0, (96, 96)))
        grain = self._noise.crop((x, y, x + WIDTH, y + HEIGHT))
        return np.array(ImageChops.add(image, grain, 1, -128))

    def _extend(self, lane: int, travel: int) -> None:
        """Put parcels on a lane, further and further to the left, until `travel` is covered."""
        parcels, rng = self._lanes[lane], self._lane_rng[lane]
        quarter = (BELT_BOTTOM - BELT_TOP) / 4
        centre = (BELT_TOP + BELT_BOTTOM) / 2 + quarter * (2 * lane - 1)
        while not parcels or parcels[-1].start + travel > -_MARGIN:
            kind = CLASSES[rng.integers(len(CLASSES))]
            plan = design(rng, kind, 2 * (quarter - 2) / SIN)
            slack = max(quarter - 2 - plan.reach[1] * SIN, 0.0)
            row = round(centre + float(rng.uniform(-slack, slack)))
            gap = float(rng.exponential(46.0)) / self.density + 5
            start = (WIDTH + 160 - float(rng.uniform(0, 150))) * SUPERSAMPLE
            if parcels:
                before = parcels[-1]
                soft = before.plan.kind in ("envelope", "bag") and kind == "envelope"
                if soft and rng.random() < 0.5:  # half on top of the one before
                    gap, row = -float(rng.uniform(14, 40)), row - 4
                distance = before.plan.reach[0] + plan.reach[0] + gap
                start = before.start - distance * SUPERSAMPLE
            parcels.append(_Parcel(2 * len(parcels) + lane, plan, round(start), row))

    def _sprite(self, parcel: _Parcel) -> tuple[Sprite, str]:
        kept = self._sprites.get(parcel.number)
        if kept is None:
            made, code = build(self._rng(8, parcel.number), parcel.plan)
            kept = (draw(made, parcel.plan, round(self.speed * 0.3)), code)
            self._sprites[parcel.number] = kept
            if len(self._sprites) > _SPRITES_KEPT:
                self._sprites.popitem(last=False)
        else:
            self._sprites.move_to_end(parcel.number)
        return kept


def _truth(owner: npt.NDArray[np.uint8], number: int, placed: _Placed) -> Truth | None:
    left, top = placed.corner
    parcel, sprite, step = placed.parcel, placed.sprite, placed.step
    width, height = sprite.solid[step].size
    x0, y0 = max(left, 0), max(top, 0)
    mine = owner[y0 : max(top + height, 0), x0 : max(left + width, 0)] == number
    columns, rows = np.flatnonzero(mine.any(axis=0)), np.flatnonzero(mine.any(axis=1))
    if not len(columns):
        return None
    box = (x0 + columns[0], y0 + rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1)
    characters, shares = [], []
    for x, y, w, h in sprite.characters[step] + (left, top, 0, 0):
        characters.append((float(x), float(y), float(w), float(h)))
        a, b = math.floor(x), math.floor(y)
        c, d = math.ceil(x + w), math.ceil(y + h)
        seen = np.count_nonzero(owner[max(b, 0) : max(d, 0), max(a, 0) : max(c, 0)] == number)
        shares.append(seen / ((c - a) * (d - b)))
    return Truth(
        parcel=parcel.number,
        class_id=CLASSES.index(parcel.plan.kind),
        label=parcel.plan.kind,
        box=(float(box[0]), float(box[1]), float(box[2]), float(box[3])),
        visible=float(np.count_nonzero(mine)) / sprite.sizes[step],
        code=placed.code,
        characters=tuple(characters),
        character_visible=tuple(shares),
    )


def _lens(sigma: float) -> ImageFilter.Kernel:
    """A slight defocus: a 3x3 Gaussian of that many pixels."""
    line = np.exp(-0.5 * (np.array([-1.0, 0.0, 1.0]) / sigma) ** 2)
    weights = np.outer(line, line).ravel()
    return ImageFilter.Kernel((3, 3), weights.tolist(), scale=float(weights.sum()))


def _tone_curve(rng: np.random.Generator) -> list[int]:
    """Look-up table of the three channels: exposure, contrast and white balance of this camera."""
    level = np.arange(256, dtype=np.float64) / 255
    exposure, gamma, contrast = rng.uniform(1.16, 1.42), rng.uniform(0.9, 1.06), rng.uniform(0, 0.4)
    curves = []
    for balance in 1 + rng.uniform(-0.035, 0.035, 3):
        x = (exposure * balance * level) ** gamma
        x = np.where(x < 0.8, x, 0.8 + 0.2 * np.tanh((x - 0.8) / 0.2))  # highlights roll off
        curves.append((1 - contrast) * x + contrast * (3 * x**2 - 2 * x**3))
    return [int(v) for v in np.clip(255 * np.concatenate(curves) + 0.5, 0, 255)]


def _noise(rng: np.random.Generator, strength: float) -> Image.Image:
    """Sensor noise around 128, larger than a frame so that each frame can take its own part."""
    shape = (HEIGHT + 96, WIDTH + 96)
    luma = rng.standard_normal(shape).astype(np.float32)[..., None]
    chroma = rng.standard_normal((*shape, 3)).astype(np.float32)
    grain = strength * (0.85 * luma + 0.5 * chroma)
    return Image.fromarray(np.clip(128.5 + grain, 0, 255).astype(np.uint8))

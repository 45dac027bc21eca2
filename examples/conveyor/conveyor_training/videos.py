"""Training images: many seeds of the scene, seen through bad cameras and codecs."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from conveyor_scene import Scene, Truth
from PIL import Image, ImageFilter

__all__ = ["TEST_SEEDS", "TRAIN_SEEDS", "VALIDATION_SEEDS", "Shot", "resample", "shoot"]

TEST_SEEDS = range(1_000)
"""For tests, benchmarks and the clip: never trained on."""
VALIDATION_SEEDS = range(1_000, 2_000)
TRAIN_SEEDS = range(10_000, 1_000_000)

Pixels = npt.NDArray[np.uint8]
T = TypeVar("T")


@dataclass(frozen=True)
class Shot:
    """One frame with its truth, after the codec."""

    image: Pixels
    truths: list[Truth]
    rng: np.random.Generator


def shoot(
    take: Callable[[Shot], T], seeds: Iterable[int], per_seed: int, workers: int, *, degrade: bool
) -> list[T]:
    """Render `per_seed` frames of each seed and keep what `take` makes of each.

    Frames of one seed are 13 to 29 apart, so most parcels are seen several times at different
    places. With `degrade`, images go through a random codec quality, blur and gain.
    """
    jobs = [(take, seed, per_seed, degrade) for seed in seeds]
    if workers <= 1:
        return [item for job in jobs for item in _video(job)]
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return [item for video in pool.map(_video, jobs, chunksize=2) for item in video]


def _video(job: tuple[Callable[[Shot], T], int, int, bool]) -> list[T]:
    take, seed, per_seed, degrade = job
    rng = np.random.default_rng([seed, 77])
    scene = Scene(seed)
    t, kept = int(rng.integers(0, 60)), []
    for _ in range(per_seed):
        image, truths = scene.frame(t)
        kept.append(take(Shot(_degraded(image, rng) if degrade else image, truths, rng)))
        t += int(rng.integers(13, 30))
    return kept


def _degraded(frame: Pixels, rng: np.random.Generator) -> Pixels:
    image = Image.fromarray(frame)
    if rng.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.3, 0.9))))
    if rng.random() < 0.85:  # block artefacts and 4:2:0 chroma, as video codecs leave them
        buffer = io.BytesIO()
        quality = int(rng.integers(22, 92))
        image.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
        image = Image.open(buffer).convert("RGB")
    pixels = np.asarray(image, np.float32)
    gain, lift = rng.uniform(0.82, 1.16), rng.uniform(-10, 10)
    return np.clip(pixels * gain + lift, 0, 255).astype(np.uint8)


def resample(
    image: Pixels, box: tuple[float, float, float, float], width: int, height: int
) -> Pixels:
    """Cut (left, top, width, height) out and scale it with plain bilinear taps, no prefilter.

    It is what `scaling-filter=1` does at run time: half-integer centres, clamped at the border.
    """
    left, top, w, h = box

    def taps(start: float, size: float, count: int, limit: int) -> tuple[np.ndarray, ...]:
        at = start + (np.arange(count) + 0.5) * (size / count) - 0.5
        low = np.floor(at)
        weight = (at - low).astype(np.float32)
        last = limit - 1
        return np.clip(low, 0, last).astype(int), np.clip(low + 1, 0, last).astype(int), weight

    y0, y1, fy = taps(top, h, height, image.shape[0])
    x0, x1, fx = taps(left, w, width, image.shape[1])
    fy = fy.reshape(-1, *[1] * (image.ndim - 1))
    fx = fx.reshape(1, -1, *[1] * (image.ndim - 2))
    rows = image[y0].astype(np.float32) * (1 - fy) + image[y1].astype(np.float32) * fy
    return np.clip(rows[:, x0] * (1 - fx) + rows[:, x1] * fx + 0.5, 0, 255).astype(np.uint8)

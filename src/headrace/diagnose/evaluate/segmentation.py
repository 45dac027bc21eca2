"""Scores of a segmentation: intersection over union of classes, pixels, and worst images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import MediaError
from headrace._core.json_record import finite_row
from headrace.diagnose.evaluate.box_matching import Ints
from headrace.diagnose.evaluate.class_map import ClassMap
from headrace.diagnose.evaluate.confusion import NOTHING, Confusion, mean_of
from headrace.diagnose.evaluate.datasets.dataset import Dataset
from headrace.diagnose.evaluate.datasets.folders import IGNORED, read_mask
from headrace.diagnose.evaluate.running import EvaluationOptions, EvaluationRun, run_over

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.media import Frame
    from headrace.meta import FrameMeta, SegmentationMeta

WORST = 12


@dataclass(frozen=True, slots=True)
class ClassPixels:
    """Figures of one class of a segmentation; NaN where it does not occur.

    Attributes:
        name: of the data set.
        pixels: true ones.
        iou: intersection over union over all images.
        accuracy: share of the true pixels that were found.
    """

    name: str
    pixels: int
    iou: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class WorstMap:
    """An image with many wrong pixels.

    Attributes:
        place: of the image in the data set.
        right: share of its pixels that is right.
        found: (h, w) uint8, class of the data set of every pixel; 255 for none.
    """

    place: int
    right: float
    found: Any


@dataclass(frozen=True, slots=True)
class SegmentationScores:
    """Figures of a segmentation on a data set; shares are 0 to 1.

    Attributes:
        classes: those that both model and data set have.
        confusion: of pixels.
        worst: the images with the smallest share of right pixels, at most 12.
    """

    classes: tuple[ClassPixels, ...]
    confusion: Confusion
    worst: tuple[WorstMap, ...] = field(repr=False)

    @property
    def miou(self) -> float:
        """Mean over classes of the intersection over union."""
        return mean_of(c.iou for c in self.classes)

    @property
    def headline(self) -> dict[str, float]:
        """The figures to compare by, in their order."""
        return {
            "mIoU": self.miou,
            "pixel accuracy": self.confusion.right,
            "mean of classes": mean_of(c.accuracy for c in self.classes),
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "classes": [finite_row(c, 6) for c in self.classes],
            "confusion": self.confusion.to_dict(),
        }


class _MapCollector:
    """Counts pixels; keeps the maps of the worst images alone."""

    def __init__(self, dataset: Dataset, count: int, classes: ClassMap) -> None:
        self.counts: Ints = np.zeros((count + 1, count + 1), np.int64)
        self.worst: list[WorstMap] = []
        self._dataset, self._count, self._classes = dataset, count, classes

    def __call__(self, index: int, frame: Frame, meta: FrameMeta) -> None:
        path = self._dataset.images[index].truth
        assert isinstance(path, Path)
        true = read_mask(path, self._count)
        if not meta.segmentations:
            raise MediaError("the model gave no class map", where=frame.source)
        class_ids = self._classes.classes_of(
            in_image(meta.segmentations[0], meta.width, meta.height)
        )
        counted = (true != IGNORED) & np.isin(true, self._classes.known)
        size = self._count + 1
        pairs = true[counted].astype(np.int64) * size + class_ids[counted] % size
        counts = np.bincount(pairs, minlength=size * size).reshape(size, size)
        self.counts += counts
        if total := counts.sum():
            right = float(np.trace(counts) / total)
            self.worst.append(WorstMap(index, right, class_ids.astype(np.uint8)))  # -1 becomes 255
            self.worst.sort(key=lambda w: w.right)
            del self.worst[WORST:]


def in_image(segmentation: SegmentationMeta, width: int, height: int) -> Ints:
    """(height, width) class of every pixel of the image, that of the nearest of the map.

    Args:
        segmentation: the part `region` of its map shows the image.
        width, height: of the image.
    """
    left, top, wide, high = segmentation.region or (0, 0, segmentation.width, segmentation.height)
    rows = top + (np.arange(height) * 2 + 1) * high // (2 * height)
    columns = left + (np.arange(width) * 2 + 1) * wide // (2 * width)
    rows, columns = rows.clip(0, segmentation.height - 1), columns.clip(0, segmentation.width - 1)
    return np.asarray(segmentation.class_map[rows[:, None], columns[None]], np.int64)


def evaluate_segmentation(
    cfg: ModelConfig,
    dataset: Dataset,
    classes: ClassMap,
    names: Sequence[str],
    options: EvaluationOptions,
) -> tuple[SegmentationScores, EvaluationRun]:
    """Run a segmentation model on whole images, and score it, with the config's threshold.

    Args:
        cfg: for whole images.
        dataset: with masks.
        classes: of the model, as the data set numbers them.
        names: of the data set's classes.
        options: how to run.

    Raises:
        MediaError: a mask is not as it must be.
        HeadraceError: the model cannot be run; see `run_over`.
    """
    collector = _MapCollector(dataset, len(names), classes)
    run = run_over(cfg, dataset, collector, options)
    confusion = Confusion((*names, NOTHING), collector.counts)
    pixels = collector.counts.sum(axis=1)
    listed = tuple(
        ClassPixels(names[k], int(pixels[k]), float(confusion.ious[k]), float(confusion.recalls[k]))
        for k in classes.known.tolist()
    )
    worst = tuple(w for w in collector.worst if w.right < 1)
    return SegmentationScores(listed, confusion, worst), run

"""The worst images of an evaluation, as images for a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import MediaError
from headrace._core.pages import image_uri
from headrace.diagnose.evaluate.classification import ClassificationScores, WrongAnswer
from headrace.diagnose.evaluate.datasets.folders import IGNORED, read_mask
from headrace.diagnose.evaluate.detection import DetectionScores, WorstBoxes
from headrace.diagnose.evaluate.segmentation import WorstMap
from headrace.media.draw.colors import class_color
from headrace.media.sources.images import read_image
from headrace.media.sources.opening import open_source

if TYPE_CHECKING:
    from headrace.diagnose.evaluate.report import ConfigScores, EvaluationReport

Rgb = npt.NDArray[np.uint8]
_WIDTH = 640
_OPACITY = 0.55


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A box of an image, in its pixels.

    Attributes:
        kind: `right`, `false`, `true` (found), `missed` or `optional` (need not be found).
        label: class, and confidence of a found one.
        rect: left, top, width, height.
    """

    kind: str
    label: str
    rect: tuple[float, ...]

    @property
    def loud(self) -> bool:
        """True if its label is written beside it."""
        return self.kind in ("false", "missed")


@dataclass(frozen=True, slots=True)
class DrawnImage:
    """An image for the page.

    Attributes:
        name: of the image.
        caption: its faults.
        width, height: of the original in pixels; the space of `boxes`.
        uris: one or two images, side by side.
        boxes: over the first.
    """

    name: str
    caption: str
    width: int
    height: int
    uris: tuple[str, ...]
    boxes: tuple[DrawnBox, ...] = ()


class WorstImages:
    """Reads and draws the worst images of a report; a video is decoded once."""

    def __init__(self, report: EvaluationReport) -> None:
        self._dataset = report.dataset
        self._frames: dict[int, Rgb] = {}
        if report.dataset.video is not None:
            numbers = {
                w.place * report.dataset.step for r in report.results for w in r.scores.worst
            }
            with open_source(report.dataset.video, live=False) as video:
                for number, frame in enumerate(video):
                    if number in numbers:
                        self._frames[number // report.dataset.step] = frame.to_rgb()
                    if number >= max(numbers, default=-1):
                        break

    def of(self, result: ConfigScores) -> list[DrawnImage]:
        """The worst images of a config, worst first.

        Raises:
            MediaError: an image cannot be read any more.
        """
        scores = result.scores
        if isinstance(scores, DetectionScores):
            names = scores.confusion.names
            return [self._boxes(w, names) for w in scores.worst]
        if isinstance(scores, ClassificationScores):
            return [self._answer(w) for w in scores.worst]
        count = len(scores.confusion.names) - 1
        return [self._map(w, count) for w in scores.worst]

    def _pixels(self, index: int) -> Rgb:
        if index in self._frames:
            return self._frames[index]
        path = self._dataset.images[index].path
        if path is None:
            raise MediaError("the video is shorter than before", where=str(self._dataset.video))
        return read_image(path)

    def _boxes(self, worst: WorstBoxes, names: tuple[str, ...]) -> DrawnImage:
        pixels = self._pixels(worst.place)
        truth, detections = worst.truth, worst.found
        drawn = [
            DrawnBox(
                "optional" if truth.ignored[i] else "missed" if worst.missed[i] else "true",
                names[truth.class_ids[i]],
                _rect(truth.boxes[i]),
            )
            for i in range(len(truth.boxes))
        ]
        drawn += [
            DrawnBox(
                "false" if worst.false[i] else "right",
                f"{names[detections.class_ids[i]]} {detections.scores[i]:.2f}",
                _rect(detections.boxes[i]),
            )
            for i in range(len(detections.boxes))
        ]
        caption = f"{worst.missed.sum()} lost, {worst.false.sum()} false"
        return self._image(worst.place, caption, pixels, [pixels], tuple(drawn))

    def _answer(self, worst: WrongAnswer) -> DrawnImage:
        pixels = self._pixels(worst.place)
        label = f"{worst.found} ({worst.confidence:.2f})" if worst.found else "no answer"
        return self._image(worst.place, f"{worst.true}, taken for {label}", pixels, [pixels])

    def _map(self, worst: WorstMap, classes: int) -> DrawnImage:
        pixels = self._pixels(worst.place)
        mask = self._dataset.images[worst.place].truth
        assert isinstance(mask, Path)
        maps = (read_mask(mask, classes), worst.found)
        caption = f"{100 * worst.right:.1f} % of the pixels are right; the truth comes first"
        return self._image(worst.place, caption, pixels, [_coloured(pixels, m) for m in maps])

    def _image(
        self, index: int, caption: str, pixels: Rgb, shown: list[Rgb], boxes: Any = ()
    ) -> DrawnImage:
        height, width = pixels.shape[:2]
        uris = tuple(image_uri(p, max_width=_WIDTH) for p in shown)
        name = Path(self._dataset.images[index].name).name
        return DrawnImage(name, caption, width, height, uris, boxes)


def _rect(box: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(v, 1) for v in box.tolist())


def _coloured(pixels: Rgb, classes: npt.NDArray[np.uint8]) -> Rgb:
    """The image under the colours of its classes; without one where nothing counts."""
    table = np.array([class_color(i) for i in range(IGNORED)] + [(0, 0, 0)], np.float32)
    opacity = np.where(classes == IGNORED, 0, _OPACITY).astype(np.float32)[:, :, None]
    mixed = pixels * (1 - opacity) + table[classes] * opacity
    return np.rint(mixed).astype(np.uint8)

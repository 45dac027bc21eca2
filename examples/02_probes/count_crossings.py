"""Counts parcels that cross a line, leaves out small ones, and writes what it counted on the video.

    python count_crossings.py [OUT]

Probes are functions that are called with each batch, where they stand among the models.
"""

from __future__ import annotations

import sys
from collections import Counter

import headrace

SCENE = "../conveyor/"
LINE = 420.0  # x, in frame pixels
MIN_WIDTH = 60


def drop_small(batch: headrace.Batch) -> None:
    """Between detector and tracker: what is dropped here is never tracked, read or drawn."""
    for meta in batch.metas:
        meta.objects.keep(meta.objects.rects[:, 2] >= MIN_WIDTH)


class Crossings:
    """Behind the tracker: counts track ids whose centre comes from the left of the line to its
    right."""

    def __init__(self, line: float) -> None:
        self.line = line
        self.counted: Counter[str] = Counter()
        self._left: set[int] = set()

    def __call__(self, batch: headrace.Batch) -> None:
        for meta in batch.metas:
            for obj in meta.objects:
                if obj.track_id is not None:
                    self._see(obj)
            self._draw(meta)

    def _see(self, obj: headrace.ObjectMeta) -> None:
        centre = obj.left + obj.width / 2
        if centre < self.line:
            self._left.add(obj.track_id)
        elif obj.track_id in self._left:
            self._left.remove(obj.track_id)
            self.counted[obj.label] += 1
            obj.display_text = f"{obj.label} no. {self.counted.total()}"

    def _draw(self, meta: headrace.FrameMeta) -> None:
        """The line is an object like any other, but nobody's: no model made it."""
        line = meta.objects.add(self.line, 0, 4, meta.height, label="line")
        line.display_text = f"crossed: {self.counted.total()}"


def main(out: str = "crossings.mp4") -> Counter[str]:
    crossings = Crossings(LINE)
    tracker = headrace.open_tracker("iou")
    pipeline = headrace.open_pipeline(
        SCENE + "config_infer_primary.txt",
        drop_small,
        tracker,
        crossings,
        sources=SCENE + "conveyor.mp4",
        outputs=out,
    )
    pipeline.run()
    return crossings.counted


if __name__ == "__main__":
    for label, count in main(*sys.argv[1:]).most_common():
        print(f"{count:3} {label}")

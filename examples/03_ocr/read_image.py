"""Reads images, lines that stand on their head too, and prints the lines from top to bottom.

python read_image.py FOLDER IMAGE... [-o OUT]...

FOLDER is what prepare.py made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from headrace import (
    Batch,
    Frame,
    FrameMeta,
    HeadraceError,
    Inferencer,
    ObjectMeta,
    Pipeline,
    PixelFormat,
    open_sink,
    open_source,
)
from headrace.media.pixels import to_rgb

__all__ = ["Turner", "lines", "read"]


class Turner:
    """Two probes around the reader: it gets frames in which every line stands on its feet.

    A model crops from the frame, so what it shall see turned must be turned in the frame.
    """

    def __init__(self) -> None:
        self._originals: dict[tuple[int, int], Frame] = {}

    def turn(self, batch: Batch) -> None:
        """Put frames with upside-down lines aside, and copies with those turned in their place."""
        for i, (frame, meta) in enumerate(batch):
            turned = [o for o in meta.objects if orientation(o) == "180"]
            if turned:
                self._originals[frame.source_id, frame.frame] = frame
                batch.frames[i] = with_turned(frame, turned)

    def restore(self, batch: Batch) -> None:
        """Put the frames back, so that outputs show the image as it is."""
        for i, frame in enumerate(batch.frames):
            batch.frames[i] = self._originals.pop((frame.source_id, frame.frame), frame)


def with_turned(frame: Frame, turned: Sequence[ObjectMeta]) -> Frame:
    """A copy of the image in which the rectangles of these objects are turned by 180 degrees."""
    image = to_rgb(frame)
    copy = np.array(image)
    for o in turned:
        rows = slice(max(0, round(o.top)), max(0, round(o.top + o.height)))
        columns = slice(max(0, round(o.left)), max(0, round(o.left + o.width)))
        copy[rows, columns] = image[rows, columns][::-1, ::-1]
    return replace(frame, planes=(copy,), format=PixelFormat.RGB, owner=None)


def orientation(line: ObjectMeta) -> str:
    """`180` for a line that stands on its head, else empty."""
    return labels(line, "orientation")


def text(line: ObjectMeta) -> str:
    """What a line says, empty if it could not be read."""
    return labels(line, "text")


def labels(line: ObjectMeta, kind: str) -> str:
    """The labels that classifiers of this `classifier-type` gave."""
    return " ".join(
        found.label for c in line.classifiers if c.classifier_type == kind for found in c.labels
    )


def lines(meta: FrameMeta) -> list[ObjectMeta]:
    """The lines of an image that could be read, from top to bottom."""
    return sorted((o for o in meta.objects if text(o)), key=lambda o: o.top)


def read(
    folder: Path, images: Sequence[str | Path], outs: Sequence[str] = ()
) -> Iterator[FrameMeta]:
    """What the models find in each image of each source."""
    with ExitStack() as stack:
        detector, classifier, reader, long_reader = (
            stack.enter_context(Inferencer.from_config(folder / name))
            for name in ("det.txt", "cls.txt", "rec.txt", "rec_long.txt")
        )
        turner = Turner()
        stages = [detector, classifier, turner.turn, reader, long_reader, turner.restore]
        sources = [open_source(str(image)) for image in images]
        for _, meta in Pipeline(sources, stages, [open_sink(out) for out in outs]):
            yield meta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("images", nargs="+")
    parser.add_argument("-o", "--out", action="append", default=[], help="as for headrace run")
    args = parser.parse_args()
    try:
        for meta in read(args.folder, args.images, args.out):
            for line in lines(meta):
                mark = " (upside down)" if orientation(line) else ""
                print(f"{meta.source}: {text(line)}{mark}")
    except HeadraceError as error:
        sys.exit(f"read_image.py: {error}")


if __name__ == "__main__":
    main()

"""Raw outputs of a model, decoded in the application and put back as objects.

    python decode.py [OUT]

`network-type=100` parses nothing, `output-tensor-meta=1` attaches the outputs to each frame.
"""

from __future__ import annotations

import sys

import numpy as np

import headrace

SCENE = "../conveyor/"
LABELS = ("box", "envelope", "bag", "tube", "crate", "drum")
THRESHOLD = 0.5


def decode(batch: headrace.Batch) -> None:
    """A probe behind the model: cells that are the best of their neighbourhood become objects."""
    for meta in batch.metas:
        for tensors in meta.tensors:
            add_parcels(meta, tensors)


def add_parcels(meta: headrace.FrameMeta, tensors: headrace.TensorOutput) -> None:
    scores = 1 / (1 + np.exp(-tensors["scores"]))  # (6, 24, 40): classes, rows, columns
    reach = 8 * np.exp(tensors["distances"])  # (4, 24, 40): network pixels to each edge
    best = scores.max(axis=0)
    padded = np.pad(best, 2)
    around = np.lib.stride_tricks.sliding_window_view(padded, (5, 5)).max(axis=(2, 3))
    # the image was scaled by one factor to fit, and stands in the top left corner
    ratio = max(meta.width / tensors.network.width, meta.height / tensors.network.height)
    for row, column in np.argwhere((best >= THRESHOLD) & (best == around)).tolist():
        x, y = 8 * column + 4, 8 * row + 4
        left, top, right, bottom = reach[:, row, column].tolist()
        class_id = int(scores[:, row, column].argmax())
        meta.objects.add(
            (x - left) * ratio,
            (y - top) * ratio,
            (left + right) * ratio,
            (top + bottom) * ratio,
            class_id=class_id,
            label=LABELS[class_id],
            confidence=float(best[row, column]),
            component_id=tensors.component_id,
        )


def main(out: str = "decoded.jsonl", limit: int = 40) -> headrace.RunReport:
    pipeline = headrace.open_pipeline(
        "config_infer_raw.txt",
        decode,
        sources=SCENE + "conveyor.mp4",
        outputs=out,
        limit=limit,
    )
    return pipeline.run()


if __name__ == "__main__":
    report = main(*sys.argv[1:])
    print(report)
    print(dict(report.objects))

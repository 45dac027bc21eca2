"""A YOLOX parser in Python, for `custom-lib-path=yolox_parser.py`."""

import functools

import numpy as np

from headrace import Detections

STRIDES = (8, 16, 32)


@functools.cache
def grid(width, height):
    """(N, 3) column, row and stride of every cell, in the order of the model's rows."""
    parts = []
    for stride in STRIDES:
        rows, columns = np.mgrid[: height // stride, : width // stride]
        strides = np.full(rows.size, stride)
        parts.append(np.column_stack((columns.ravel(), rows.ravel(), strides)))
    return np.concatenate(parts).astype(np.float32)


def NvDsInferParseYoloX(layers, network, params):
    """Rows of x, y, width, height, objectness, class scores; one row for each grid cell.

    The centre is an offset in cells, the size a logarithm of cells; scores are already 0..1.
    """
    (layer,) = layers.values()
    rows = layer.data
    cells = grid(network.width, network.height)
    if rows.shape != (len(cells), 5 + params.num_classes):
        raise ValueError(
            f"{layer} does not hold {len(cells)} cells of {params.num_classes} classes"
        )

    # a class score can only lower the objectness
    worth = np.flatnonzero(rows[:, 4] >= params.min_threshold)
    rows, cells = rows[worth], cells[worth]
    class_ids = rows[:, 5:].argmax(axis=1)
    scores = rows[:, 4] * rows[:, 5:].max(axis=1)
    keep = scores >= params.per_class_threshold[class_ids]
    rows, cells = rows[keep], cells[keep]

    stride = cells[:, 2:]
    size = np.exp(rows[:, 2:4]) * stride
    left_top = (rows[:, :2] + cells[:, :2]) * stride - size / 2
    return Detections(np.hstack((left_top, size)), scores[keep], class_ids[keep])

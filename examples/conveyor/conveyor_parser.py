"""Parsers of the conveyor's two models, named in their configs.

`parse_conveyor` is the detector's (`parse-bbox-func-name`), `parse_code` the code reader's
(`parse-classifier-func-name`).

The detector sees the image on a grid of 8-pixel cells. For each cell it gives one logit per
class, and the logarithm of the distances, in cells, from the cell's centre to the left, top,
right and bottom edge of the parcel.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.meta import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Detections,
    Layer,
    NetworkInfo,
)

__all__ = ["parse_code", "parse_conveyor"]

UNREAD = "_"


def parse_conveyor(
    layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Detections:
    """Boxes of cells whose best class reaches its threshold, in network pixels.

    Layers: `scores` (C, H, W) logits, `distances` (4, H, W) log cells. Neighbouring cells see the
    same parcel, so the config lets non-maximum suppression follow (`cluster-mode=2`).
    """
    logits, distances = layers["scores"].data, layers["distances"].data
    classes, rows, columns = logits.shape
    best = logits.reshape(classes, -1).argmax(axis=0)
    scores = 1 / (1 + np.exp(-logits.reshape(classes, -1)[best, np.arange(rows * columns)]))
    found = np.flatnonzero(scores >= params.per_class_threshold[best])
    cell = np.array([network.width / columns, network.height / rows], np.float32)
    centre = (np.stack([found % columns, found // columns], axis=1) + 0.5) * cell
    reach = np.exp(distances.reshape(4, -1)[:, found].T) * np.tile(cell, 2)
    corners = np.concatenate([centre - reach[:, :2], centre + reach[:, 2:]], axis=1)
    corners = np.clip(corners, 0, np.tile([network.width, network.height], 2))
    return Detections.from_xyxy(corners, scores[found], best[found])


def parse_code(
    layers: Mapping[str, Layer], network: NetworkInfo, params: ClassifierParams
) -> Classification:
    """The characters of a code that reach the threshold, and the code as one word.

    Layers: one (32,) layer of probabilities per character, in the order of the code. A character
    that cannot be read is no attribute, and a line in the text: `K7_2`. Where none can be read,
    nothing is returned. The built-in parser finds the same attributes, but writes `K 7 2`.
    """
    found, word = Classification(), ""
    for place, layer in enumerate(layers.values()):
        best = int(layer.data.argmax())
        sure, name = float(layer.data[best]), params.label(place, best)
        if name is None or sure <= params.threshold:
            word += UNREAD
        else:
            word += name
            found.add(place, best, sure, name)
    if found.attributes:
        found.text = word
    return found

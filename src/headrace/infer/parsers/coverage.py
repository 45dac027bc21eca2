"""Coverage and box grids (DetectNet): the parser used when a config names no function."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace.infer.parsers.boxes import to_float32
from headrace.infer.parsers.head import Arrays, Head, Layout, Out, UnfitError
from headrace.meta.detections import Detections, FloatArray
from headrace.meta.layers import DetectionParams, Layer, NetworkInfo

_NORM = np.float32(35.0)


def decode_coverage_bbox(
    layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Detections:
    """Decode a coverage grid (C, gh, gw) and a box grid (4C, gh, gw).

    The last layer whose name contains `cov` and the last whose name contains `bbox` are used.
    Classes beyond `num-detected-classes` are not read. A score equal to the threshold passes, and
    so does NaN. Boxes come class by class, in rows, in network pixels.

    Raises:
        UnfitError: a layer is missing, or the two shapes do not belong together.
    Source: spec B.1.
    """
    coverage = _find(layers, "cov", "coverage")
    boxes = _find(layers, "bbox", "bbox")
    if coverage.data.ndim != 3 or boxes.data.ndim != 3:
        raise UnfitError("the coverage and bbox outputs are not grids")
    if any(x.dtype.kind != "f" for x in (coverage, boxes)):
        raise UnfitError("the coverage and bbox outputs are not floating point")
    classes, rows, columns = coverage.shape
    if boxes.shape != (4 * classes, rows, columns):
        raise UnfitError(
            f"{boxes.name!r} does not have four planes for each of the {classes} class(es) "
            f"of {coverage.name!r} on the same grid",
        )
    if not rows or not columns:
        return Detections.empty()
    strides = -(-network.width // columns), -(-network.height // rows)
    with np.errstate(all="ignore"):
        planes = to_float32(coverage.data), to_float32(boxes.data)
        return _decode_grid(*planes, strides, network, params, extra=0)


def _decode_grid(
    coverage: FloatArray,
    boxes: FloatArray,
    strides: tuple[int, int],
    network: NetworkInfo,
    params: DetectionParams,
    *,
    extra: int,
) -> Detections:
    classes = min(len(coverage), params.num_classes)
    thresholds = np.asarray(params.per_class_threshold[:classes], np.float32)
    coverage = coverage[: len(thresholds)]
    # Not `>=`: a NaN score is kept, as the comparison of the original keeps it.
    k, j, i = np.nonzero(~(coverage < thresholds[:, None, None]))
    o1, o2, o3, o4 = boxes.reshape(-1, 4, *boxes.shape[1:])[k, :, j, i].T
    cx = (i * strides[0] + 0.5).astype(np.float32) / _NORM
    cy = (j * strides[1] + 0.5).astype(np.float32) / _NORM
    x1, x2 = (o1 - cx) * -_NORM, (o3 + cx) * _NORM
    y1, y2 = (o2 - cy) * -_NORM, (o4 + cy) * _NORM
    if extra:  # the custom parser clips to [0, size - 1] and counts both edges
        right, bottom = np.float32(network.width - 1), np.float32(network.height - 1)
        x1, x2 = np.clip(x1, 0, right), np.clip(x2, 0, right)
        y1, y2 = np.clip(y1, 0, bottom), np.clip(y2, 0, bottom)
    else:
        x1, x2 = _pull_back(x1, network.width), _pull_back(x2, network.width)
        y1, y2 = _pull_back(y1, network.height), _pull_back(y2, network.height)
    size = np.stack([x2 - x1, y2 - y1], axis=1) + np.float32(extra)
    keep = ~(size < 0).any(axis=1)
    corners = np.stack([x1, y1], axis=1)
    return Detections(
        np.concatenate([corners, size], axis=1)[keep],
        coverage[k, j, i][keep],
        k[keep].astype(np.int32),
    )


def _pull_back(v: FloatArray, size: int) -> FloatArray:
    """`size` and beyond become size - 1, negatives 0; between size - 1 and size nothing moves."""
    v = np.where(v >= size, np.float32(size - 1), v)
    return np.where(v < 0, np.float32(0), v)


def _find(layers: Mapping[str, Layer], part: str, what: str) -> Layer:
    matches = [layer for layer in layers.values() if part in layer.name]
    if not matches:
        raise UnfitError(f"no {what} output: no layer has {part!r} in its name")
    return matches[-1]


def _resnet(arrays: Arrays, network: NetworkInfo, params: DetectionParams) -> Detections:
    coverage, boxes = arrays
    if not boxes.size:
        return Detections.empty()
    strides = -(-network.width // boxes.shape[2]), -(-network.height // boxes.shape[1])
    return _decode_grid(coverage, boxes, strides, network, params, extra=1)


HEADS = (
    Head(
        "NvDsInferParseCustomResnet",
        "coverage and box grids by exact name; sizes count both edges (+1); score >= T[class]",
        tuple(
            Layout((Out("C H W", (coverage,)), Out("4*C H W", (bbox,))), _resnet)
            for coverage, bbox in (
                ("conv2d_cov/Sigmoid", "conv2d_bbox"),
                ("output_cov/Sigmoid", "output_bbox/BiasAdd"),
                ("output_cov/Sigmoid:0", "output_bbox/BiasAdd:0"),
            )
        ),
    ),
)

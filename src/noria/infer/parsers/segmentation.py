"""Heads of semantic segmentation that have a name: class maps of the size of the network input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from noria.infer.parsers.head import Arrays, Layout, Out, SegmentationHead, UnfitError
from noria.infer.segment import class_map
from noria.meta.detections import IntArray
from noria.meta.layers import NetworkInfo, Segmentation, SegmentationParams


def _classes(values: npt.NDArray[np.generic], params: SegmentationParams) -> IntArray:
    """Class numbers as int32, -1 where there is no such class."""
    if values.dtype.kind not in "iu":
        raise UnfitError(f"the output is {values.dtype}", expected="class numbers as integers")
    number = values.astype(np.int64)
    known = (number >= 0) & (number < (params.num_classes or np.iinfo(np.int32).max))
    return np.where(known, number, -1).astype(np.int32)


def _map(arrays: Arrays, network: NetworkInfo, params: SegmentationParams) -> Segmentation:
    """(H, W) class numbers, as they are."""
    return Segmentation(_classes(arrays[0], params))


def _first_values(arrays: Arrays, network: NetworkInfo, params: SegmentationParams) -> Segmentation:
    """The first W*H values, row by row, whatever the axes are."""
    values = arrays[0].reshape(-1)
    pixels = network.width * network.height
    if len(values) < pixels:
        raise UnfitError(
            f"{len(values)} class numbers for {network.width}x{network.height} pixels",
            expected="one for each pixel of the network input",
        )
    whole = values[:pixels].reshape(network.height, network.width)
    return Segmentation(_classes(whole, params))


def _largest_resized(
    arrays: Arrays, network: NetworkInfo, params: SegmentationParams
) -> Segmentation:
    """The largest of the classes whatever its value, at the nearest cell; no threshold."""
    scores = arrays[0]
    _, height, width = scores.shape
    if not scores.size:
        raise UnfitError("the output has no values")
    filled = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    best = filled.argmax(axis=0).astype(np.int32)
    y = np.arange(network.height) * height // network.height
    x = np.arange(network.width) * width // network.width
    return Segmentation(_classes(best[y[:, None], x], params))


def _largest_above(
    arrays: Arrays, network: NetworkInfo, params: SegmentationParams
) -> Segmentation:
    """The largest of the classes, if it is above the threshold."""
    return Segmentation(_classes(class_map(arrays[0], params.threshold, "NCHW"), params), arrays[0])


HEADS = (
    SegmentationHead(
        "NvDsInferParseCustomPeopleSemSegNet",
        "PeopleSemSegNet: class numbers as they are",
        (Layout((Out("H W", ("argmax_1",), integers=True),), _map),),
    ),
    SegmentationHead(
        "NvDsInferParseCustomSegformerTAO",
        "SegFormer with arg-max in the model: class numbers as they are",
        (
            Layout((Out("H W", ("output",), integers=True),), _first_values),
            Layout((Out("C H W", ("output",), integers=True),), _first_values),
        ),
    ),
    SegmentationHead(
        "NvDsInferParseCustomSegformerTAO2",
        "SegFormer: the best of C classes, no threshold, nearest cell where sizes differ",
        (Layout((Out("C H W", ("output",)),), _largest_resized),),
    ),
    SegmentationHead(
        "NvDsInferParseCustomChangeNet",
        "Visual ChangeNet: the best of C classes above segmentation-threshold",
        (Layout((Out("C H W", ("output_final",)),), _largest_above),),
    ),
)

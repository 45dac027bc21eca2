"""Semantic segmentation: the built-in parser. Class maps are in pixels of the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from headrace._core import _native
from headrace._core.errors import ParserError
from headrace._core.findings import Finding
from headrace.infer.parsers.boxes import to_float32
from headrace.meta import Layer, NetworkInfo, Segmentation, SegmentationParams
from headrace.meta.detections import FloatArray, IntArray

WHERE = "built-in segmentation parser"


class Segmenter:
    """The built-in parser: a `SegmentationParser` like any other.

    Attributes:
        notices: what was decided, once for all frames: an output of another size than the input.
    """

    def __init__(self, generation: Literal["6.2", "9.1"] = "9.1") -> None:
        self.generation = generation
        self.notices: list[Finding] = []
        self._said_size = False

    def __repr__(self) -> str:
        return f"Segmenter({self.generation!r})"

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: SegmentationParams
    ) -> Segmentation:
        """Parse one item; see `segment`."""
        segmentation = segment(layers, network, params, generation=self.generation)
        height, width = segmentation.class_map.shape
        differs = (width, height) != (network.width, network.height)
        if differs and not self._said_size and self.generation == "9.1":
            self._said_size = True
            text = f"the output has {width}x{height} pixels, the network input {network.width}x"
            text += f"{network.height}: class maps have the size of the output"
            self.notices.append(Finding("class-map-size", "info", text, WHERE))
        return segmentation


def refusal_of_types(
    outputs: Mapping[str, np.dtype[Any]], generation: Literal["6.2", "9.1"] = "9.1"
) -> ParserError | None:
    """Make the error for outputs of types that `segment` refuses, or None.

    Args:
        outputs: name -> type, in the model's order.
        generation: see `segment`.
    """
    strict = generation == "9.1"
    for name, dtype in list(outputs.items())[: None if strict else 1]:
        if dtype != np.float32 and (strict or dtype.kind != "f"):
            return ParserError(
                f"output {name} is {dtype}",
                where=WHERE,
                expected="float32 in every output" if strict else "floating point numbers",
                fix="set parse-segmentation-func-name=HeadraceParseClassMap, which reads class "
                "numbers (NvDsInferParseCustomPeopleSemSegNet those of an output argmax_1)"
                if dtype.kind in "iu"
                else "other types need a parser of their own: parse-segmentation-func-name",
            )
    return None


def segment(
    layers: Mapping[str, Layer],
    network: NetworkInfo,
    params: SegmentationParams,
    *,
    generation: Literal["6.2", "9.1"] = "9.1",
) -> Segmentation:
    """The class of every pixel, from the first output layer alone.

    The largest probability of a pixel wins, the lowest class of equals, if it is above
    `params.threshold`; -1 where none is. The map has the size of the output, whatever the size of
    the network input is (the original reads out of range where they differ).

    Args:
        layers: one item's outputs; the first is (C, H, W), or (H, W, C) if `params.order` is NHWC.
        network: size of the network input.
        params: threshold, classes, order.
        generation: `9.1` refuses outputs that are not float32 and a C that is not
            `params.num_classes`; `6.2` takes C as it is, and any floating point numbers.

    Returns:
        The class map (H, W) int32, and the output itself as probabilities, in its own layout.

    Raises:
        ParserError: an output is of another kind or shape.
    Source: spec C.2.
    """
    layer = next(iter(layers.values()), None)
    if layer is None:
        raise ParserError("the network has no outputs", where=WHERE)
    refusal = refusal_of_types({o.name: o.dtype for o in layers.values()}, generation)
    if refusal is not None:
        raise refusal
    if len(layer.shape) != 3:
        axes = "classes, height, width" if params.order == "NCHW" else "height, width, classes"
        raise ParserError(
            f"output {layer.name} has the shape {layer.shape}",
            where=WHERE,
            expected=f"three axes: {axes} (segmentation-output-order)",
            fix="one row of scores is a classifier's: network-type=1"
            if len(layer.shape) == 1
            else (),
        )
    classes = layer.shape[0 if params.order == "NCHW" else 2]
    if generation == "9.1" and classes != params.num_classes:
        raise ParserError(
            f"output {layer.name} of shape {layer.shape} has {classes} classes, "
            f"num-detected-classes={params.num_classes}",
            where=WHERE,
            expected=f"num-detected-classes={classes}",
            fix="or the other segmentation-output-order, if the classes are on the other side",
        )
    scores = to_float32(layer.data)
    return Segmentation(class_map(scores, params.threshold, params.order), scores)


def class_map(
    scores: FloatArray, threshold: float, order: Literal["NCHW", "NHWC"], *, simd: bool = True
) -> IntArray:
    """The class of the largest score of each pixel, -1 where none is above the threshold.

    A score must be above -1, too, as in the original; NaN never wins. The GIL is released.

    Args:
        scores: (C, H, W) float32, or (H, W, C) for NHWC.
        threshold: a score must be above it.
        order: axes of `scores`.
        simd: False takes the portable path (the same result, for tests).

    Returns:
        (H, W) int32.
    """
    nhwc = order == "NHWC"
    height, width = scores.shape[:2] if nhwc else scores.shape[1:]
    result = np.full((height, width), -1, np.int32)
    if scores.size:
        shape = (height * width, -1) if nhwc else (-1, height * width)
        flat = np.ascontiguousarray(scores).reshape(shape)
        limit = max(np.float32(threshold), np.float32(-1))
        _native.class_map(flat, float(limit), nhwc, result.reshape(-1), simd)
    return result

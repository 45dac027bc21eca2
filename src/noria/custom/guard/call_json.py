"""What a parser is called with beside its tensors, as JSON: for the worker and for replays."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from noria.meta import ClassifierParams, DetectionParams, NetworkInfo, SegmentationParams

ParserKind = Literal["bbox", "instance", "classifier", "segmentation"]
Params = DetectionParams | ClassifierParams | SegmentationParams


def network_json(network: NetworkInfo) -> list[int]:
    """Width, height, channels."""
    return [network.width, network.height, network.channels]


def network_from(given: list[int]) -> NetworkInfo:
    """What `network_json` made a list of."""
    return NetworkInfo(*given)


def params_json(params: Params) -> dict[str, Any]:
    """The parameters as JSON types, floats of float32 unchanged."""
    if isinstance(params, DetectionParams):
        return {
            "num_classes": params.num_classes,
            "pre": params.per_class_threshold.tolist(),
            "post": params.per_class_post_threshold.tolist(),
            "labels": list(params.labels),
        }
    if isinstance(params, ClassifierParams):
        return {"threshold": params.threshold, "labels": [list(r) for r in params.labels]}
    return {
        "num_classes": params.num_classes,
        "threshold": params.threshold,
        "order": params.order,
        "labels": list(params.labels),
    }


def params_from(kind: ParserKind, given: dict[str, Any]) -> Params:
    """What `params_json` made a dict of."""
    if kind == "classifier":
        return ClassifierParams(given["threshold"], given["labels"])
    if kind == "segmentation":
        return SegmentationParams(
            given["num_classes"], given["threshold"], given["order"], given["labels"]
        )
    return DetectionParams(
        given["num_classes"],
        np.array(given["pre"], np.float32),
        np.array(given["post"], np.float32),
        given["labels"],
    )

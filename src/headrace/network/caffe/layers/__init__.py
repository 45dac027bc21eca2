"""How each layer type becomes ONNX operators; one file per family."""

from __future__ import annotations

from headrace.network.caffe.layers import arithmetic, detection, normalisation, shape, spatial
from headrace.network.caffe.lowering import Lower

__all__ = ["INPUTS", "LOWERINGS", "TRAINING_ONLY"]

LOWERINGS: dict[str, Lower] = {
    **arithmetic.LOWERINGS,
    **detection.LOWERINGS,
    **normalisation.LOWERINGS,
    **shape.LOWERINGS,
    **spatial.LOWERINGS,
}
"""Layer type -> the function that makes its nodes."""

INPUTS = frozenset(
    ["Input", "Data", "ImageData", "AnnotatedData", "MemoryData", "HDF5Data", "DummyData"]
)
"""Layers that feed the network. `Input` has a shape; the others show where images come in."""

TRAINING_ONLY = frozenset(
    [
        "Accuracy",
        "ContrastiveLoss",
        "DetectionEvaluate",
        "EuclideanLoss",
        "HingeLoss",
        "InfogainLoss",
        "MultiBoxLoss",
        "MultinomialLogisticLoss",
        "SigmoidCrossEntropyLoss",
        "SmoothL1Loss",
        "SoftmaxWithLoss",
    ]
)
"""Layers that compare with the truth: left out, with the layers that only they need."""

"""Layers that choose elements."""

from __future__ import annotations

from noria.plugins.types import DataType
from noria.trt.api.enums import BoundingBoxFormat, GatherMode, ScatterMode, TopKOperation
from noria.trt.layers.base import ILayer, param


class IGatherLayer(ILayer):
    """Inputs: data, indices."""

    axis = param("axis", int, "The axis that indices count.")
    num_elementwise_dims = param("num_elementwise_dims", int, "Leading axes both inputs share.")
    mode = param("mode", GatherMode, "How indices are meant.")


class IScatterLayer(ILayer):
    """Inputs: data, indices, updates."""

    axis = param("axis", int)
    mode = param("mode", ScatterMode)


class ITopKLayer(ILayer):
    """Outputs: values, indices. Input 1: k as a tensor."""

    op = param("op", TopKOperation, "Greatest or least.")
    k = param("k", int, "How many.")
    axes = param("axes", int, "Mask of exactly one axis.")
    indices_type = param("indices_type", DataType)


class INMSLayer(ILayer):
    """Inputs 3 and 4: IoU threshold, score threshold."""

    bounding_box_format = param("bounding_box_format", BoundingBoxFormat)
    topk_box_limit = param("topk_box_limit", int, "Scores of an image that are looked at.")
    indices_type = param("indices_type", DataType)


class INonZeroLayer(ILayer):
    """Indices of elements that are not 0."""

    indices_type = param("indices_type", DataType)


class IOneHotLayer(ILayer):
    """Inputs: indices, the two values, depth."""

    axis = param("axis", int)


class IReverseSequenceLayer(ILayer):
    """Inputs: data, lengths."""

    batch_axis = param("batch_axis", int)
    sequence_axis = param("sequence_axis", int)

"""Layers that keep shapes."""

from __future__ import annotations

from noria.plugins.types import DataType
from noria.trt.api.enums import ActivationType, ElementWiseOperation, ScaleMode, UnaryOperation
from noria.trt.layers.base import ILayer, param, weights_param


class IActivationLayer(ILayer):
    """`type`, `alpha`, `beta`."""

    type = param("type", ActivationType, "The function.")
    alpha = param("alpha", float, "First number of the function.")
    beta = param("beta", float, "Second number of the function.")


class IUnaryLayer(ILayer):
    """`op`."""

    op = param("op", UnaryOperation, "The function.")


class IElementWiseLayer(ILayer):
    """`op`; axes of extent 1 are broadcast."""

    op = param("op", ElementWiseOperation, "The operation.")


class IScaleLayer(ILayer):
    """(x * scale + shift) ^ power."""

    mode = param("mode", ScaleMode, "One number, one per channel, or one per element.")
    channel_axis = param("channel_axis", int, "The axis of channels.")
    shift = weights_param("SHIFT", "Numbers to add.")
    scale = weights_param("SCALE", "Factors, applied first.")
    power = weights_param("POWER", "The exponent.")


class ILRNLayer(ILayer):
    """Local response normalisation across channels."""

    window_size = param("window_size", int, "Channels; odd.")
    alpha = param("alpha", float)
    beta = param("beta", float)
    k = param("k", float)


class IIdentityLayer(ILayer):
    """The same tensor."""


class ICastLayer(ILayer):
    """`to_type`."""

    to_type = param("to_type", DataType, "The new element type.")


class IParametricReLULayer(ILayer):
    """Inputs: x, slopes."""


class ISelectLayer(ILayer):
    """Inputs: condition, then, else."""

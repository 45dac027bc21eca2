"""A Darknet layer on its way into a graph: its section, the layers before it, the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headrace.network.darknet.files import CfgSection, DarknetWeights
from headrace.network.graph_builder import Blob, GraphBuilder
from headrace.network.importer import LayerLowering


class DarknetLowering(LayerLowering):
    """One layer on its way into the graph; `x` is the output of the layer before.

    Attributes:
        section: the layer as written.
        before: outputs of all layers before; None where one has none (a head).
        weights: the numbers that come next.
        size: height and width of the network's input.
        heads: decoded boxes, to which heads add theirs.
    """

    def __init__(
        self,
        section: CfgSection,
        before: Sequence[Blob | None],
        x: Blob,
        graph: GraphBuilder,
        weights: DarknetWeights,
        size: tuple[int, int],
        heads: list[Blob],
    ) -> None:
        super().__init__(graph, [x])
        self.section = section
        self.before = before
        self.weights = weights
        self.size = size
        self.heads = heads

    def image(self) -> Blob:
        """The input, which must have channels, height and width."""
        if self.x.rank != 4:
            raise self.error("its input has no height and width")
        return self.x

    def layer(self, number: int, key: str) -> Blob:
        """The output of another layer; negative numbers count back from this one."""
        index = number if number >= 0 else self.section.index + number
        if not 0 <= index < self.section.index:
            raise self.section.error(key, f"{key}: there is no layer {number} before this one",
                                     f"0 to {self.section.index - 1}, or -1 and below")  # fmt: skip
        blob = self.before[index]
        if blob is None:
            raise self.section.error(key, f"{key}: layer {index} is a head and gives nothing on")
        return blob

    def take(self, name: str, *shape: int) -> npt.NDArray[np.float32]:
        """The next numbers of the weights file."""
        return self.weights.take(shape, name, self.section.where)


Lower = Callable[[DarknetLowering], Blob | None]
"""Makes the nodes of a layer and returns its output; None for heads."""

_PLAIN = {"elu": "Elu", "logistic": "Sigmoid", "relu": "Relu", "selu": "Selu",
          "sigmoid": "Sigmoid", "softplus": "Softplus", "tanh": "Tanh"}  # fmt: skip
_LINEAR = ("", "linear", "none")
_KNOWN = sorted([*_PLAIN, *_LINEAR[1:], "leaky", "mish", "relu6", "silu", "swish", "hardtan"])


def activate(ctx: DarknetLowering, x: Blob, default: str = "linear") -> Blob:
    """The layer's activation on `x`."""
    name = ctx.section.text("activation", default).lower()
    if name in _LINEAR:
        return x
    if name in _PLAIN:
        return ctx.same(_PLAIN[name], x)
    if name == "leaky":
        return ctx.same("LeakyRelu", x, alpha=0.1)
    if name == "mish":
        return ctx.same("Mul", x, ctx.same("Tanh", ctx.same("Softplus", x)))
    if name in ("silu", "swish"):
        return ctx.same("Mul", x, ctx.same("Sigmoid", x))
    if name in ("relu6", "hardtan"):
        low, high = (0.0, 6.0) if name == "relu6" else (-1.0, 1.0)
        return ctx.same("Clip", x, ctx.constant(low), ctx.constant(high))
    raise ctx.section.error("activation", f"activation={name[:60]}", f"one of {', '.join(_KNOWN)}")

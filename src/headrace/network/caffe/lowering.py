"""A Caffe layer on its way into a graph: its fields and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from headrace.network.caffe.fields import Fields
from headrace.network.caffe.net import CaffeLayer
from headrace.network.caffe.weights import WeightBlob
from headrace.network.graph_builder import Blob, GraphBuilder
from headrace.network.importer import LayerLowering


class CaffeLowering(LayerLowering):
    """One layer on its way into the graph; `inputs` are its bottoms.

    Attributes:
        layer: the layer as written.
        batch: the batch that the text writes, for layers that repeat it.
    """

    input_word = "bottom"

    def __init__(
        self,
        layer: CaffeLayer,
        bottoms: Sequence[Blob],
        weights: Sequence[WeightBlob],
        graph: GraphBuilder,
        batch: int,
        image: Blob | None = None,
    ) -> None:
        super().__init__(graph, bottoms)
        self.layer = layer
        self.batch = batch
        self._image = image
        self._weights = list(weights)
        self._groups: dict[str, Fields] = {}

    @property
    def image(self) -> Blob:
        """Return the network's first input."""
        assert self._image is not None
        return self._image

    def fields(self, name: str) -> Fields:
        """The layer's parameter group of this name."""
        if name not in self._groups:
            self._groups[name] = self.layer.fields.message(name)
        return self._groups[name]

    def refuse_unread(self) -> None:
        """Refuse fields of the layer that its lowering did not ask for."""
        for group in (*self._groups.values(), self.layer.fields):
            group.refuse_unread()

    def axis(self, value: int, rank: int | None = None, *, name: str = "axis") -> int:
        """Return an axis counted from the front; a scalar has axis 0, too."""
        return super().axis(value, max(self.x.rank if rank is None else rank, 1), name=name)

    def all_weights(self) -> list[npt.NDArray[np.float32]]:
        """Every weight blob, flat."""
        return [np.ascontiguousarray(blob.data).reshape(-1) for blob in self._weights]

    @property
    def weight_count(self) -> int:
        """How many weight blobs the file has for this layer."""
        return len(self._weights)

    def weight(self, index: int, *shapes: tuple[int, ...], name: str) -> npt.NDArray[np.float32]:
        """Weight blob `index`, in the first of `shapes` that it fits.

        Leading axes of length 1 make no difference (for one axis: wherever they stand): old files
        write four axes for everything.
        """
        if index >= len(self._weights):
            have = f"{len(self._weights)} weight blobs" if self._weights else "no weights"
            raise self.error(
                f"the caffemodel has {have} for this layer; the {name} are missing",
                expected=" or ".join("x".join(map(str, s)) for s in shapes),
                fix="prototxt and caffemodel must name layers alike: are they of one model?",
            )
        blob = self._weights[index]
        for shape in shapes:
            if _stripped(blob.shape, shape) == _stripped(shape, shape):
                return blob.data.reshape(shape)
        raise self.error(
            f"the {name} in the caffemodel have the shape {'x'.join(map(str, blob.shape))}",
            expected=" or ".join("x".join(map(str, s)) for s in shapes),
        )


def _stripped(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    if len(target) <= 1:
        return tuple(d for d in shape if d != 1)
    kept = list(shape)
    while kept and kept[0] == 1:
        del kept[0]
    return tuple(kept)


Lower = Callable[[CaffeLowering], Sequence[Blob]]
"""Makes the nodes of a layer and returns its outputs, one for each top (or more: extra are cut)."""

"""Base of the importers of Caffe, UFF and Darknet: a model and one layer on the way to a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headrace._core.errors import ModelError
from headrace._core.files import sha256_of
from headrace._core.near import did_you_mean, near_names
from headrace.network.graph_builder import BATCH, Blob, GraphBuilder, Shape, shape_text
from headrace.network.model_bytes import foreign
from headrace.network.network import Network

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace._core.types import Array


class PluginMaker(Protocol):
    """Makes layers that plugins compute; see `headrace.plugins.imported`."""

    def takes(self, layer: str) -> bool:
        """Whether a factory makes the layer of that name, of any type."""

    def make_by_factory(
        self,
        name: str,
        weights: Sequence[Array],
        fields: Mapping[str, object],
        inputs: Sequence[tuple[Shape, npt.DTypeLike]],
    ) -> list[tuple[Shape, npt.DTypeLike]]:
        """As `make`, for a layer that it takes."""

    def fields(self, kind: str) -> dict[str, str] | None:
        """Fields of a type of plugins, name to type (INT32 …); None if it is unknown."""

    def make(
        self,
        name: str,
        kind: str,
        fields: Mapping[str, object],
        inputs: Sequence[tuple[Shape, npt.DTypeLike]],
    ) -> list[tuple[Shape, npt.DTypeLike]] | None:
        """Make a node; return the (shape, type) of its outputs, None if the type is unknown.

        Shapes have the batch first (1 without inputs).
        """

    def place(self, node: str) -> None:
        """The name of the node in the graph."""

    def hand_over(self, network: Network) -> None:
        """The network is made."""

    def close(self) -> None:
        """The import is over."""


def plugin_nodes(
    plugins: PluginMaker,
    graph: GraphBuilder,
    kind: str,
    inputs: Sequence[Blob],
    outputs: Sequence[tuple[Shape, npt.DTypeLike]],
    *,
    name: str,
    image: Blob,
    domain: str = "",
) -> list[Blob]:
    """Add the node of the plugin that `plugins` made last, and note its place.

    Outputs of a node without inputs are repeated for each item of `image`, the network's input.
    """
    blobs = graph.nodes(kind, inputs, outputs, domain=domain, name=name)
    producer = blobs[0].value.producer()
    assert producer is not None
    plugins.place(str(producer.name))
    return blobs if inputs else [graph.for_each_image(b, image) for b in blobs]


MAX_SIDE = 2**16


class Importer(ABC):
    """One model on its way into a graph.

    Attributes:
        where: the file, for errors about the whole of it.
        graph: where nodes go.
        plugins: makes the layers that plugins compute, if there is such a thing.
        blobs: the tensors made so far, by the names that the format gives them.
        image: the network's first input.
    """

    def __init__(
        self, where: str, name: str, producer: str, plugins: PluginMaker | None = None
    ) -> None:
        self.where = where
        self.graph = GraphBuilder(name, producer=f"headrace: {producer}")
        self.plugins = plugins
        self.blobs: dict[str, Blob] = {}
        self.image: Blob | None = None

    @abstractmethod
    def model(self) -> None:
        """Make the nodes and outputs of the model in `graph`."""

    def network(self, path: Path) -> Network:
        """Make the network; the plugins that it was made with belong to it."""
        try:
            self.model()
            network = Network(self.graph.finish(), path=path)
            if self.plugins is not None:
                self.plugins.hand_over(network)
            return network
        finally:
            if self.plugins is not None:
                self.plugins.close()

    def error(
        self, problem: str, *, expected: str | None = None, fix: str | None = None
    ) -> ModelError:
        """Return an error about the whole model."""
        return ModelError(problem, where=self.where, expected=expected, fix=fix)

    def input(self, name: str, dims: Sequence[int], *, with_batch: bool = False) -> Blob:
        """Add an input of the network.

        `dims` are channels, height, width; `with_batch`: a batch, whose length does not count, and
        any number of axes.
        """
        fits = len(dims) >= 2 if with_batch else len(dims) == 3
        if not fits or any(not 1 <= d <= MAX_SIDE for d in dims):
            axes = "a batch and at least one more axis" if with_batch else "channels, height, width"
            raise self.graph.error(
                f"the input is {' x '.join(map(str, dims))}",
                expected=f"{axes}, each 1 to {MAX_SIDE}",
            )
        shape: Shape = (BATCH, *(dims[1:] if with_batch else dims))
        self.graph.check_shape(shape)
        blob = self.graph.input(name, shape)
        self.image = self.image or blob
        return blob

    def unknown(
        self, subject: str, kind: str, known: Iterable[str], fix: str | Sequence[str] = ()
    ) -> ModelError:
        """Return the error for a kind of layer; `fix` if no kind has a similar name."""
        names = sorted(known)
        return self.graph.error(
            f"{subject} is not known",
            expected=f"one of {', '.join(names)}",
            fix=did_you_mean(*near_names(kind, names, 1)) or fix,
        )


class LayerLowering:
    """One layer on its way into a graph: its inputs, and how to make nodes.

    Attributes:
        graph: where nodes go.
        inputs: the tensors that it reads.
        input_word: the format's word for one of them.
        error, op, constant: methods of `graph`: an error about this layer, a node with one output,
            a constant tensor.
    """

    input_word = "input"

    def __init__(self, graph: GraphBuilder, inputs: Sequence[Blob]) -> None:
        self.graph = graph
        self.inputs = tuple(inputs)
        self.error = graph.error
        self.op = graph.node
        self.constant = graph.constant

    @property
    def x(self) -> Blob:
        """The first input."""
        return self.inputs[0]

    def same(self, name: str, *inputs: Blob, **attributes: Any) -> Blob:
        """Add a node with an output of the shape of its first input."""
        return self.graph.node(name, inputs, inputs[0].shape, **attributes)

    def count(self, least: int, most: int | None = None) -> None:
        """Check the number of inputs: from `least` to `most`, which are the same by default."""
        most = least if most is None else most
        if not least <= len(self.inputs) <= most:
            limits = str(least) if least == most else f"{least} to {most}"
            raise self.error(f"it has {len(self.inputs)} {self.input_word}(s)", expected=limits)

    def axis(self, value: int, rank: int | None = None, *, name: str = "axis") -> int:
        """Return an axis of the first input, or of `rank` axes, counted from the front."""
        rank = self.x.rank if rank is None else rank
        axis = value + rank if value < 0 else value
        if not 0 <= axis < rank:
            raise self.error(f"{name}: {value}, but the input has {rank} axes")
        return axis

    def fixed_length(self, shape: Shape, axis: int, doing: str = "depends on") -> int:
        """Return the length of an axis, which may not be the batch."""
        if shape[axis] < 0:
            raise self.error(
                f"it {doing} the batch: axis {axis} of {shape_text(shape)}",
                fix="a batch has any number of items: nothing may depend on it",
            )
        return shape[axis]


def expected_names(name: str, known: Iterable[str]) -> str:
    """Return the names most like `name`, or some of all, to stand behind "expected"."""
    names = list(known)
    close = near_names(name, names) or names[-5:]
    return f"one of {', '.join(map(repr, close))}" if close else "none: there are no others"


def decoded(data: bytes, path: Path, what: str) -> str:
    """Return the text of a file; encodings but UTF-8 are harmless: only comments have them."""
    if b"\0" in data:
        raise foreign(data, path, what, "it has zero bytes, so it is no text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def note_files(network: Network, weights: bytes, text: bytes = b"") -> Network:
    """Note size and checksum of the files that a network was read from."""
    network.size_bytes = len(text) + len(weights)
    network.sha256 = sha256_of(weights)
    return network

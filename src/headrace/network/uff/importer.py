"""A UFF graph made into a `Network`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headrace._core.errors import ModelError
from headrace._core.text import shortened
from headrace.network.graph_builder import BATCH, Blob, shape_text
from headrace.network.importer import (
    Importer,
    PluginMaker,
    expected_names,
    note_files,
    plugin_nodes,
)
from headrace.network.model_bytes import read_model_file
from headrace.network.network import Network
from headrace.network.uff.lowering import Transposes, UffLowering, permutation
from headrace.network.uff.ops import arithmetic, shapes, spatial
from headrace.network.uff.proto import WHAT, Node, Uff, read_uff

if TYPE_CHECKING:
    import numpy.typing as npt

    from headrace.network.graph_builder import Shape


LOWERINGS = {**arithmetic.LOWERINGS, **shapes.LOWERINGS, **spatial.LOWERINGS}
InputOrder = Literal["NCHW", "NHWC", "NC"]


def network_from_uff(
    path: str | Path,
    input_name: str | None = None,
    input_dims: Sequence[int] | None = None,
    input_order: InputOrder = "NCHW",
    outputs: Sequence[str] = (),
    plugins: PluginMaker | None = None,
) -> Network:
    """Read a UFF file.

    The network's input is (batch, channels, height, width) float32 whatever order the graph works
    in; it is turned where the graph wants it otherwise.

    Args:
        path: the file.
        input_name: the input node; None: the only one.
        input_dims: channels, height, width; None: those in the file.
        input_order: the order the graph expects. NCHW also serves graphs that say themselves, by
            their input's shape or the nodes that read it, that they want NHWC. NC: one axis of
            channels * height * width.
        outputs: names of nodes to give out, in this order; empty: those the file marks.
        plugins: makes the layers of plugin nodes; None: they are refused.

    Raises:
        ModelError: unreadable or damaged file; names that are not there; unknown operations and
            plugins, with their fields; shapes that do not fit.
    """
    path = Path(path)
    data = read_model_file(path, WHAT)
    network = network_from_uff_bytes(
        data, path, input_name, input_dims, input_order, outputs, plugins
    )
    return note_files(network, data)


def network_from_uff_bytes(
    data: bytes,
    path: Path,
    input_name: str | None = None,
    input_dims: Sequence[int] | None = None,
    input_order: InputOrder = "NCHW",
    outputs: Sequence[str] = (),
    plugins: PluginMaker | None = None,
) -> Network:
    """`network_from_uff` for the bytes of a file."""
    importer = _UffImporter(read_uff(data, path), str(path), outputs, plugins)
    importer.wanted_input = input_name, input_dims, input_order
    network = importer.network(path)
    network.implicit_batch = True
    return network


class _UffImporter(Importer):
    def __init__(
        self, uff: Uff, where: str, outputs: Sequence[str], plugins: PluginMaker | None
    ) -> None:
        super().__init__(where, "uff", "UFF", plugins)
        self.more: dict[str, list[Blob]] = {}  # further outputs of plugins
        self.nodes = uff.nodes
        self.outputs = outputs
        self.turns = Transposes(self.graph)
        self.wanted_input: tuple[str | None, Sequence[int] | None, InputOrder] = None, None, "NCHW"

    def choose_input(self, name: str | None, dims: Sequence[int] | None, order: InputOrder) -> None:
        known = [node.name for node in self.nodes.values() if node.operation == "Input"]
        if name is None and len(known) == 1:
            name = known[0]
        if name not in known:
            problem = "the input is not named" if name is None else f"no input is called {name!r}"
            raise self.error(
                problem,
                expected=f"one of {', '.join(map(repr, known)) or 'none: the graph has no input'}",
                fix="uff-input-blob-name names it",
            )
        node = self.nodes[name]
        self.graph.where, self.graph.label = self._where(node), name
        declared = node.fields.get("shape")
        inner = list(declared)[1:] if isinstance(declared, list) else []
        last = order == "NHWC" or (order == "NCHW" and self._channels_last(node, inner, dims))
        if dims is None:
            full = len(inner) == 3 and all(isinstance(d, int) and d > 0 for d in inner)
            if not full:
                raise self.graph.error(
                    f"the file gives the input the shape {inner}",
                    expected="three known lengths",
                    fix="set infer-dims=<channels>;<height>;<width>",
                )
            dims = (inner[2], inner[0], inner[1]) if last else tuple(inner)
        blob = self.input(name, dims)
        if order == "NC":
            blob = self.graph.reshape(blob, (BATCH, prod(dims)))
        elif last:
            blob = self.turns.turn(blob, (0, 2, 3, 1))
        self.blobs[name] = blob

    def _channels_last(self, node: Node, inner: list[int], dims: Sequence[int] | None) -> bool:
        """Whether a graph with an input called NCHW wants NHWC all the same."""
        if dims is not None and len(dims) == 3 and len(inner) == 3:
            c, h, w = dims
            fits = [all(a in (b, -1) for a, b in zip(inner, order, strict=True))
                    for order in ((c, h, w), (h, w, c))]  # fmt: skip
            if fits[0] != fits[1]:
                return fits[1]
        for reader in self.nodes.values():
            codes = reader.fields.get("inputs_orders")
            if node.name in reader.inputs and isinstance(codes, list) and codes:
                return permutation(codes[0], 4) == (0, 2, 3, 1)
        return len(inner) == 3 and inner[2] in (1, 3, 4) and inner[0] not in (1, 3, 4)

    def model(self) -> None:
        self.choose_input(*self.wanted_input)
        marked = [n.inputs[0] for n in self.nodes.values() if n.operation == "MarkOutput"
                  and n.inputs]  # fmt: skip
        names = list(dict.fromkeys(self.outputs or marked))
        if not names:
            raise self.error("the file marks no output", expected="output-blob-names")
        outputs = [(name, self._find(name, None)) for name in names]
        for _, node in outputs:
            self._lower_all(node)
        self.graph.where = self.where
        for name, node in outputs:
            blob = self.blobs[node.name]
            if blob.fixed or blob.shape[:1] == ():
                raise self.error(f"the output {name!r} does not depend on the input")
            self.graph.output(name, blob)
            for index, other in enumerate(self.more.get(node.name, ()), 1):
                if f"{name}_{index}" not in names:
                    self.graph.output(f"{name}_{index}", other)

    def _find(self, name: str, reader: Node | None) -> Node:
        plain = name.removeprefix("^")
        for key in (plain, plain.removesuffix(":0")):
            if key in self.nodes:
                return self.nodes[key]
        where = self.where if reader is None else self._where(reader)
        expected = expected_names(plain, self.nodes)
        raise ModelError(f"there is no node {name!r}", where=where, expected=expected)

    def _lower_all(self, last: Node) -> None:
        """The nodes that `last` needs, inputs first; without recursion: chains may be long."""
        open_nodes: set[str] = set()
        stack = [last]
        while stack:
            node = stack[-1]
            if node.name in self.blobs:
                stack.pop()
                continue
            inputs = [self._find(name, node) for name in node.inputs]
            missing = [n for n in inputs if n.name not in self.blobs]
            if not missing:
                self._lower(node, [self.blobs[n.name] for n in inputs])
                stack.pop()
                continue
            if node.name in open_nodes:
                raise ModelError("the node depends on itself", where=self._where(node))
            open_nodes.add(node.name)
            stack += missing

    def _lower(self, node: Node, inputs: list[Blob]) -> None:
        self.graph.where, self.graph.label = self._where(node), node.name
        make = LOWERINGS.get(node.operation)
        if make is None:
            if not self._plugin(node, inputs):
                raise self._unknown(node, inputs)
            return
        if node.operation != "Const" and not inputs:
            raise self.graph.error("the node has no inputs")
        self.blobs[node.name] = make(UffLowering(node, inputs, self.graph, self.turns))

    def _plugin(self, node: Node, inputs: list[Blob]) -> bool:
        """Whether a plugin computes the node. Further outputs are called `<node>_1`, …."""
        if self.plugins is None or not node.operation.startswith("_"):
            return False
        kind = node.operation[1:]
        layer = UffLowering(node, inputs, self.graph, self.turns)
        if "inputs_orders" in node.fields:
            inputs = [layer.canonical(i) for i in range(len(inputs))]
        outputs: Sequence[tuple[Shape, npt.DTypeLike]] | None
        if self.plugins.takes(node.name):
            weights = [b.array for b in inputs if b.array is not None]
            inputs = [b for b in inputs if b.array is None]
            specs = [(b.shape, b.dtype) for b in inputs]
            outputs = self.plugins.make_by_factory(node.name, weights, node.fields, specs)
        else:
            specs = [(b.shape, b.dtype) for b in inputs]
            outputs = self.plugins.make(node.name, kind, node.fields, specs)
        if outputs is None:
            return False
        assert self.image is not None
        blobs = plugin_nodes(
            self.plugins, self.graph, kind, inputs, outputs, name=node.name, image=self.image
        )
        self.blobs[node.name] = blobs[0]
        self.more[node.name] = blobs[1:]
        for index, blob in enumerate(blobs[1:], 1):
            self.blobs.setdefault(f"{node.name}_{index}", blob)
        return True

    def _unknown(self, node: Node, inputs: list[Blob]) -> ModelError:
        if node.operation == "Input":
            return self.graph.error(
                "this is a second input", expected="one input, which uff-input-blob-name names"
            )
        if not node.operation.startswith("_"):
            return self.unknown(f"the operation {node.operation!r}", node.operation, LOWERINGS)
        gets = "; ".join(shape_text(b.shape) for b in inputs)
        fields = ", ".join(f"{k}={_short(v)}" for k, v in node.fields.items())
        return self.graph.error(
            f"the plugin {node.operation[1:]!r} is not available: it gets {gets}; "
            f"its fields are {fields or 'none'}",
            fix=[
                f"write it: headrace init --plugin {node.operation[1:]} makes a template, and "
                "custom-lib-path loads it",
                "or write it in C++: REGISTER_TENSORRT_PLUGIN(<its creator>), compiled by headrace "
                "compile; headrace inspect shows what a library registers",
                "or give out the nodes before it (output-blob-names): a parser may do that step",
            ],
        )

    def _where(self, node: Node) -> str:
        return f"{self.where}, node {node.name!r} ({node.operation})"


def _short(value: object) -> str:
    if isinstance(value, memoryview):
        return f"{len(value)} bytes"
    return shortened(repr(value), 60)

"""A Darknet network and its weights, made into a `Network`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.network.darknet.files import WHAT, CfgSection, DarknetWeights, read_cfg
from headrace.network.darknet.heads import HEADS
from headrace.network.darknet.layers import LOWERINGS
from headrace.network.darknet.lowering import DarknetLowering
from headrace.network.graph_builder import BATCH, Blob
from headrace.network.importer import MAX_SIDE, Importer, decoded, note_files
from headrace.network.model_bytes import read_model_file
from headrace.network.network import Network

_TEXT = "a Darknet network text (.cfg)"
_MAX_TEXT_BYTES = 16 * 2**20
INPUT, OUTPUT = "input", "output"


def network_from_darknet(
    cfg: str | Path,
    weights: str | Path,
    *,
    input_dims: Sequence[int] | None = None,
    decode: bool = True,
) -> Network:
    """Read a Darknet model. The batch is free.

    The input is called `input`, (batch, channels, height, width). The heads, [yolo] and [region],
    are decoded and joined: one output `output`, (batch, boxes, 6) float32, rows of x1, y1, x2, y2
    in input pixels, score, class. A network without heads gives out its last layer as `output`.

    Args:
        cfg: the network.
        weights: its weights.
        input_dims: channels, height, width instead of those of [net].
        decode: False: give out what the heads read, one output `<kind>_<layer>` for each.

    Raises:
        ModelError: with file, line and layer: unreadable files; unknown layers and activations;
            weights that are too few or too many.
    """
    text_path, path = Path(cfg), Path(weights)
    text = read_model_file(text_path, _TEXT, max_bytes=_MAX_TEXT_BYTES)
    data = read_model_file(path, WHAT)
    network = network_from_darknet_bytes(
        text, data, text_path, path, input_dims=input_dims, decode=decode
    )
    network.made_from = {"custom-network-config": text_path}
    return note_files(network, data, text)


def network_from_darknet_bytes(
    text: bytes,
    weights: bytes,
    text_path: Path,
    path: Path,
    *,
    input_dims: Sequence[int] | None = None,
    decode: bool = True,
) -> Network:
    """`network_from_darknet` for the contents of two files."""
    sections = read_cfg(decoded(text, text_path, _TEXT), str(text_path))
    reader = DarknetWeights(weights, path)
    return _DarknetImporter(sections, reader, str(text_path), input_dims, decode).network(path)


class _DarknetImporter(Importer):
    def __init__(
        self,
        sections: list[CfgSection],
        weights: DarknetWeights,
        where: str,
        input_dims: Sequence[int] | None,
        decode: bool,
    ) -> None:
        super().__init__(where, "darknet", "Darknet")
        self.net, *self.layers = sections
        self.weights = weights
        self.input_dims = input_dims
        self.decode = decode

    def model(self) -> None:
        last = self.layers[-1]
        for name, blob in self.lower():
            self.graph.where = self.where
            self.graph.output(name, blob)
        self.weights.finish(f"{last.index} [{last.kind}]")

    def lower(self) -> list[tuple[str, Blob]]:
        """Make the nodes of all layers; return the outputs with their names."""
        graph = self.graph
        x = self.net_input()
        size = (x.shape[2], x.shape[3])
        before: list[Blob | None] = []
        heads: list[Blob] = []
        raw: list[tuple[str, Blob]] = []
        for section in self.layers:
            graph.where, graph.label = section.where, f"{section.kind}_{section.index}"
            make = LOWERINGS.get(section.kind)
            if make is None:
                raise self.unknown(f"the layer [{section.kind[:60]}]", section.kind, LOWERINGS)
            if section.kind in HEADS:
                raw.append((graph.label, x))
            blob = make(DarknetLowering(section, before, x, graph, self.weights, size, heads))
            before.append(blob)
            x = x if blob is None else blob
        graph.where = self.where
        if not heads:
            if x.fixed:
                raise graph.error("the last layer does not depend on the input")
            return [(OUTPUT, x)]
        if not self.decode:
            return raw
        if len(heads) == 1:
            return [(OUTPUT, heads[0])]
        total = sum(head.shape[1] for head in heads)
        return [(OUTPUT, graph.node("Concat", heads, (BATCH, total, 6), axis=1))]

    def net_input(self) -> Blob:
        net, dims = self.net, self.input_dims
        self.graph.where = net.where
        if dims is None:
            dims = [
                net.integer("channels", 3, least=1, most=MAX_SIDE),
                net.integer("height", 0, most=MAX_SIDE),
                net.integer("width", 0, most=MAX_SIDE),
            ]
        return self.input(INPUT, dims)

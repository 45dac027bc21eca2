"""A Darknet network and its weights, made into a `Network`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from noria._core.errors import ModelError
from noria.network.darknet.cfg import Section, read_cfg
from noria.network.darknet.layers import HEADS, LOWERINGS
from noria.network.darknet.lowering import Lowering
from noria.network.darknet.weights import WHAT, Weights
from noria.network.graph_builder import BATCH, Blob, GraphBuilder
from noria.network.model_bytes import foreign, read_model_file, sha256_of
from noria.network.network import Network

_TEXT = "a Darknet network text (.cfg)"
_MAX_TEXT_BYTES = 16 * 2**20
_MAX_SIDE = 2**16
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
    network.size_bytes = len(text) + len(data)
    network.sha256 = sha256_of(data)
    return network


def network_from_darknet_bytes(
    text: bytes,
    weights: bytes,
    text_path: Path,
    path: Path,
    *,
    input_dims: Sequence[int] | None = None,
    decode: bool = True,
) -> Network:
    """`network_from_darknet` for the contents of two files.

    Raises:
        ModelError: as `network_from_darknet`.
    """
    if b"\0" in text:
        raise foreign(text, text_path, _TEXT, "it has zero bytes, so it is no text")
    sections = read_cfg(text.decode("utf-8-sig", errors="replace"), str(text_path))
    reader = Weights(weights, path)
    graph = GraphBuilder("darknet", producer="noria: Darknet")
    for name, blob in _lower(sections, reader, graph, input_dims, decode=decode):
        graph.where = str(text_path)
        graph.output(name, blob)
    reader.finish(f"{sections[-1].index} [{sections[-1].kind}]")
    return Network(graph.finish(), path=path)


def _lower(
    sections: list[Section],
    weights: Weights,
    graph: GraphBuilder,
    input_dims: Sequence[int] | None,
    *,
    decode: bool,
) -> list[tuple[str, Blob]]:
    """All layers; the outputs with their names."""
    net, *layers = sections
    x = _input(net, graph, input_dims)
    size = (x.shape[2], x.shape[3])
    before: list[Blob | None] = []
    heads: list[Blob] = []
    raw: list[tuple[str, Blob]] = []
    for section in layers:
        graph.where, graph.label = section.where, f"{section.kind}_{section.index}"
        make = LOWERINGS.get(section.kind)
        if make is None:
            near = get_close_matches(section.kind, LOWERINGS, 1)
            raise graph.error(
                f"the layer [{section.kind[:60]}] is not known",
                expected=f"one of {', '.join(sorted(LOWERINGS))}",
                fix=f"did you mean [{near[0]}]?" if near else (),
            )
        if section.kind in HEADS:
            raw.append((graph.label, x))
        made = make(Lowering(section, before, x, graph, weights, size, heads))
        before.append(made)
        x = x if made is None else made
    graph.where = str(layers[-1].path)
    if not heads:
        if x.fixed:
            raise graph.error("the last layer does not depend on the input")
        return [(OUTPUT, x)]
    if not decode:
        return raw
    if len(heads) == 1:
        return [(OUTPUT, heads[0])]
    total = sum(head.shape[1] for head in heads)
    return [(OUTPUT, graph.node("Concat", heads, (BATCH, total, 6), axis=1))]


def _input(net: Section, graph: GraphBuilder, dims: Sequence[int] | None) -> Blob:
    graph.where = net.where
    if dims is None:
        dims = [
            net.integer("channels", 3, least=1, most=_MAX_SIDE),
            net.integer("height", 0, most=_MAX_SIDE),
            net.integer("width", 0, most=_MAX_SIDE),
        ]
    if len(dims) != 3 or any(not 1 <= d <= _MAX_SIDE for d in dims):
        raise ModelError(
            f"the input is {' x '.join(map(str, dims))}",
            where=net.where,
            expected="channels, height and width above 0",
        )
    shape = (BATCH, *dims)
    graph.check_shape(shape)
    return graph.input(INPUT, shape)

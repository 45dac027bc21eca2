"""A Caffe network and its weights, made into a `Network`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from noria._core.errors import ModelError
from noria.network.caffe.layers import INPUTS, LOWERINGS, TRAINING_ONLY
from noria.network.caffe.lowering import Lowering
from noria.network.caffe.net import Layer, Net, read_net
from noria.network.caffe.plugin_layers import by_picture, factory_layer, registered_layer
from noria.network.caffe.prototxt import read_prototxt
from noria.network.caffe.weights import WHAT, WeightBlob, read_caffemodel
from noria.network.graph_builder import BATCH, Blob, GraphBuilder, Shape
from noria.network.model_bytes import foreign, read_model_file, sha256_of
from noria.network.network import Network
from noria.network.plugin_maker import PluginMaker, handed_over

_TEXT = "a Caffe network text (prototxt)"
_MAX_TEXT_BYTES = 64 * 2**20
_MAX_SIDE = 2**16


def network_from_caffe(
    prototxt: str | Path,
    caffemodel: str | Path,
    *,
    outputs: Sequence[str] = (),
    input_dims: Sequence[int] | None = None,
    plugins: PluginMaker | None = None,
) -> Network:
    """Read a Caffe model: the network from its text, the weights by the names of the layers.

    The first axis of each input is the batch, whatever length the text gives it.

    Args:
        prototxt: the network as text, all forms but the oldest (V0).
        caffemodel: the weights.
        outputs: names of the blobs to give out, in this order; empty: those that no layer reads.
        input_dims: channels, height, width of the input instead of those in the text.
        plugins: makes the layers that a factory takes, and those of types that are not Caffe's;
            None: such types are refused.

    Raises:
        ModelError: with file, line and layer: unreadable or damaged files; unknown layer types and
            fields; weights that are missing or have another shape; outputs that do not exist.
        PluginError, CustomLibraryError: a plugin or a factory failed.
    """
    text_path, path = Path(prototxt), Path(caffemodel)
    text = read_model_file(text_path, _TEXT, max_bytes=_MAX_TEXT_BYTES)
    weights = read_model_file(path, WHAT)
    network = network_from_caffe_bytes(
        text, weights, text_path, path, outputs=outputs, input_dims=input_dims, plugins=plugins
    )
    network.made_from = {"proto-file": text_path}
    network.size_bytes = len(text) + len(weights)
    network.sha256 = sha256_of(weights)
    return network


def network_from_caffe_bytes(
    text: bytes,
    weights: bytes,
    text_path: Path,
    path: Path,
    *,
    outputs: Sequence[str] = (),
    input_dims: Sequence[int] | None = None,
    plugins: PluginMaker | None = None,
) -> Network:
    """`network_from_caffe` for the contents of two files.

    Raises:
        ModelError: as `network_from_caffe`.
    """
    if b"\0" in text:
        raise foreign(text, text_path, _TEXT, "it has zero bytes, so it is no text")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        decoded = text.decode("latin-1")  # comments in other encodings harm nobody
    net = read_net(read_prototxt(decoded, str(text_path)), str(text_path))
    blobs = read_caffemodel(weights, path)

    def make() -> Network:
        importer = _Importer(net, blobs, str(text_path), input_dims, plugins)
        return importer.network(outputs, path)

    return handed_over(plugins, make)


class _Importer:
    def __init__(
        self,
        net: Net,
        weights: dict[str, list[WeightBlob]],
        where: str,
        input_dims: Sequence[int] | None,
        plugins: PluginMaker | None,
    ) -> None:
        self.plugins = plugins
        self.net = net
        self.weights = weights
        self.where = where
        self.input_dims = None if input_dims is None else tuple(input_dims)
        self.graph = GraphBuilder(net.name, producer="noria: Caffe")
        self.blobs: dict[str, Blob] = {}
        self.picture: Blob | None = None
        self.batch = 1

    def network(self, outputs: Sequence[str], path: Path) -> Network:
        layers = [layer for layer in self.net.layers if layer.type not in TRAINING_ONLY]
        outputs = list(outputs) or self.leaves(layers)
        for name in set(outputs):
            if outputs.count(name) > 1:
                raise self.error(f"the output {name!r} is asked for twice")
        self.inputs()
        needed = {id(layer) for layer in self.needed(layers, outputs)}
        for layer in self.net.layers:  # a factory is asked for every layer, in their order
            by_factory = self.plugins is not None and self.plugins.takes(layer.name)
            if id(layer) in needed:
                self.lower(layer, by_factory)
        self.graph.where = self.where
        for name in outputs:
            if name not in self.blobs:
                raise self.error(
                    f"the network has no blob {name!r} to give out",
                    expected=_near(name, self.tops(layers)),
                    fix="output-blob-names are names of tops in the prototxt",
                )
            self.graph.label = name
            self.graph.output(name, by_picture(self.graph, self.blobs[name]))
        network = Network(self.graph.finish(), path=path)
        network.implicit_batch = True
        return network

    def error(self, found: str, **more: str) -> ModelError:
        return ModelError(found, where=self.where, **more)

    @staticmethod
    def tops(layers: Sequence[Layer]) -> list[str]:
        return list(dict.fromkeys(top for layer in layers for top in layer.tops))

    def leaves(self, layers: Sequence[Layer]) -> list[str]:
        """Blobs that no layer reads after they were last written, in the order of the text."""
        written: dict[str, Layer] = {}
        for layer in layers:
            for bottom in layer.bottoms:
                written.pop(bottom, None)
            if layer.type not in INPUTS:
                written |= dict.fromkeys(layer.tops, layer)
        if not written:
            raise self.error("no blob is left to give out: every one is read by a layer")
        return list(written)

    def needed(self, layers: Sequence[Layer], outputs: Sequence[str]) -> list[Layer]:
        """The layers that the outputs depend on; other branches may hold anything."""
        wanted, kept = set(outputs), []
        for layer in reversed(layers):
            if wanted.intersection(layer.tops):
                kept.append(layer)
                if not set(layer.tops) <= set(layer.bottoms):
                    wanted -= set(layer.tops)  # an earlier blob of the same name is another one
                wanted |= set(layer.bottoms)
        return kept[::-1]

    def inputs(self) -> None:
        for name, dims in self.net.inputs:
            self.graph.where = f"{self.where}, input {name!r}"
            self.input(name, dims)

    def input(self, name: str, dims: tuple[int, ...]) -> None:
        given = self.input_dims if not self.blobs else None
        if given is not None and (not dims or len(dims) == len(given) + 1):
            dims = (dims[0] if dims else 1, *given)
        if not dims:
            raise self.graph.error(
                f"the input {name!r} has no shape",
                expected="input_shape { dim: ... }, or a layer of type Input",
                fix="use the deploy prototxt, not the one for training; or set infer-dims",
            )
        if any(not 1 <= d <= _MAX_SIDE for d in dims) or len(dims) < 2:
            text = " x ".join(map(str, dims))
            raise self.graph.error(
                f"the input {name!r} is {text}",
                expected=f"a batch and at least one more axis, each 1 to {_MAX_SIDE}",
            )
        if not self.blobs:
            self.batch = dims[0]
        shape: Shape = (BATCH, *dims[1:])
        self.graph.check_shape(shape)
        self.blobs[name] = self.graph.input(name, shape)
        self.picture = self.picture or self.blobs[name]

    def lower(self, layer: Layer, by_factory: bool) -> None:
        self.graph.where, self.graph.label = layer.where, layer.name or layer.type
        if layer.type in INPUTS and not by_factory:
            self.input_layer(layer)
            return
        bottoms = []
        for name in layer.bottoms:
            if name not in self.blobs:
                raise self.graph.error(
                    f"no layer before it makes the bottom {name!r}",
                    expected=_near(name, list(self.blobs)),
                )
            bottoms.append(self.blobs[name])
        weights = self.weights.get(layer.name, ())
        ctx = Lowering(layer, bottoms, weights, self.graph, self.batch, self.picture)
        made = self.made(ctx, by_factory)
        if len(made) < len(layer.tops):
            raise self.graph.error(
                f"the layer has {len(layer.tops)} tops", expected=f"at most {len(made)}"
            )
        self.blobs |= zip(layer.tops, made, strict=False)

    def made(self, ctx: Lowering, by_factory: bool) -> Sequence[Blob]:
        """The outputs of a layer."""
        if by_factory:
            assert self.plugins is not None
            return factory_layer(ctx, self.plugins)
        kind = ctx.layer.type
        make = LOWERINGS.get(kind)
        if make is None:
            found = registered_layer(ctx, self.plugins) if self.plugins is not None else None
            if found is not None:
                return found
            raise self.graph.error(
                f"the layer type {kind!r} is not known",
                expected=f"one of {', '.join(sorted(LOWERINGS))}",
                fix=_advice(kind),
            )
        ctx.inputs(1, 2**16)
        made = make(ctx)
        ctx.refuse_unread()
        return made

    def input_layer(self, layer: Layer) -> None:
        shapes = [
            tuple(s.integers("dim")) for s in layer.fields.message("input_param").messages("shape")
        ]
        shapes = shapes * len(layer.tops) if len(shapes) == 1 else shapes
        tops = layer.tops if layer.type == "Input" else layer.tops[:1]  # the rest are labels
        if shapes and len(shapes) != len(tops):
            raise self.graph.error(
                f"{len(shapes)} shapes for {len(tops)} tops", expected="one each"
            )
        for i, top in enumerate(tops):
            self.input(top, shapes[i] if shapes else ())


def _near(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 3) or list(known)[-5:]
    return f"one of {', '.join(map(repr, close))}" if close else "a blob"


def _advice(kind: str) -> str:
    near = get_close_matches(kind, LOWERINGS, 1)
    if near:
        return f"did you mean {near[0]}?"
    return (
        "register a plugin of that type (custom-lib-path), or give out the blob before it "
        "(output-blob-names) and leave that step to the parser"
    )

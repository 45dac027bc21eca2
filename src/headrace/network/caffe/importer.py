"""A Caffe network and its weights, made into a `Network`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace._core.proto_text import read_proto_text
from headrace.network.caffe.layers import INPUTS, LOWERINGS, TRAINING_ONLY
from headrace.network.caffe.lowering import CaffeLowering
from headrace.network.caffe.net import CaffeLayer, Net, read_net
from headrace.network.caffe.plugin_layers import by_image, factory_layer, registered_layer
from headrace.network.caffe.weights import WHAT, WeightBlob, read_caffemodel
from headrace.network.graph_builder import Blob
from headrace.network.importer import Importer, PluginMaker, decoded, expected_names, note_files
from headrace.network.model_bytes import read_model_file
from headrace.network.network import Network

_TEXT = "a Caffe network text (prototxt)"
_MAX_TEXT_BYTES = 64 * 2**20
_ADVICE = (
    "register a plugin of that type (custom-lib-path), or give out the blob before it "
    "(output-blob-names) and leave that step to the parser"
)


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
    return note_files(network, weights, text)


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
    """`network_from_caffe` for the contents of two files."""
    net = read_net(read_proto_text(decoded(text, text_path, _TEXT), str(text_path)), str(text_path))
    blobs = read_caffemodel(weights, path)
    network = _CaffeImporter(net, blobs, str(text_path), outputs, input_dims, plugins).network(path)
    network.implicit_batch = True
    return network


class _CaffeImporter(Importer):
    def __init__(
        self,
        net: Net,
        weights: dict[str, list[WeightBlob]],
        where: str,
        outputs: Sequence[str],
        input_dims: Sequence[int] | None,
        plugins: PluginMaker | None,
    ) -> None:
        super().__init__(where, net.name, "Caffe", plugins)
        self.net = net
        self.weights = weights
        self.outputs = outputs
        self.input_dims = None if input_dims is None else tuple(input_dims)
        self.batch = 1

    def model(self) -> None:
        layers = [layer for layer in self.net.layers if layer.type not in TRAINING_ONLY]
        outputs = list(self.outputs) or self.leaves(layers)
        for name in dict.fromkeys(outputs):
            if outputs.count(name) > 1:
                raise self.error(f"the output {name!r} is asked for twice")
        for name, dims in self.net.inputs:
            self.graph.where = f"{self.where}, input {name!r}"
            self.named_input(name, dims)
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
                    expected=expected_names(name, dict.fromkeys(t for x in layers for t in x.tops)),
                    fix="output-blob-names are names of tops in the prototxt",
                )
            self.graph.label = name
            self.graph.output(name, by_image(self.graph, self.blobs[name]))

    def leaves(self, layers: Sequence[CaffeLayer]) -> list[str]:
        """Blobs that no layer reads after they were last written, in the order of the text."""
        written: dict[str, CaffeLayer] = {}
        for layer in layers:
            for bottom in layer.bottoms:
                written.pop(bottom, None)
            if layer.type not in INPUTS:
                written |= dict.fromkeys(layer.tops, layer)
        if not written:
            raise self.error("no blob is left to give out: every one is read by a layer")
        return list(written)

    def needed(self, layers: Sequence[CaffeLayer], outputs: Sequence[str]) -> list[CaffeLayer]:
        """The layers that the outputs depend on; other branches may hold anything."""
        required, kept = set(outputs), []
        for layer in reversed(layers):
            if required.intersection(layer.tops):
                kept.append(layer)
                if not set(layer.tops) <= set(layer.bottoms):
                    required -= set(layer.tops)  # an earlier blob of the same name is another one
                required |= set(layer.bottoms)
        return kept[::-1]

    def named_input(self, name: str, dims: tuple[int, ...]) -> None:
        known_dims = self.input_dims if not self.blobs else None
        if known_dims is not None and (not dims or len(dims) == len(known_dims) + 1):
            dims = (dims[0] if dims else 1, *known_dims)
        if not dims:
            raise self.graph.error(
                f"the input {name!r} has no shape",
                expected="input_shape { dim: ... }, or a layer of type Input",
                fix="use the deploy prototxt, not the one for training; or set infer-dims",
            )
        if not self.blobs:
            self.batch = dims[0]
        self.blobs[name] = self.input(name, dims, with_batch=True)

    def lower(self, layer: CaffeLayer, by_factory: bool) -> None:
        self.graph.where, self.graph.label = layer.where, layer.name or layer.type
        if layer.type in INPUTS and not by_factory:
            self.input_layer(layer)
            return
        bottoms = []
        for name in layer.bottoms:
            if name not in self.blobs:
                raise self.graph.error(
                    f"no layer before it makes the bottom {name!r}",
                    expected=expected_names(name, self.blobs),
                )
            bottoms.append(self.blobs[name])
        weights = self.weights.get(layer.name, ())
        ctx = CaffeLowering(layer, bottoms, weights, self.graph, self.batch, self.image)
        outputs = self.made(ctx, by_factory)
        if len(outputs) < len(layer.tops):
            raise self.graph.error(
                f"the layer has {len(layer.tops)} tops", expected=f"at most {len(outputs)}"
            )
        self.blobs |= zip(layer.tops, outputs, strict=False)

    def made(self, ctx: CaffeLowering, by_factory: bool) -> Sequence[Blob]:
        """The outputs of a layer."""
        if by_factory:
            assert self.plugins is not None
            return factory_layer(ctx, self.plugins)
        kind = ctx.layer.type
        make = LOWERINGS.get(kind)
        if make is None:
            plugin_blobs = registered_layer(ctx, self.plugins) if self.plugins is not None else None
            if plugin_blobs is not None:
                return plugin_blobs
            raise self.unknown(f"the layer type {kind!r}", kind, LOWERINGS, _ADVICE)
        ctx.count(1, 2**16)
        blobs = make(ctx)
        ctx.refuse_unread()
        return blobs

    def input_layer(self, layer: CaffeLayer) -> None:
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
            self.named_input(top, shapes[i] if shapes else ())

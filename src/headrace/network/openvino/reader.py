"""The two files of an OpenVINO model: layers and edges in XML, numbers in a file of the same name.

Source: docs.openvino.ai, "OpenVINO IR format"; versions 10 and 11 are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ModelError
from headrace.network.model_bytes import foreign, read_model_file
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

KIND = "a model of OpenVINO (IR)"
MAX_XML_BYTES = 1 << 28
_MOST_LAYERS = 1 << 18
_VERSIONS = ("10", "11")
DTYPES: Mapping[str, np.dtype] = {
    name: np.dtype(kind) for name, kind in {
        "FP32": "f4", "FP16": "f2", "FP64": "f8", "I64": "i8", "I32": "i4", "I16": "i2",
        "I8": "i1", "U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8", "BOOL": "?", "BOOLEAN": "?",
    }.items()
}  # fmt: skip
"""Precision of a port -> its type in NumPy."""

Port = tuple[str, str]
"""A layer's id and the id of one of its outputs."""


@dataclass(slots=True)
class Output:
    """One output of a layer: its type as the file names it, its axes, the names of its tensor."""

    precision: str
    axes: tuple[int | None, ...]
    names: tuple[str, ...]

    @property
    def elements(self) -> int:
        """How many numbers it holds for one item; free axes count as 1."""
        return prod(axis or 1 for axis in self.axes)


@dataclass(slots=True)
class IrLayer:
    """One layer.

    Attributes:
        kind: `Convolution` and the like; `Parameter` and `Result` are inputs and outputs.
        data: its attributes as the file has them.
        outputs: by the id of the port.
        inputs: the ports that feed it, in order.
    """

    id: str
    name: str
    kind: str
    data: Mapping[str, str]
    outputs: dict[str, Output] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)


@dataclass(frozen=True)
class OpenVinoModel:
    """The XML of a model: its layers, and the texts about it.

    Attributes:
        path: of the XML; `weights` is the file beside it.
        xml: its bytes.
        version: of the format.
        layers: by id, in the order of the file.
        info: texts of `rt_info`, by the path of their names: `model_info/labels`.
    """

    path: Path
    xml: bytes
    version: int
    layers: Mapping[str, IrLayer]
    info: Mapping[str, str]

    @property
    def weights(self) -> Path:
        """The file with the numbers."""
        return self.path.with_suffix(".bin")

    @property
    def inputs(self) -> list[TensorSpec]:
        """The tensors to feed, in the order of the file."""
        found = []
        for layer in self._of_kind("Parameter"):
            output = next(iter(layer.outputs.values()), None)
            found.append(self._spec(layer, output))
        return found

    @property
    def outputs(self) -> list[TensorSpec]:
        """The results, in the order of the file."""
        found = []
        for layer in self._of_kind("Result"):
            if not layer.inputs:
                raise self.error(f"layer {layer.name!r} is an output of nothing")
            source, port = layer.inputs[0]
            found.append(self._spec(self.layers[source], self.layers[source].outputs[port]))
        return found

    @property
    def tensor_names(self) -> dict[Port, str]:
        """A name for each port, all different."""
        names: dict[Port, str] = {}
        taken: set[str] = set()
        for layer in self.layers.values():
            for port, output in layer.outputs.items():
                name = name_of(layer, output)
                if name in taken:
                    name = f"{name}:{layer.id}:{port}"
                taken.add(name)
                names[layer.id, port] = name
        return names

    def _of_kind(self, kind: str) -> Iterator[IrLayer]:
        return (layer for layer in self.layers.values() if layer.kind == kind)

    def _spec(self, layer: IrLayer, output: Output | None) -> TensorSpec:
        if output is None:
            raise self.error(f"layer {layer.name!r} has no output")
        dtype = DTYPES.get(output.precision.upper())
        if dtype is None:
            raise self.error(f"layer {layer.name!r} is a tensor of {output.precision}")
        return TensorSpec(name_of(layer, output), dtype, output.axes)

    def error(self, problem: str) -> ModelError:
        """Make an error about the file."""
        return ModelError(problem, where=str(self.path), expected=KIND, fix="convert it again: ovc")


def name_of(layer: IrLayer, output: Output) -> str:
    """Name the tensor of an output: its first name in order, as the runtime lists them."""
    return min(output.names, default=layer.name)


def read_openvino(path: Path) -> OpenVinoModel:
    """Read the XML of a model.

    Raises:
        ModelError: it cannot be read, is damaged, too large, or of another version.
    """
    return parse_openvino(read_model_file(path, KIND, max_bytes=MAX_XML_BYTES), path)


def parse_openvino(data: bytes, path: Path) -> OpenVinoModel:
    """`read_openvino` of the bytes of an XML that stands at `path`."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ModelError("it declares entities, which no model does", where=str(path))
    import xml.etree.ElementTree as ElementTree

    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise foreign(data, path, KIND, str(error)) from error
    if root.tag != "net" or root.get("version") not in _VERSIONS:
        raise ModelError(
            f"it is <{root.tag}> of version {root.get('version')}",
            where=str(path),
            expected="<net> of version 10 or 11, which OpenVINO has written since 2020",
            fix="convert it again: ovc",
        )
    version = int(root.get("version", ""))
    model = OpenVinoModel(path, data, version, _layers(root, path), dict(_texts(root)))
    if not model.inputs or not model.outputs:
        raise model.error("it has no inputs or no outputs")
    return model


def _layers(root: Element, path: Path) -> dict[str, IrLayer]:
    layers: dict[str, IrLayer] = {}
    for element in root.iterfind("layers/layer"):
        data = element.find("data")
        layer = IrLayer(
            element.get("id", ""),
            element.get("name", ""),
            element.get("type", ""),
            {} if data is None else dict(data.attrib),
        )
        for end in element.iterfind("output/port"):
            layer.outputs[end.get("id", "")] = _output(end)
        layers[layer.id] = layer
        if len(layers) > _MOST_LAYERS:
            raise ModelError("it has too many layers", where=str(path))
    edges: dict[str, list[tuple[int, Port]]] = {}
    for edge in root.iterfind("edges/edge"):
        source = str(edge.get("from-layer")), str(edge.get("from-port"))
        target, port = str(edge.get("to-layer")), str(edge.get("to-port"))
        if target not in layers or source[0] not in layers or not port.isdigit() or (
            source[1] not in layers[source[0]].outputs
        ):  # fmt: skip
            raise ModelError(f"an edge joins {source} and {target}, which are not there",
                             where=str(path), expected=KIND)  # fmt: skip
        edges.setdefault(target, []).append((int(port), source))
    for target, sources in edges.items():
        layers[target].inputs = [source for _, source in sorted(sources)]
    return layers


def _output(port: Element) -> Output:
    axes: list[int | None] = []
    for dim in port.iterfind("dim"):
        text = (dim.text or "").strip()
        axes.append(int(text) if text.isdigit() and len(text) < 10 else None)
    names = port.get("names", "").replace("\\,", "\0").split(",")
    return Output(
        port.get("precision", "FP32"),
        tuple(axes),
        tuple(name.replace("\0", ",") for name in names if name),
    )


def _texts(root: Element) -> Iterator[tuple[str, str]]:
    """Texts of `rt_info`, to any depth, by the path of their names."""
    info = root.find("rt_info")
    stack = [] if info is None else [(child, "") for child in info]
    while stack:
        element, above = stack.pop()
        name = element.get("name") if element.tag == "info" else element.tag
        path = f"{above}/{name}".lstrip("/")
        if (value := element.get("value")) is not None:
            yield path, value
        stack += [(child, path) for child in element]

"""Facts of an ONNX file: graph, metadata, names of nodes, shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace._core.formats.sniff import is_openvino
from headrace.infer.recognise.sidecars import texts_beside
from headrace.infer.recognise.stem import PASSIVE, Stem, stem_of
from headrace.network import network_from_onnx
from headrace.network.ir import ir
from headrace.network.network import Network
from headrace.network.onnx_file import model_bytes, network_from_onnx_bytes
from headrace.network.shapes.graph_shapes import ShapeView
from headrace.network.tensor_spec import TensorSpec

_CLASS = re.compile(r"\b((?:torchvision|timm|ultralytics|mmdet|yolox|transformers)\.[\w.]+)")
_WRITERS = {"author", "stride", "libreyolo_version"}
"""Keys of programs that write all there is to know into the model."""


@dataclass(frozen=True)
class FileEvidence:
    """The facts of one file; nothing here is a conclusion.

    Attributes:
        path: of the file.
        network: the graph.
        stem: the beginning of the file.
        producer: name and version of the exporting program.
        input: the first input, as declared.
        more_inputs: the others.
        is_outline: the graph has the operators and no more: shapes cannot be derived from it.
    """

    path: Path
    network: Network
    stem: Stem
    producer: str
    input: TensorSpec
    more_inputs: tuple[TensorSpec, ...] = field(default=())
    is_outline: bool = False

    @classmethod
    def read(cls, path: Path) -> FileEvidence:
        """Read a file.

        Raises:
            ModelError: it is no usable ONNX file.
        """
        if is_openvino(path):
            return cls._of_openvino(path)
        data = model_bytes(path)  # once for both readers: a large file takes its time
        network = network_from_onnx_bytes(data, path, of_images=True)
        model = network.model
        stem = stem_of(memoryview(data), path) or Stem()
        if not _WRITERS & stem.metadata.keys():  # what lies beside is of another model
            stem.metadata = texts_beside(path) | stem.metadata
        for names in network.class_maps.names.values():
            stem.metadata = {"class_names": json.dumps(names)} | stem.metadata
        producer = f"{model.producer_name or ''} {model.producer_version or ''}".strip()
        first, *more = network.inputs
        return cls(path, network, stem, producer, first, tuple(more))

    @classmethod
    def _of_openvino(cls, path: Path) -> FileEvidence:
        """Read an OpenVINO model by its outline, which no runtime takes."""
        from headrace.infer.recognise.openvino_info import openvino_texts
        from headrace.network.openvino.outline import outline_of
        from headrace.network.openvino.reader import read_openvino

        network_from_onnx(path)  # it says what is wrong with the files
        model = read_openvino(path)
        outline = outline_of(model)
        stem = stem_of(memoryview(outline.SerializeToString()), path) or Stem()
        stem.metadata = openvino_texts(model)
        network = Network(ir.from_proto(outline), path=path)
        producer = f"OpenVINO {model.info.get('Runtime_version', '')}".strip()
        first, *more = network.inputs
        return cls(path, network, stem, producer, first, tuple(more), is_outline=True)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Texts of the file's `metadata_props`, and of files beside it."""
        return self.stem.metadata

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """As declared; see `outputs_for` for those of one image size."""
        return self.network.outputs

    @cached_property
    def takes_one_image(self) -> bool:
        """Whether the image in the file has no batch axis; see `headrace.network.one_image`."""
        inside = f"{self.input.name}/of_one_image"
        return any(str(out.name) == inside for node in self.nodes[:1] for out in node.outputs)

    @cached_property
    def nodes(self) -> list[Any]:
        """All nodes of the main graph, in order."""
        return list(self.network.model.graph)

    @cached_property
    def operators(self) -> frozenset[str]:
        """Names of the operators."""
        return frozenset(node.op_type for node in self.nodes)

    @cached_property
    def ends(self) -> dict[str, str]:
        """Output -> the operator that computes its values (not one that only reorders them)."""
        op_types = {}
        for value in self.network.model.graph.outputs:
            node = value.producer()
            while node is not None and node.op_type in PASSIVE and node.inputs:
                source = node.inputs[0]
                node = None if source is None else source.producer()
            op_types[str(value.name)] = "" if node is None else str(node.op_type)
        return op_types

    @cached_property
    def joined(self) -> dict[str, tuple[str, ...]]:
        """Output -> the operators behind the parts that a Concat joins into it, in order."""
        parts = {}
        for value in self.network.model.graph.outputs:
            node = value.producer()
            if node is not None and node.op_type == "Concat":
                sources = [x.producer() for x in node.inputs if x is not None]
                ops = ("" if source is None else str(source.op_type) for source in sources)
                parts[str(value.name)] = tuple(ops)
        return parts

    @cached_property
    def module_classes(self) -> tuple[str, ...]:
        """Python classes of the modules that newer PyTorch exports write beside their nodes."""
        names: dict[str, None] = {}
        for node in self.nodes[:200]:
            text = node.metadata_props.get("pkg.torch.onnx.class_hierarchy", "")
            names |= dict.fromkeys(_CLASS.findall(str(text)))
        return tuple(names)

    @cached_property
    def node_names(self) -> frozenset[str]:
        """First two parts of the names that PyTorch and Keras give nodes: `model.22/cv3`."""
        names = (str(node.name or "").strip("/") for node in self.nodes)
        return frozenset("/".join(name.split("/")[:2]) for name in names if name)

    def outputs_for(self, dims: tuple[int, ...]) -> tuple[TensorSpec, ...]:
        """The outputs for one item of this input shape (without the batch).

        Axes that stay free are None; the first axis of each output is the batch.
        """
        fixed = all(isinstance(d, int) for o in self.outputs for d in o.shape[1:])
        if fixed or self.is_outline:
            return self.outputs
        batch = self.input.shape[0] if self.input.shape else None
        view = ShapeView(
            self.network.graph_proto(),
            {self.input.name: (batch if isinstance(batch, int) else 1, *dims)},
        )
        specs = []
        for spec, known in zip(
            self.outputs, view.known([o.name for o in self.outputs]), strict=True
        ):
            axes = known.axes if known is not None else None
            specs.append(spec if axes is None else TensorSpec(spec.name, spec.dtype, axes))
        return tuple(specs)

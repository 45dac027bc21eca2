"""Scores as maps of names to numbers: the tables behind them, and the names of their columns.

scikit-learn's converters and Azure Custom Vision end classifiers in ZipMap, which writes one map
for each item. Plain tables say the same, and are what runtimes, configs and parsers take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TypeProto

_DOMAIN = "ai.onnx.ml"


@dataclass(frozen=True, slots=True)
class ClassMaps:
    """The maps that a model wrote.

    Attributes:
        names: output -> names of the classes, in the order of its columns.
        texts: outputs of texts, as names of classes, that were left out.
    """

    names: dict[str, tuple[str, ...]]
    texts: tuple[str, ...] = ()


def without_maps(proto: ModelProto, *, of_images: bool = False) -> ClassMaps:
    """Make each output of ZipMap the table (items, classes) float32 that the node reads.

    Args:
        proto: changed in place.
        of_images: outputs of texts are left out where others remain: parsers read numbers.

    Returns:
        The maps, and the texts that were left out.
    """
    from onnx import TensorProto, helper

    graph = proto.graph
    ends = {value.name: value for value in graph.output}
    names = {}
    for node in graph.node:
        if (node.op_type, node.domain) != ("ZipMap", _DOMAIN) or node.output[0] not in ends:
            continue
        output = node.output[0]
        names[output] = _labels(node)
        table = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", len(names[output])])
        ends[output].CopyFrom(table)
        node.CopyFrom(helper.make_node("Identity", list(node.input), [output], node.name))
    texts = _without_texts(graph) if of_images else ()
    if names and not any(entry.domain in ("", "ai.onnx") for entry in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid("", 13))
    return ClassMaps(names, texts)


def _without_texts(graph: GraphProto) -> tuple[str, ...]:
    kept = [value for value in graph.output if not _is_text(value.type)]
    texts = tuple(value.name for value in graph.output if _is_text(value.type))
    if not (texts and kept):
        return ()
    kept = [type(value).FromString(value.SerializeToString()) for value in kept]
    del graph.output[:]
    graph.output.extend(kept)
    return texts


def _labels(node: NodeProto) -> tuple[str, ...]:
    for attribute in node.attribute:
        if attribute.name == "classlabels_strings":
            return tuple(text.decode(errors="replace") for text in attribute.strings)
        if attribute.name == "classlabels_int64s":
            return tuple(map(str, attribute.ints))
    return ()


def _is_text(kind: TypeProto) -> bool:
    from onnx import TensorProto

    return kind.HasField("tensor_type") and kind.tensor_type.elem_type == TensorProto.STRING

"""A network in another precision, all of it written in the graph.

TensorRT 11 knows no precision flags: types come from the network. These graphs hold
everything, so the same file builds on TensorRT 10 and 11 and runs on ONNX Runtime and OpenVINO.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace._core.near import did_you_mean, near_names
from headrace._core.text import counted
from headrace.engine.precision.choice import TensorChoice
from headrace.engine.precision.half import Kind, to_half
from headrace.engine.precision.prepare import (
    PrecisionReport,
    Proto,
    captured_names,
    fold_batch_norms,
    prepare,
)
from headrace.engine.precision.qdq import MIN_OPSET, Layout, to_qdq
from headrace.network.graph_builder import fresh
from headrace.network.ir import ir
from headrace.network.network import Network

if TYPE_CHECKING:
    from onnx import GraphProto


def cast_outputs(
    proto: Proto, types: Mapping[str, str], scales: Mapping[str, float], *, where: str | None
) -> list[Finding]:
    """Give outputs of a model other types, in place, by casts.

    An `int8` output is quantised with the scale of its tensor, as TensorRT does.

    Returns:
        A warning for each output that keeps its type.

    Raises:
        EngineError: the model has no such output.
    """
    graph = proto.graph
    outputs = {value.name: value for value in graph.output}
    if unknown := [name for name in types if name not in outputs]:
        raise EngineError(
            f"output-io-formats: the model has no output {', '.join(unknown)}",
            where=where,
            expected=f"one of {', '.join(outputs)}",
        )
    taken = {n for node in graph.node for n in (*node.input, *node.output)} | set(outputs)
    taken |= {tensor.name for tensor in graph.initializer} | {v.name for v in graph.input}
    taken |= {node.name for node in graph.node}
    numbers = {
        "fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16,
        "int32": TensorProto.INT32, "int8": TensorProto.INT8,
    }  # fmt: skip
    notices = []
    for name, kind in types.items():
        tensor = outputs[name].type.tensor_type
        have, want = tensor.elem_type, numbers[kind]
        if have == want:
            continue
        scale = scales.get(name, 0.0)
        if want == TensorProto.INT8 and not (have == TensorProto.FLOAT and scale > 0):
            text = f"output-io-formats: {name} has no scale for int8 in a calibration table"
            text += "; it keeps its type"
            notices.append(Finding("output-formats", "warning", text, where))
            continue
        _end_with(graph, name, want, scale, taken)
        tensor.elem_type = want
    return notices


def _end_with(graph: GraphProto, name: str, want: int, scale: float, taken: set[str]) -> None:
    """Give the tensor `name` another type, and its old one another name."""
    inner = fresh(f"{name}_inner", taken)
    there = False
    for node in graph.node:
        for index, used in enumerate(node.output):
            if used == name:
                node.output[index], there = inner, True
        for index, used in enumerate(node.input):
            if used == name:
                node.input[index] = inner
    if not there:  # an input or weight that is put out as it is
        for node in graph.node:
            node.input[:] = [name if used == inner else used for used in node.input]
        raise EngineError(f"output-io-formats: {name!r} is no result of a layer")
    label = fresh(f"{name}_cast", taken)
    if want != TensorProto.INT8:
        graph.node.append(helper.make_node("Cast", [inner], [name], label, to=want))
        return
    parts = []
    for suffix, value in (("scale", np.float32(scale)), ("zero", np.int8(0))):
        constant = numpy_helper.from_array(np.asarray(value), fresh(f"{name}_{suffix}", taken))
        graph.initializer.add().CopyFrom(constant)
        parts.append(constant.name)
    graph.node.append(helper.make_node("QuantizeLinear", [inner, *parts], [name], label))


ExportPrecision = Literal["fp32", "fp16", "bf16", "int8", "best"]

# Convolutions know BF16 from opset 22 on, Q/DQ pairs FP16 from 19 on.
_OPSETS = {"fp32": 0, "fp16": 0, "bf16": 22, "int8": MIN_OPSET, "best": 19}
_NAMED = 5


@dataclass(slots=True)
class Exported:
    """A network in another precision, and a report about it.

    Attributes:
        network: the graph in the new precision; its inputs and outputs keep names and types.
        precision: the precision asked for.
        converted: nodes that compute in the lower precision.
        kept: node -> reason of nodes that stay FP32 (`best`: that stay out of INT8).
        missing: tensors that need a scale and have none in the table.
        unused: tensors that the table names and the graph lacks.
        notices: the report in words.
    """

    network: Network
    precision: ExportPrecision
    converted: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    notices: list[Finding] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """The ONNX message, weights inside."""
        return bytes(self.network.to_proto().SerializeToString(deterministic=True))


def export(
    network: Network,
    precision: ExportPrecision,
    scales: Mapping[str, float] | None = None,
    *,
    keep: Collection[str] = (),
    pins: Mapping[str, str] = MappingProxyType({}),
    layout: Layout = "inputs",
    weight_bits: Literal[7, 8] = 8,
    unsigned: bool = False,
    skip_unknown: bool = False,
    tensors: Mapping[str, TensorChoice] = MappingProxyType({}),
    own_zeros: bool = False,
    fold: bool = False,
) -> Exported:
    """Write a precision into a network's graph; the given network is not changed.

    Args:
        network: FP32. Its own Q/DQ pairs, if it has some, stay and no others are made.
        precision: `int8` is INT8 with FP32 around it, `best` INT8 with FP16 around it.
        scales: activation -> scale, as in a calibration table; needed for int8 and best, and
            showing which activations leave the range of FP16.
        keep: names of nodes to leave in FP32.
        pins: node -> `fp32`, `fp16` or `int8`, whatever `precision` says.
        layout: see `to_qdq`.
        weight_bits: see `to_qdq`.
        unsigned: see `to_qdq`.
        skip_unknown: True gives a notice about names in `keep` and `pins` that are not in the
            graph; False refuses them.
        tensors, own_zeros: see `to_qdq`.
        fold: True makes batch normalisations a part of the convolutions before them, as runtimes on
            a GPU do, before weights are rounded; INT8 always does.

    Raises:
        EngineError: int8 without a scale that fits; `keep` names a node that is not there.
        ModelError: the model cannot be written, or not be brought to the opset it takes.
    """
    where = str(network.path) if network.path else None
    kept = {*keep, *(name for name, pin in pins.items() if pin == "fp32")}
    singles = {name for name, pin in pins.items() if pin == "fp16"}
    bytes_ = {name for name, pin in pins.items() if pin == "int8"}
    everywhere = precision in ("int8", "best")
    opset = max(
        _OPSETS[precision],
        _OPSETS["int8"] if bytes_ else 0,
        _OPSETS["best"] if (everywhere and singles) or (bytes_ and precision == "fp16") else 0,
    )
    proto = prepare(network.to_proto(), opset=opset, where=where)
    done = Exported(network, precision)
    if not skip_unknown:
        require_nodes(proto, [*keep, *pins], where)
    elif unknown := _unknown_nodes(proto, [*keep, *pins]):
        text = f"a precision is given for layers that are not in the graph: {_some(unknown)}"
        done.notices.append(Finding("layer-precision", "warning", text, where))
    scales = scales or {}
    paired = any(node.op_type == "QuantizeLinear" for node in proto.graph.node)
    if everywhere or bytes_:
        if paired:
            text = "the model has Q/DQ pairs of its own: no others are made"
            done.notices.append(Finding("pairs-of-its-own", "info", text, where))
        else:
            only = None if everywhere else bytes_
            skip = kept | singles
            how = _How(layout, weight_bits, unsigned, tensors, own_zeros)
            proto = _to_int8(done, proto, scales, skip, only, how, where)
    half: Kind = "bf16" if precision == "bf16" else "fp16"
    if precision in ("fp16", "bf16", "best") or singles:
        ranges = {name: 127 * scale for name, scale in scales.items()}
        only = singles if precision in ("fp32", "int8") else None
        if fold and not singles:
            fold_batch_norms(proto)
        proto = prepare(proto)
        report = to_half(proto, half, keep=kept, only=only, ranges=ranges)
        _report_half(done, report, half, where)
    done.network = as_network(proto, network)
    return done


@dataclass(frozen=True, slots=True)
class _How:
    """Options of `to_qdq`."""

    layout: Layout
    weight_bits: Literal[7, 8]
    unsigned: bool
    tensors: Mapping[str, TensorChoice]
    own_zeros: bool


def _to_int8(
    done: Exported,
    proto: Proto,
    scales: Mapping[str, float],
    keep: Collection[str],
    only: Collection[str] | None,
    how: _How,
    where: str | None,
) -> Proto:
    if not any(s > 0 for s in scales.values()):
        raise EngineError(
            f"{done.precision if only is None else 'a layer in int8'} needs the scales of "
            "activations",
            where=where,
            fix="headrace calibrate CONFIG --images DIR writes them; int8-calib-file names them",
        )
    graph = proto.graph
    there = {v.name for v in graph.input} | {name for node in graph.node for name in node.output}
    folded = fold_batch_norms(proto)
    if folded:
        text = f"{folded} batch normalisation(s) folded into the convolutions before them"
        done.notices.append(Finding("layers-folded", "info", text, where))
    done.unused = tuple(name for name in scales if name not in there)
    proto, report = to_qdq(
        proto,
        scales,
        keep=keep,
        only=only,
        layout=how.layout,
        weight_bits=how.weight_bits,
        unsigned=how.unsigned,
        tensors=how.tensors,
        own_zeros=how.own_zeros,
    )
    _report_int8(done, report, len(scales), where)
    if only is not None:
        others = [name for name in only if name not in (*report.converted, *report.kept)]
        if others:
            text = f"pinned to int8, but without weights of their own: {_some(others)}"
            text += "; they stay as they are"
            done.notices.append(Finding("layer-precision", "warning", text, where))
    return proto


def activation_names(proto: Proto) -> list[str]:
    """List the float tensors of a prepared model that are no weights, in the graph's order."""
    graph = proto.graph
    weights = {t.name for t in graph.initializer}
    types = {
        v.name: v.type.tensor_type.elem_type
        for v in (*graph.input, *graph.value_info, *graph.output)
    }
    names = [v.name for v in graph.input]
    names += [name for node in graph.node for name in node.output]
    return [n for n in names if n and n not in weights and types.get(n) == TensorProto.FLOAT]


def with_outputs(
    done: Exported, types: Mapping[str, str], scales: Mapping[str, float]
) -> list[Finding]:
    """Give the outputs of an exported network other types, see `cast_outputs`."""
    where = str(done.network.path) if done.network.path else None
    proto = done.network.to_proto()
    notices = cast_outputs(proto, types, scales, where=where)
    done.network = as_network(proto, done.network)
    return notices


def require_nodes(proto: Proto, names: Collection[str], where: str | None) -> None:
    """Check that a prepared graph has nodes of these names, to keep in FP32.

    Raises:
        EngineError: it lacks one; names near it are the advice.
    """
    unknown = _unknown_nodes(proto, names)
    if unknown:
        raise EngineError(
            f"the graph has no node {unknown[0]!r} to keep in FP32",
            where=where,
            fix=did_you_mean(*near_names(unknown[0], [node.name for node in proto.graph.node])),
        )


def _unknown_nodes(proto: Proto, names: Collection[str]) -> list[str]:
    there = {node.name for node in proto.graph.node}
    return [name for name in names if name not in there]


def as_network(proto: Proto, old: Network) -> Network:
    """The network of a changed graph, still known by the files of the old one."""
    network = Network(
        ir.from_proto(proto),
        path=old.path,
        size_bytes=old.size_bytes,
        sha256=old.sha256,
        external_locations=old.external_locations,
    )
    network.made_from, network.recipe = old.made_from, old.recipe
    network.plugins, network.implicit_batch = old.plugins, old.implicit_batch
    return network


def _report_int8(done: Exported, report: PrecisionReport, entries: int, where: str | None) -> None:
    done.converted, done.kept = tuple(report.converted), dict(report.kept)
    done.missing = tuple(report.missing)
    total = len(report.converted) + len(report.kept)
    text = f"{len(report.converted)} of {total} layers with weights compute in INT8"
    done.notices.append(Finding("int8-layers", "info", text, where))
    if report.missing:
        text = f"no scale for {len(report.missing)} tensor(s) of the graph: {_some(report.missing)}"
        text += "; what they feed stays FP32"
        done.notices.append(Finding("table-of-other-model", "warning", text, where))
    if done.unused:
        text = f"{len(done.unused)} of {entries} calibrated tensors are not in the graph"
        level: Literal["info", "warning"] = "warning" if report.missing else "info"
        text += f": {_some(done.unused)}"
        done.notices.append(Finding("table-of-other-model", level, text, where))


def _report_half(done: Exported, report: PrecisionReport, half: Kind, where: str | None) -> None:
    word = half.upper()
    if done.precision in ("fp16", "bf16"):
        done.converted, done.kept = tuple(report.converted), dict(report.kept)
    text = f"{counted(len(report.converted), 'node')} {_be(report.converted)} {word}"
    if report.kept:
        text += f", {len(report.kept)} stay FP32"
        reasons = [f"{name}: {why}" for name, why in report.kept.items()]
        text += f" ({'; '.join(reasons[:_NAMED])}{'; …' if len(reasons) > _NAMED else ''})"
    done.notices.append(Finding("layers-precision", "info", text, where))
    lost = {name: share for name, share in report.vanished.items() if share > 0.01}
    if lost:
        text = f"more than 1 % of the values of {len(lost)} weight(s) become 0 in {word}"
        done.notices.append(Finding("weights-lost", "info", f"{text}: {_some(list(lost))}", where))


def _be(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _some(names: Collection[str]) -> str:
    first = ", ".join(repr(n) for n in list(names)[:_NAMED])
    return f"{first}, …" if len(names) > _NAMED else first


class Variants:
    """Quantises once; a variant takes the FP32 inputs of layers that are kept.

    Attributes:
        layers: name -> operator of the layers that can compute in INT8, in the graph's order.
    """

    def __init__(
        self,
        network: Network,
        scales: Mapping[str, float],
        *,
        weight_bits: Literal[7, 8] = 8,
        unsigned: bool = False,
        tensors: Mapping[str, TensorChoice] = MappingProxyType({}),
        own_zeros: bool = False,
    ) -> None:
        """Quantise all layers that can be; the options are those of `to_qdq`.

        Raises:
            EngineError, ModelError: as `export` with int8.
        """
        where = str(network.path) if network.path else None
        plain = prepare(network.to_proto(), opset=MIN_OPSET, where=where)
        fold_batch_norms(plain)
        self._network = network
        self._full, report = to_qdq(
            plain,
            scales,
            weight_bits=weight_bits,
            unsigned=unsigned,
            tensors=tensors,
            own_zeros=own_zeros,
        )
        chosen = set(report.converted)
        self._plain = {n.name: n for n in plain.graph.node if n.name in chosen}
        self._weights = {t.name: t for t in plain.graph.initializer}
        self.layers = {n.name: n.op_type for n in plain.graph.node if n.name in chosen}

    def network(self, keep: Collection[str] = ()) -> Network:
        """Make the network with all layers in INT8 but those of `keep`."""
        model = onnx.ModelProto()
        model.CopyFrom(self._full)
        graph = model.graph
        there = {t.name for t in graph.initializer}
        for node in graph.node:
            if node.name not in keep or node.name not in self._plain:
                continue
            original = self._plain[node.name]
            node.input[:] = original.input
            for name in original.input:
                if name in self._weights and name not in there:
                    graph.initializer.add().CopyFrom(self._weights[name])
                    there.add(name)
        _prune(graph)
        return as_network(model, self._network)


def _prune(graph: GraphProto) -> None:
    """Drop nodes and weights that no output needs."""
    needed = {value.name for value in graph.output} | captured_names(graph)
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if needed.isdisjoint(node.output):
            del graph.node[index]
        else:
            needed.update(node.input)
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in needed:
            del graph.initializer[index]

"""Graphs of a network to build: one per precision, made for the runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headrace._core.errors import EngineError, ModelError
from headrace._core.findings import Finding
from headrace.engine.plan_header import Precision
from headrace.engine.precision.capability import (
    fast_fp16,
    own_zeros,
    rounds_fp16,
    unsigned_int8,
    weight_bits,
)
from headrace.engine.precision.explicit import as_network, export, with_outputs
from headrace.engine.precision.prepare import prepare
from headrace.engine.precision.rounded import is_rounding, round_halves
from headrace.engine.precision.rules import PrecisionRules
from headrace.network.ir import ir
from headrace.network.network import Network


@dataclass(frozen=True, slots=True)
class PrecisionGraph:
    """A graph to build."""

    network: Network
    precision: Precision
    runtimes: tuple[str, ...]
    weight_bits: Literal[7, 8] = 8
    notices: tuple[Finding, ...] = ()


def lower(
    network: Network, precision: Precision, rules: PrecisionRules, runtimes: Sequence[str]
) -> PrecisionGraph:
    """Write a precision, pinned layers and types of outputs into a network.

    The runtimes take the same INT8, see `weight_bits` and `unsigned_int8`.

    Raises:
        EngineError, ModelError: as `export`; an output that is not there.
    """
    own = _pairs_of_its_own(network, runtimes)
    rounds = rounds_fp16(runtimes[0])
    if precision == "fp32" and not rules.pins and not rules.outputs:
        return PrecisionGraph(network, precision, tuple(runtimes), notices=own)
    bits: Literal[7, 8] = 8
    if rules.needs_table(precision):
        bits = weight_bits(runtimes[0])
    done = export(
        network,
        precision,
        rules.scales,
        keep=rules.keep,
        pins=rules.pins,
        weight_bits=bits,
        unsigned=unsigned_int8(runtimes[0]),
        skip_unknown=True,
        tensors=rules.tensors,
        own_zeros=own_zeros(runtimes[0]),
        fold=rounds,
    )
    notices = list(done.notices)
    if bits == 7:
        text = "INT8 weights have 7 bits: this CPU adds products of bytes in 16 bits"
        notices.append(Finding("weight-bits", "info", text))
    if rules.outputs:
        notices += with_outputs(done, rules.outputs, rules.scales)
    lowered = done.network
    if precision in ("fp16", "best") or "fp16" in rules.pins.values():
        lowered, how = _computed(lowered, runtimes[0])
        halves = [n for n in notices if n.code == "layers-precision"]
        notices = [n.changed(suffix=how) if n in halves else n for n in notices]
    named = tuple(_named(network, notice) for notice in notices)
    return PrecisionGraph(lowered, precision, tuple(runtimes), bits, (*own, *named))


def _computed(network: Network, runtime: str) -> tuple[Network, str]:
    """The graph as `runtime` takes FP16, and how it computes it, as the end of a sentence."""
    if fast_fp16(runtime):
        return network, ""
    if not rounds_fp16(runtime):
        text = f"; {runtime} computes them in FP32 here and rounds nothing in between, --backend "
        return network, f"{text}onnxruntime rounds"
    proto = prepare(network.to_proto())
    if not round_halves(proto):
        return network, f"; {runtime} computes them in FP32"
    text = f"; {runtime} computes them in FP32 here and rounds each result to FP16"
    return as_network(proto, network), text


def _pairs_of_its_own(network: Network, runtimes: Sequence[str]) -> tuple[Finding, ...]:
    bad = [r for r in runtimes if unsigned_int8(r)]
    if not bad or all(node.op_type != "QuantizeLinear" for node in network.model.graph):
        return ()
    text = f"{bad[0]} computes INT8 wrongly that is not made for it (signed activations behind a "
    text += "Concat; 8-bit weights without VNNI): --backend onnxruntime computes the model's own "
    text += "Q/DQ pairs as they stand"
    return (_named(network, Finding("precision-not-used", "warning", text)),)


def graph_precision(network: Network) -> Precision:
    """Find the lowest precision in a network's graph; `best` where INT8 and FP16 meet."""
    graph = network.model.graph
    types: set[ir.DataType | None] = set()
    for value in graph.initializers.values():
        types.add(value.dtype if value.const_value is None else value.const_value.dtype)
    operators = set()
    for node in graph:
        operators.add(node.op_type)
        if node.op_type != "Cast":  # of an input or output
            types |= {value.dtype for value in node.outputs}
        elif is_rounding(node):
            types.add(ir.DataType.FLOAT16)
    half = ir.DataType.FLOAT16 in types
    if operators & {
        "DequantizeLinear",
        "QLinearConv",
        "QLinearMatMul",
        "ConvInteger",
        "MatMulInteger",
    }:
        return "best" if half else "int8"
    if half:
        return "fp16"
    return "bf16" if ir.DataType.BFLOAT16 in types else "fp32"


def lower_or_fp32(
    network: Network, precision: Precision, rules: PrecisionRules, runtimes: Sequence[str]
) -> PrecisionGraph:
    """`lower`, or FP32 with a warning where the precision is not possible.

    Raises:
        EngineError, ModelError: FP32 is not possible either.
    """
    try:
        return lower(network, precision, rules, runtimes)
    except (EngineError, ModelError) as error:
        if precision == "fp32" and not rules.pins:
            raise
        return in_fp32(network, precision, rules, runtimes, error)


def in_fp32(
    network: Network,
    precision: Precision,
    rules: PrecisionRules,
    runtimes: Sequence[str],
    error: EngineError | ModelError,
) -> PrecisionGraph:
    """Make the graph in FP32 where another precision failed.

    Source: config facts 5.3, the retry without the flag.
    """
    what = precision.upper() if precision != "fp32" else "layer-device-precision"
    at = f"{error.where}: " if error.where and "node" in error.where else ""
    text = f"{what} cannot be built: {at}{error:brief}; FP32 is built"
    plain = lower(network, "fp32", replace(rules, pins={}), runtimes)
    warning = _named(network, Finding("precision-not-used", "warning", text))
    return replace(plain, notices=(warning, *plain.notices))


def tuned_precisions(
    precision: Precision, rules: PrecisionRules, runtimes: Sequence[str]
) -> list[tuple[Precision, tuple[str, ...]]]:
    """List the precisions that a tuner compares, and the runtimes to try each on.

    `best` stands for FP32, INT8 if there are scales, and FP16 around both where it is computed as
    such. Runtimes that want INT8 in another layout, or FP16's roundings, get a graph of
    their own.
    """
    if precision != "best":
        return [(precision, part) for part in alike(precision, runtimes)]
    quick = tuple(r for r in runtimes if fast_fp16(r))
    chosen: list[tuple[Precision, tuple[str, ...]]] = [("fp32", tuple(runtimes))]
    if quick:
        chosen.append(("fp16", quick))
    if rules.scales:
        chosen += [("int8", part) for part in alike("int8", runtimes)]
        chosen += [("best", part) for part in alike("best", quick)]
    return chosen


def alike(precision: Precision, runtimes: Sequence[str]) -> list[tuple[str, ...]]:
    """Group runtimes by the graph that they take in a precision."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for runtime in runtimes:
        key: tuple[object, ...] = ()
        if precision in ("int8", "best"):
            key = (weight_bits(runtime), unsigned_int8(runtime), own_zeros(runtime))
        if precision in ("fp16", "best"):
            key = (*key, rounds_fp16(runtime))
        groups.setdefault(key, []).append(runtime)
    return [tuple(group) for group in groups.values()]


def _named(network: Network, notice: Finding) -> Finding:
    # the name alone: the notice is kept in the plan, and the model may be moved
    return replace(notice, where=network.path.name if network.path else None)

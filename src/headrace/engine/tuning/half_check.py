"""FP16 tried on images: the first layer that it cannot hold, and the noise of the outputs.

Two graphs run side by side on the CPU: one in FP32, and one with FP16's roundings behind each
layer. Of each layer only sums and largest values are put out, so the trial takes little memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from headrace.engine.backends import DEFAULT_BACKEND, RunnerOptions, get_backend
from headrace.engine.precision.explicit import Exported
from headrace.engine.precision.half import LARGEST_FP16
from headrace.engine.precision.prepare import Proto, prepare
from headrace.engine.precision.rounded import ROUNDED_LATER, round_halves, rounded_layers
from headrace.engine.tuning.output_difference import NOISE_DB, noise_db
from headrace.network.graph_builder import fresh
from headrace.network.network import Network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from onnx import TypeProto

    from headrace._core.types import Array

ENOUGH_DB = NOISE_DB["fp16"]
_TINY = 1e-6  # tensors with nothing above it have less than 4 bits in FP16
_SHRUNK = 0.5  # of the sum of a layer's values: so much is no rounding


@dataclass(frozen=True, slots=True)
class HalfFault:
    """The first layer with results that FP16 does not hold.

    Attributes:
        layer, operator, tensor: the node, and its output.
        largest: greatest absolute value of the tensor in FP32; NaN if it is not known.
        share: sum of absolute values in FP16 by that in FP32; infinite or NaN after an overflow.
    """

    layer: str
    operator: str
    tensor: str
    largest: float
    share: float

    @property
    def overflows(self) -> bool:
        """True if values became infinite or NaN, False if they became 0."""
        return not math.isfinite(self.share)


@dataclass(slots=True)
class HalfCheck:
    """The effect of FP16 on a network, seen on some images.

    Attributes:
        images: how many.
        fault: the first layer that lost its values; None if none did.
        broken: outputs with NaN or infinite values that FP32 does not have.
        decibels: least signal to noise of each float output, of its finite values.
        keep: layers that are left in FP32 where ranges say so; with them the outputs were as in
            `kept_decibels`. Empty if that was not tried or does not help.
    """

    images: int
    fault: HalfFault | None = None
    broken: tuple[str, ...] = ()
    decibels: Mapping[str, float] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    kept_decibels: float = math.nan

    @property
    def harmless(self) -> bool:
        """True if outputs are finite, and as near to FP32's as FP16 should be."""
        return not self.broken and min(self.decibels.values(), default=ENOUGH_DB) >= ENOUGH_DB


def check_half(
    network: Network,
    lower: Callable[[Mapping[str, float]], Exported],
    feeds: Sequence[Mapping[str, Array]],
    *,
    threads: int | None = 1,
) -> HalfCheck:
    """Run a network in FP32 and with FP16's roundings on the same inputs.

    Args:
        network: FP32, or with FP16 of its own; no plugins.
        lower: makes it FP16; its argument are known largest values of tensors, which leave the
            layers they touch in FP32.
        feeds: inputs by name, of the declared types, for a few runs.
        threads: of each run.

    Raises:
        EngineError: the runtime refuses the model or fails.
        ModelError: the model cannot be written.
    """
    plain = _Probed(network.to_proto(), feeds[0], threads, rounds=False)
    runs = [plain.run(feed) for feed in feeds]
    plain.close()
    check = HalfCheck(len(feeds))
    lowered = lower({})
    half = _Probed(_rounded(lowered), feeds[0], threads, rounds=True)
    trial = [half.run(feed) for feed in feeds]
    half.close()
    check.broken, check.decibels = _outputs(plain.outputs, runs, trial)
    check.fault = _first_fault(plain, half, runs, trial)
    if check.fault is None:
        return check
    largest = {n: max(run.largest[n] for run in runs) for n in plain.names}
    kept = lower({n: math.inf for n, v in largest.items() if v > LARGEST_FP16 or 0 < v < _TINY})
    rest = _Probed(_rounded(kept), feeds[0], threads, rounds=True)
    broken, decibels = _outputs(plain.outputs, runs, [rest.run(feed) for feed in feeds])
    rest.close()
    least = min(decibels.values(), default=ENOUGH_DB)
    if not broken and least >= ENOUGH_DB:
        check.keep = tuple(name for name in kept.kept if name not in lowered.kept)
        check.kept_decibels = least
    return check


def _rounded(lowered: Exported) -> Proto:
    proto = prepare(lowered.network.to_proto())
    round_halves(proto)
    return proto


@dataclass(slots=True)
class _Run:
    outputs: dict[str, Array]
    sums: dict[str, float]
    largest: dict[str, float]


class _Probed:
    """A graph with the sum and the largest value of tensors as further outputs."""

    def __init__(
        self, proto: Proto, feed: Mapping[str, Array], threads: int | None, *, rounds: bool
    ) -> None:
        _fix_shapes(proto, feed)
        proto = prepare(proto)
        graph = proto.graph
        self.outputs = [value.name for value in graph.output]
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.layers = rounded_layers(graph) if rounds else self.makers
        known = {v.name: v.type.tensor_type for v in (*graph.value_info, *graph.output)}
        taken = set(self.makers) | {tensor.name for tensor in graph.initializer}
        self.names = [name for name in self.layers if _has_values(known.get(name))]
        nodes = []
        for index, name in enumerate(self.names):
            positive = fresh(f"{name}_abs", taken)
            nodes.append(helper.make_node("Abs", [name], [positive]))
            for suffix, operator in (("sum", "ReduceSum"), ("largest", "ReduceMax")):
                out = fresh(f"{index}_{suffix}", taken)
                nodes.append(helper.make_node(operator, [positive], [out], keepdims=0))
                graph.output.append(helper.make_tensor_value_info(out, TensorProto.FLOAT, None))
        graph.node.extend(nodes)
        backend = get_backend(DEFAULT_BACKEND)
        options = RunnerOptions(threads, batched=False)
        self._runner = backend.open(proto.SerializeToString(), options)

    def run(self, feed: Mapping[str, Array]) -> _Run:
        values = self._runner.run(feed)
        count = len(self.outputs)
        probes = [float(value) for value in values[count:]]
        return _Run(
            dict(zip(self.outputs, values[:count], strict=True)),
            dict(zip(self.names, probes[::2], strict=True)),
            dict(zip(self.names, probes[1::2], strict=True)),
        )

    def close(self) -> None:
        self._runner.close()


def _fix_shapes(proto: Proto, feed: Mapping[str, Array]) -> None:
    """Give the inputs the shapes that they will have, so that those inside are known."""
    for value in proto.graph.input:
        if value.name not in feed:
            continue
        for axis, size in zip(
            value.type.tensor_type.shape.dim, feed[value.name].shape, strict=False
        ):
            axis.dim_value = size
    del proto.graph.value_info[:]


def _has_values(tensor: TypeProto.Tensor | None) -> bool:
    """True for floats of a known shape: those of another shape may be empty, as lists are."""
    if tensor is None or tensor.elem_type != TensorProto.FLOAT or not tensor.HasField("shape"):
        return False
    return all(axis.dim_value > 0 for axis in tensor.shape.dim)


def _outputs(
    names: Sequence[str], runs: Iterable[_Run], trial: Iterable[_Run]
) -> tuple[tuple[str, ...], dict[str, float]]:
    broken: dict[str, None] = {}
    decibels: dict[str, float] = {}
    for run, other in zip(runs, trial, strict=True):
        for name in names:
            expected, got = run.outputs[name], other.outputs[name]
            if expected.dtype.kind != "f" or expected.shape != got.shape or not expected.size:
                continue
            if not np.isfinite(got[np.isfinite(expected)]).all():
                broken[name] = None
            decibels[name] = min(decibels.get(name, math.inf), noise_db(got, expected))
    return tuple(broken), decibels


def _first_fault(
    plain: _Probed, half: _Probed, runs: Sequence[_Run], trial: Sequence[_Run]
) -> HalfFault | None:
    ends = {n.input[0]: n.output[0] for n in half.makers.values() if n.output[0] in half.outputs}
    for name in half.names:
        there = name if name in plain.makers else ends.get(name, name)
        for run, other in zip(runs, trial, strict=True):
            expected, got = run.sums.get(there, math.nan), other.sums[name]
            if math.isfinite(got) and not got < _SHRUNK * expected:
                continue
            if there in run.sums and not math.isfinite(expected):
                continue  # a mask
            layer = half.layers[name]
            source = half.makers.get(layer.input[0]) if layer.input else None
            if layer.op_type in ROUNDED_LATER and source is not None and source.op_type != "Cast":
                layer = source  # whose own result is rounded there
            share = got / expected if expected else math.nan
            largest = run.largest.get(there, math.nan)
            return HalfFault(layer.name, layer.op_type, there, largest, share)
    return None

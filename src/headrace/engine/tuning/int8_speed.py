"""INT8 timed beside FP32, so that it is built for the runtime that gains from it here.

Whether INT8 pays depends on the processor, the runtime and the layers. YOLOX-nano on a Xeon with
VNNI and AMX, processor time of one thread beside FP32's best: OpenVINO 0.86, with AMX 0.88 to 1.2,
ONNX Runtime 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from headrace._core.errors import EngineError, ModelError
from headrace._core.findings import Finding
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.plan_header import Precision, TacticRecord
from headrace.engine.precision.lower import PrecisionGraph, alike, lower
from headrace.engine.precision.rules import PrecisionRules
from headrace.engine.tactic import Tactic, with_and_without_tiles
from headrace.engine.tuning.tune import Progress, TuneOptions, Version, tune
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace._core.types import Array

_BUDGET_S = 240.0  # each try takes seconds; on a busy machine none may be left out for that


@dataclass(frozen=True, slots=True)
class Int8Speed:
    """The fastest INT8 of a model on this machine.

    Attributes:
        tactic: the way to run it.
        graph: the model as that runtime takes it.
        records: all tries, those of FP32 among them.
        notice: INT8 beside FP32, in words and as data.
    """

    tactic: Tactic
    graph: PrecisionGraph
    records: tuple[TacticRecord, ...]
    notice: Finding


def time_int8(
    network: Network,
    bake: Callable[[Network], bytes],
    inputs: Sequence[TensorSpec],
    precision: Precision,
    rules: PrecisionRules,
    *,
    items: int,
    image_range: tuple[float, float],
    runtimes: Sequence[str],
    progress: Progress | None = None,
    feeds: Mapping[str, Array] | None = None,
) -> Int8Speed | None:
    """Time a model in INT8 and in FP32 on some runtimes.

    The least processor time wins: with the same threads for all, other work on the machine does not
    decide.

    Args:
        network, bake, inputs, items, image_range, feeds: see `tune_precisions`.
        precision: `int8` or `best`.
        rules: with the scales.
        runtimes: those that may be built for.
        progress: called as it goes on.

    Returns:
        None where the model cannot be lowered, or nothing could be timed.
    """
    try:
        plain = lower(network, "fp32", replace(rules, pins={}), runtimes)
        small = [lower(network, precision, rules, part) for part in alike(precision, runtimes)]
    except (EngineError, ModelError):  # the build meets the same, and reports it
        return None
    graphs = [plain, *small]
    versions = [Version(g.precision, bake(g.network), g.runtimes) for g in graphs]
    low, high = image_range
    try:
        tuned = tune(
            versions[0].model,
            inputs,
            feeds if feeds is not None else sample_inputs(inputs, items, low=low, high=high),
            items=items,
            versions=versions,
            options=TuneOptions(
                budget_s=_BUDGET_S,
                objective="latency",
                tactics=with_and_without_tiles(runtimes),
                in_turns=False,
            ),
            progress=progress,
        )
    except EngineError:  # a runtime is not installed: the build says so
        return None
    able = [r for r in tuned.records if r.outcome in ("measured", "ok") and r.cpu_ms]
    ours = [r for r in able if r.precision == precision]
    plains = [r for r in able if r.precision == "fp32"]
    if not ours or not plains:
        return None
    best, other = (min(some, key=lambda r: r.cpu_ms or 0.0) for some in (ours, plains))
    records = tuple(msgspec.structs.replace(r, chosen=r is best) for r in tuned.records)
    graph = next(g for g in small if best.runtime in g.runtimes)
    untried = [f"{r.precision} on {r.tactic}" for r in tuned.records if r.outcome == "untried"]
    return Int8Speed(best.tactic, graph, records, _notice(best, other, untried))


def _notice(int8: TacticRecord, fp32: TacticRecord, untried: Sequence[str]) -> Finding:
    a, b = int8.cpu_ms or 0.0, fp32.cpu_ms or 0.0
    times = f"({a:.3g} and {b:.3g} ms of processor time a run)"
    if untried:
        times += f"; the time was up before {', '.join(untried)}"
    data = {"int8": str(int8.tactic), "int8_ms": a, "fp32": str(fp32.tactic), "fp32_ms": b,
            "untried": list(untried)}  # fmt: skip
    if a <= b:
        text = f"INT8 on {int8.tactic} is {b / a:.2f} times as fast as FP32 on {fp32.tactic} here "
        return Finding("int8-speed", "info", f"{text}{times}", data=data)
    text = f"INT8 on {int8.tactic} takes {a / b:.2f} times as long as FP32 on {fp32.tactic} here "
    return Finding("int8-slower", "info", f"{text}{times}: network-mode=0 computes FP32", data=data)

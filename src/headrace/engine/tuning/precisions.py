"""Tuning over precisions: each is a graph of its own, tried on the runtimes it was made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace._core.errors import EngineError, ModelError
from headrace._core.findings import Finding
from headrace.engine.backends import installed_backends
from headrace.engine.input_shapes import sample_inputs
from headrace.engine.plan_header import Precision
from headrace.engine.precision.capability import fast_bf16
from headrace.engine.precision.lower import (
    PrecisionGraph,
    graph_precision,
    lower,
    lower_or_fp32,
    tuned_precisions,
)
from headrace.engine.precision.rules import PrecisionRules
from headrace.engine.tuning.tune import Progress, TuneOptions, Version, tune
from headrace.engine.tuning.tuned import Tuning
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace._core.types import Array


def tune_precisions(
    network: Network,
    bake: Callable[[Network], bytes],
    inputs: Sequence[TensorSpec],
    precision: Precision,
    rules: PrecisionRules,
    *,
    items: int,
    image_range: tuple[float, float],
    options: TuneOptions,
    progress: Progress | None,
    feeds: Mapping[str, Array] | None = None,
    offer: Callable[[Network], bytes] | None = None,
) -> tuple[Tuning, PrecisionGraph, list[Finding]]:
    """Lower a network to every precision that may be used, and find the best way to run any.

    Where FP32 is asked for and the processor has BF16 arithmetic, BF16 is measured too, and
    offered in a notice; it is never the outcome. `bake` makes the ONNX message of a network,
    `offer` that of one that is only offered; None offers none. `precision` is the lowest that may
    be used. Runs have `items` images of noise in `image_range`, unless `feeds` are given.

    Returns:
        The outcome, the graph of its version, and what to tell.

    Raises:
        EngineError, ModelError: FP32 cannot be lowered; no candidate; a runtime is missing.
    """
    notices: list[Finding] = []
    names = list(options.runtimes or installed_backends())
    graphs: list[PrecisionGraph] = []
    for candidate, runtimes in tuned_precisions(precision, rules, names):
        if precision != "best":
            graphs.append(lower_or_fp32(network, candidate, rules, runtimes))
            continue
        try:
            graphs.append(lower(network, candidate, rules, runtimes))
        except (EngineError, ModelError) as error:
            if candidate == "fp32":
                raise
            text = f"{candidate} is not tried: {error:brief}"
            notices.append(
                Finding("precision-not-tried", "warning" if candidate == "int8" else "info", text)
            )
    versions = [Version(g.precision, bake(g.network), g.runtimes) for g in graphs]
    if precision == "fp32" and offer is not None:
        versions += _offers(network, offer, rules, names)
    low, high = image_range
    tuned = tune(
        versions[0].model if versions[0].precision == "fp32" else bake(network),
        inputs,
        feeds if feeds is not None else sample_inputs(inputs, items, low=low, high=high),
        items=items,
        versions=versions,
        options=options,
        progress=progress,
    )
    return tuned, graphs[tuned.version], notices + tuned.notices(options.objective)


def _offers(
    network: Network, bake: Callable[[Network], bytes], rules: PrecisionRules, names: Sequence[str]
) -> list[Version]:
    """BF16 of an FP32 network, for the runtimes that are faster with it."""
    quick = tuple(name for name in names if fast_bf16(name))
    if not quick or rules.pins or rules.outputs or graph_precision(network) != "fp32":
        return []
    with suppress(EngineError, ModelError):  # a node that has no BF16: nothing is offered
        lowered = lower(network, "bf16", rules, quick)
        return [Version("bf16", bake(lowered.network), quick, offered=True)]
    return []

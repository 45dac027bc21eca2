"""Tuning over precisions: each is a graph of its own, tried on the runtimes it was made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from noria._core.errors import EngineError, ModelError
from noria._core.notices import Notice
from noria.engine.backends import installed_backends
from noria.engine.input_shapes import sample_inputs
from noria.engine.plan_header import Precision, TacticRecord, TuningRecord
from noria.engine.precision.lower import PrecisionGraph, lower, lower_or_fp32, tuned_precisions
from noria.engine.precision.rules import PrecisionRules
from noria.engine.tuning.tactic import Tactic
from noria.engine.tuning.tune import Progress, TuneOptions, Version, tune
from noria.network.network import Network
from noria.network.tensor_spec import TensorSpec


@dataclass(slots=True)
class TunedPrecision:
    """The outcome.

    Attributes:
        tactic: the best one; None if nothing could be measured.
        lowered: the graph it runs.
        tuning, tries: for the plan.
        notices: what to tell.
    """

    tactic: Tactic | None = None
    lowered: PrecisionGraph | None = None
    tuning: TuningRecord | None = None
    tries: tuple[TacticRecord, ...] = ()
    notices: list[Notice] = field(default_factory=list)


def tune_precisions(
    network: Network,
    bake: Callable[[Network], bytes],
    inputs: Sequence[TensorSpec],
    precision: Precision,
    rules: PrecisionRules,
    *,
    items: int,
    picture_range: tuple[float, float],
    options: TuneOptions,
    progress: Progress | None,
    feeds: Mapping[str, npt.NDArray[Any]] | None = None,
) -> TunedPrecision:
    """Lower a network to every precision that may be used, and find the best way to run any.

    `bake` makes the ONNX message of a network; `precision` is the lowest that may be used. Runs
    have `items` pictures of noise in `picture_range`, unless `feeds` are given.

    Raises:
        EngineError, ModelError: FP32 cannot be lowered; no candidate; a runtime is missing.
    """
    done = TunedPrecision()
    names = list(options.runtimes or installed_backends())
    graphs: list[PrecisionGraph] = []
    for wanted, runtimes in tuned_precisions(precision, rules, names):
        if precision != "best":
            graphs.append(lower_or_fp32(network, wanted, rules, runtimes))
            continue
        try:
            graphs.append(lower(network, wanted, rules, runtimes))
        except (EngineError, ModelError) as error:
            if wanted == "fp32":
                raise
            text = f"{wanted} is not tried: {error.found}"
            done.notices.append(Notice("warning" if wanted == "int8" else "info", text))
    versions = [Version(g.precision, bake(g.network), g.runtimes) for g in graphs]
    low, high = picture_range
    tuned = tune(
        versions[0].model if versions[0].precision == "fp32" else bake(network),
        inputs,
        feeds if feeds is not None else sample_inputs(inputs, items, low=low, high=high),
        items=items,
        versions=versions,
        options=options,
        progress=progress,
    )
    done.notices += tuned.notices(options)
    if tuned.tactic is not None:
        done.lowered = graphs[tuned.version]
        done.tactic, done.tries = tuned.tactic, tuned.records
        done.tuning = tuned.summary(options, items)
    return done

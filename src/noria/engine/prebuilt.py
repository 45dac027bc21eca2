"""The plan of an engine that the user's own function built, taken as it is.

Source: custom-library spec 2.3 (6), 3.3: the engine that a creator returns is the one that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import noria
from noria._core.notices import Notice
from noria.engine.input_shapes import complete_infer_dims, resolve_shape
from noria.engine.plan import MODEL_BLOB, Plan
from noria.engine.plan_assembly import model_record
from noria.engine.plan_header import DecisionRecord
from noria.network.network import Network

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions


def prebuilt_plan(network: Network, options: BuildOptions) -> Plan | None:
    """Take the plan that a network was built into already; None if another one is asked for.

    Its precision is what the function chose; a notice says so where the config asks for another.

    Args:
        network: its `built` is the plan.
        options: a batch that the engine does not take, a runtime, a tactic, tuning, precisions of
            single layers, or types of outputs need a build of their own.

    Raises:
        EngineError: the picture's shape contradicts `infer_dims`.
    """
    plan: Plan | None = network.built
    if plan is None or options.tuning is not None or options.tactic is not None:
        return None
    header = plan.header
    other = options.runtime not in (None, header.runtime.name)
    if other or options.dynamic_batch or options.rules.pins or options.rules.outputs:
        return None
    if not (options.batched and header.batched) or header.max_batch < options.max_batch:
        return None
    where = str(network.path or "engine")
    resolve_shape(plan.inputs[0], options.infer_dims, options.input_order, where=where)
    notices = (d.notice for d in header.decisions)
    decisions = [Notice(n.level, n.message, n.where or where) for n in notices]
    if header.precision != "fp32" and header.precision != options.precision:
        text = f"the function chose {header.precision}; {options.precision} is asked for"
        decisions.append(Notice("info", text, where))
    made = header.model_copy(
        update={
            "noria": noria.__version__,
            "rules": options.rules.record(options.precision),
            "infer_dims": complete_infer_dims(options.infer_dims),
            "model": model_record(network, plan.blobs[MODEL_BLOB]),
            "decisions": tuple(DecisionRecord.of(n) for n in decisions),
        }
    )
    taken = Plan(made, plan.blobs)
    taken.threads = options.threads
    return taken

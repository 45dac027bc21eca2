"""Building plans of models over 2 GiB, which no single ONNX message holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from noria._core.errors import EngineError
from noria._core.notices import Notice
from noria.engine.assemble_plan import Built, assemble_plan, session_options
from noria.engine.backends import DEFAULT_BACKEND, SplitBackend, get_backend
from noria.engine.onnx_message import fix_axes, serialized
from noria.engine.plan import MODEL_BLOB, WEIGHTS_BLOB, Plan
from noria.engine.tuning.tactic import Tactic
from noria.network.network import Network
from noria.network.split import split_proto
from noria.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from noria.engine.builder import BuildOptions


def build_large(
    network: Network,
    options: BuildOptions,
    inputs: list[TensorSpec],
    shape: tuple[int | None, ...],
    decisions: list[Notice],
    where: str,
) -> Plan:
    """`build` for a network that `is_large`: as the graph is, neither tuned nor in another
    precision. The plan holds the weights in a blob of their own, mapped from the file when loaded.

    Raises:
        ModelError: external data changed since the model was read.
        EngineError: the runtime refuses the model, or takes none of this size.
    """
    tactic = options.tactic or Tactic(options.runtime or DEFAULT_BACKEND)
    backend = get_backend(tactic.runtime)
    if not isinstance(backend, SplitBackend):
        raise EngineError(
            f"{backend.name} takes no models over 2 GiB",
            where=where,
            fix="build for onnxruntime or openvino",
        )
    if options.precision != "fp32" or options.rules.pins or options.rules.outputs:
        text = "the model is over 2 GiB: its precision is left as it is"
        decisions.append(Notice("warning", text))
    if options.tuning is not None:
        decisions.append(Notice("warning", "not tuned: the model is over 2 GiB"))
    started = time.perf_counter()
    proto, weights = split_proto(network)
    if shape:
        fix_axes(proto.graph, shape)
    graph = serialized(proto, where)
    del proto
    run_options = session_options(tactic, options, "fp32")
    try:
        runner = backend.open_split(graph, weights, run_options)
    except EngineError as error:
        raise EngineError(
            f"{error.where}: {error.found}" if error.where else error.found,
            where=where,
            expected=error.expected,
            fix=error.fix,
        ) from error
    built = Built(
        backend=backend,
        tactic=tactic,
        precision="fp32",
        runner=runner,
        run_options=run_options,
        load_s=time.perf_counter() - started,
        blobs={MODEL_BLOB: graph, WEIGHTS_BLOB: weights},
        outputs=list(runner.outputs),
        rules=options.rules.record(options.precision),
    )
    return assemble_plan(
        built,
        network,
        options,
        inputs=inputs,
        fixed_batch=shape[0] if shape else None,
        decisions=decisions,
        where=where,
    )

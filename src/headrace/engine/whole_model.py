"""Models that are opened as they are, neither tuned nor lowered: over 2 GiB, or of a runtime's own.

The plan of a large model holds the weights in a blob of their own, mapped from the file when
loaded: always over 2 GiB, from `MAPPED_BYTES` on where the runtime reads them there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace._core.errors import EngineError
from headrace._core.findings import Finding
from headrace.engine.assemble_plan import BuildResult, session_options
from headrace.engine.backends import Backend, ExternalWeightsBackend, get_backend
from headrace.engine.onnx_message import finish_proto, model_bytes, serialized
from headrace.engine.plan import MODEL_BLOB, WEIGHTS_BLOB, Blob
from headrace.engine.tactic import Tactic
from headrace.network.external_data import split_proto
from headrace.network.network import Network

if TYPE_CHECKING:
    from headrace.engine.builder import BuildOptions


MAPPED_BYTES = 64 * 2**20


def why_whole(network: Network) -> str | None:
    """Say why a network is opened as it is; None if it can be changed."""
    if network.only_runtime is not None:
        return f"it is a model of {network.only_runtime}'s own format"
    return "it is over 2 GiB" if network.is_large else None


def check_runtime(network: Network, runtime: str, where: str) -> None:
    """Refuse a runtime that cannot open a model of another one's own format.

    Raises:
        EngineError: the runtime is another one.
    """
    if network.only_runtime in (None, runtime):
        return
    raise EngineError(
        f"{why_whole(network)}: {runtime} does not read it",
        where=where,
        expected=f"the runtime {network.only_runtime}",
        fix="for other runtimes, and for the GPU, export to ONNX what it was made of",
    )


def open_whole(
    network: Network,
    options: BuildOptions,
    tactic: Tactic,
    shape: tuple[int | None, ...],
    where: str,
) -> tuple[BuildResult, list[Finding]]:
    """Open a model as it is.

    Args:
        network: one of which `why_whole` gives a reason.
        options: of the build.
        tactic: the runtime and its settings.
        shape: of the first input; empty for a plan without a batch.
        where: the model, for errors.

    Returns:
        Its parts, and a finding for each option that is not used.

    Raises:
        EngineError: the runtime refuses the model, or takes none over 2 GiB.
    """
    backend = get_backend(tactic.runtime)
    why = why_whole(network)
    decisions = []
    if options.precision != "fp32" or options.rules.pins or options.rules.outputs:
        text = f"precision is left as it is: {why}"
        decisions.append(Finding("precision-not-used", "warning", text))
    if options.tuning is not None:
        decisions.append(Finding("not-tuned", "warning", f"not tuned: {why}"))
    started = time.perf_counter()
    blobs = _blobs(network, backend, shape, where, decisions)
    run_options = session_options(tactic, options, "fp32")
    try:
        if WEIGHTS_BLOB in blobs:
            assert isinstance(backend, ExternalWeightsBackend)
            weights = blobs[WEIGHTS_BLOB]
            runner = backend.open_with_weights(blobs[MODEL_BLOB], weights, run_options)
        else:
            runner = backend.open(blobs[MODEL_BLOB], run_options)
    except EngineError as error:
        raise EngineError(error.finding.at(where), code=EngineError.code) from error
    built = BuildResult(
        backend=backend,
        tactic=tactic,
        precision="fp32",
        runner=runner,
        run_options=run_options,
        load_s=time.perf_counter() - started,
        blobs=blobs,
        outputs=list(runner.outputs),
        rules=options.rules.record(options.precision),
    )
    return built, decisions


def _blobs(
    network: Network,
    backend: Backend,
    shape: tuple[int | None, ...],
    where: str,
    decisions: list[Finding],
) -> Mapping[str, Blob]:
    if not network.is_large:
        return {MODEL_BLOB: model_bytes(network, shape=shape, where=where, decisions=decisions)}
    if not isinstance(backend, ExternalWeightsBackend):
        raise EngineError(
            f"{backend.name} takes no models over 2 GiB",
            where=where,
            fix="build for onnxruntime or openvino",
        )
    return split_blobs(network, shape=shape, where=where, decisions=decisions)


def maps_weights(network: Network, backend: Backend) -> bool:
    """Whether a plan for a runtime keeps the weights of a network apart, to be mapped."""
    return getattr(backend, "maps_weights", False) and network.weight_bytes >= MAPPED_BYTES


def split_blobs(
    network: Network, *, shape: tuple[int | None, ...], where: str, decisions: list[Finding]
) -> dict[str, Blob]:
    """Write the graph of a network as `model_bytes` does, and its weights apart."""
    proto, weights = split_proto(network)
    finish_proto(proto, shape, decisions)
    return {MODEL_BLOB: serialized(proto, where), WEIGHTS_BLOB: weights}

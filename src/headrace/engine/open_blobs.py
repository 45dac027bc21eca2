"""A plan's blobs opened by their runtime: whole, split at plugins, or compiled before."""

from __future__ import annotations

from collections.abc import Sequence

from headrace._core.errors import EngineError, PluginError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.engine.backends import (
    Backend,
    CompilingBackend,
    ExternalWeightsBackend,
    PluginBackend,
    Runner,
    RunnerOptions,
)
from headrace.engine.plan import COMPILED_BLOB, MODEL_BLOB, WEIGHTS_BLOB, Blob
from headrace.engine.plugin_graph.opening import split_at
from headrace.engine.plugin_graph.plugin_layers import PluginLayers
from headrace.engine.plugin_graph.split_runner import compile_pieces
from headrace.network.network import Network
from headrace.plugins.lookup import unknown_error
from headrace.plugins.registry import PluginRegistry
from headrace.plugins.types import DataType


def open_blobs(
    backend: Backend,
    blobs: dict[str, Blob],
    options: RunnerOptions,
    network: Network,
    where: str,
    layers: PluginLayers | None,
    registry: PluginRegistry,
) -> tuple[Runner | None, dict[str, Blob]]:
    """Open the model of a plan with its runtime; compile it first where the runtime does that.

    Returns:
        The runner, None if the runtime can build here but not run; the plan's blobs.

    Raises:
        EngineError: the runtime refuses the model, `where` it is from.
        UnknownOperatorsError: it has operators that neither the runtime nor a plugin knows.
        PluginError: a plugin failed.
    """
    model = blobs[MODEL_BLOB]
    try:
        if layers is not None and layers.records:
            blobs |= layers.blobs
            whole = _taken_whole(backend, options, network, layers)
            if whole is None:
                if isinstance(backend, CompilingBackend):
                    split = split_at(layers.model, layers.records)
                    blobs |= compile_pieces(backend, split, options)
                if backend.why_not():
                    return None, blobs
                return layers.open(backend, options, compiled=blobs), blobs
            layers.close()
            blobs[COMPILED_BLOB] = whole
        elif WEIGHTS_BLOB in blobs:
            assert isinstance(backend, ExternalWeightsBackend)
            return backend.open_with_weights(model, blobs[WEIGHTS_BLOB], options), blobs
        elif not isinstance(backend, CompilingBackend):
            return backend.open(model, options), blobs
        else:
            blobs[COMPILED_BLOB] = backend.compile(model, options)
        if backend.why_not():
            return None, blobs
        assert isinstance(backend, CompilingBackend)
        return backend.open(model, options, blobs[COMPILED_BLOB]), blobs
    except EngineError as error:
        if isinstance(error, PluginError):
            raise
        unknown = unknown_error(network, backend.name, registry, where, f"{error:brief}")
        if unknown is not None:
            raise unknown from error
        raise _at(where, error, _declared_types(layers, f"{error:brief}")) from error


def _taken_whole(
    backend: Backend, options: RunnerOptions, network: Network, layers: PluginLayers
) -> bytes | None:
    """Compile the network with the plugins of the runtime; None if it must be split at them."""
    if not isinstance(backend, PluginBackend) or network.plugins:  # objects, no nodes' fields
        return None
    keys = sorted({(r.type, r.version, r.namespace) for r in layers.records})
    named = ", ".join(quoted(f"{kind} version {version}") for kind, version, _ in keys)
    lacking = backend.lacks(keys)
    if lacking:
        text = ", ".join(quoted(kind) for kind, _, _ in lacking)
        text = f"{backend.name} has no plugins {text}: the graph is split at its plugins"
        layers.notices.append(Finding("graph-split", "info", text, layers.where))
        return None
    try:
        whole = backend.compile(layers.model, options)
    except EngineError as error:
        text = f"{backend.name} has {named}, but the graph is split at its plugins: {error:brief}"
        layers.notices.append(Finding("graph-split", "warning", text, error.where or layers.where))
        return None
    text = f"{backend.name} computes {named} itself: the network is built whole"
    layers.notices.append(Finding("graph-whole", "info", text, layers.where))
    return whole


def _declared_types(layers: PluginLayers | None, refusal: str) -> list[str]:
    """Advice about types that plugins declare of their outputs, if a refusal mentions a type."""
    if layers is None or "type" not in refusal.lower():
        return []
    advice = []
    for r in layers.records:
        taken = ["bfloat16" if t == "BF16" else DataType[t].numpy.name for t in r.input_types]
        if not set(r.dtypes) <= set(taken):
            advice.append(
                f"plugin {r.type} (node {r.node!r}) takes {', '.join(taken) or 'nothing'} and says "
                f"that its outputs are {', '.join(r.dtypes)}: is that what it writes?"
            )
    return advice


def _at(where: str, error: EngineError, advice: Sequence[str] = ()) -> EngineError:
    """Name the model in an error of its runtime."""
    return EngineError(error.finding.at(where), fix=advice, code=EngineError.code)

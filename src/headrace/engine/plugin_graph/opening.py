"""Open a graph with plugins: the runtime calls them back, or the graph is split at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace._core.errors import PluginError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.text import quoted
from headrace.engine.backends import Backend, CallingBackend, Runner, RunnerOptions
from headrace.engine.plugin_graph.context_pool import ContextPool
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.plugin_graph.plugin_saving import saved_of
from headrace.engine.plugin_graph.plugins_in_runtime import (
    RUN_ID,
    CallbackRunner,
    PluginCallbacks,
    callback_graph,
    element_types,
)
from headrace.engine.plugin_graph.split import SplitGraph, split_graph
from headrace.engine.plugin_graph.split_runner import open_pieces
from headrace.plugins.drivers import deserialising, load_engine_plugin, missing_creators
from headrace.plugins.layer import EnginePlugin
from headrace.plugins.registry import PluginRegistry


def load_plugins(
    records: Sequence[PluginRecord],
    blobs: Mapping[str, bytes],
    registry: PluginRegistry,
    where: str,
) -> list[EnginePlugin]:
    """Load the plugin layers of a plan, ready for contexts.

    Raises:
        EngineError: naming all plugins that no creator is registered for; a damaged blob.
        PluginError: a creator or plugin failed; nothing it made is left.
    """
    saved = [saved_of(record, blobs, where) for record in records]
    missing = missing_creators([s.spec for s in saved], registry)
    if missing:
        names = "; ".join(
            quoted(f"{t} version {v}", limit=None) + (f", namespace {n!r}" if n else "")
            for t, v, n in missing
        )
        raise PluginError(
            f"the plan needs {len(missing)} plugin(s) that are not registered: {names}",
            where=where,
            fix=[
                *(text for key in missing for text in registry.near(*key)),
                "load the file that registers them first, Python or compiled: custom-lib-path in a "
                "config, --plugins of headrace exec and trtexec, "
                "get_plugin_registry().load_library in code",
            ],
        )
    loaded: list[EnginePlugin] = []
    try:
        with deserialising():
            loaded.extend(load_engine_plugin(one, registry) for one in saved)
        for engine in loaded:
            engine.finish()
    except BaseException:
        for engine in loaded:
            engine.close()
        raise
    return loaded


def split_at(model: bytes, records: Sequence[PluginRecord]) -> SplitGraph:
    """Find where an ONNX message is split at the plugin nodes of `records`."""
    import onnx

    nodes = {r.node: (r.inputs + r.shape_inputs, r.outputs) for r in records}
    return split_graph(onnx.ModelProto.FromString(model), nodes)


def must_split(
    backend: Backend,
    split: SplitGraph,
    types: Mapping[str, int],
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
) -> tuple[bool, str | None]:
    """Decide whether a graph must be split at its plugins. Nothing is split or opened for it.

    A graph stays in one piece where the runtime calls plugins back and a split would make two
    pieces or more: with one piece, arrays pass to the plugins without a copy already.

    Returns:
        True if it must be split; and the reason, if this runtime calls plugins of other graphs.
    """
    calls = isinstance(backend, CallingBackend) and not any(plugin.remote for plugin in plugins)
    if not calls or len(split.pieces) < 2:
        return True, None
    assert isinstance(backend, CallingBackend)
    names = {*types, *(name for node in split.proto.graph.node for name in node.output)}
    taken = [name for name in names if name == RUN_ID or name.startswith(f"{RUN_ID}.")]
    if taken:
        return True, f"a value of the graph is called {min(taken)!r}"
    allowed = backend.callback_types()
    for record in records:
        values = [n for n in (*record.inputs, *record.shape_inputs, *record.outputs) if n]
        if not all(types.get(name) for name in values):
            return True, f"a value at plugin {record.node!r} is of unknown type"
        if not allowed.issuperset(types[name] for name in values):
            return True, f"plugin {record.node!r} takes or gives an unusual type"
    reason = backend.why_no_callbacks()
    return reason is not None, reason


def open_plugin_graph(
    backend: Backend,
    model: bytes,
    options: RunnerOptions,
    records: Sequence[PluginRecord],
    plugins: Sequence[EnginePlugin],
    notices: list[Finding] | None = None,
    *,
    pieces: bool = False,
    compiled: Mapping[str, bytes] | None = None,
) -> Runner:
    """Open a graph with plugins, split at them only if `must_split`.

    The runner owns `plugins`, which are in the order of `records`, from now on. `notices` gets the
    reason of a split that this runtime does not need for other graphs; `pieces` splits the graph in
    any case; `compiled` has the blobs of `compile_pieces`.

    Raises:
        EngineError: the runtime refuses the graph or a piece; a plugin failed. The plugins are
            closed then.
    """
    pool = ContextPool(plugins)
    try:
        split = split_at(model, records)
        types = element_types(split.proto)
        if not pieces:
            pieces, reason = must_split(backend, split, types, records, plugins)
            if reason is not None and notices is not None:
                note_once(
                    notices,
                    Finding("graph-split", "info", f"the graph is split at its plugins: {reason}"),
                )
        runner: Runner
        if pieces:
            runner = open_pieces(backend, split, options, records, pool, compiled)
        else:
            assert isinstance(backend, CallingBackend)
            graph = callback_graph(split.proto, types, records, plugins, split.plugins)
            calls = PluginCallbacks(graph.nodes, pool)
            opened = backend.open_with_callbacks(graph, options, calls)
            runner = CallbackRunner(opened, calls, pool)
    except BaseException:
        pool.close()
        raise
    try:
        if options.batched:  # others make contexts themselves, or see it in their first run
            pool.prove()
    except BaseException:
        runner.close()
        raise
    return runner

"""Decisions and refusals of `Inferencer.from_config`, without building an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.config.model_files import model_paths
from headrace.custom.plugin_library import plugin_hints
from headrace.engine.backends import DEFAULT_BACKEND
from headrace.engine.plan import Plan
from headrace.infer.decoding import require_runnable
from headrace.infer.model.engine_search import saved_engine, serving_plan
from headrace.infer.model.guarded_engines import NoPreviewError, preview_network, preview_plugins
from headrace.infer.model.image_input import network_dims
from headrace.infer.model.inspect_engine import EngineFunction, engine_function
from headrace.infer.model.network_source import network_source
from headrace.infer.model.settled_outputs import settled_outputs
from headrace.infer.model.source import FunctionSource, ModelSource, model_source
from headrace.infer.parser_choice import (
    Choice,
    choose_parser,
    skipped_files,
)
from headrace.infer.parser_fit import check_outputs
from headrace.infer.parsers.labels import Labels, load_labels
from headrace.meta import NetworkInfo
from headrace.network import Network
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.custom_files import load_custom_plugins
from headrace.plugins.loading import PYTHON_SUFFIXES
from headrace.plugins.lookup import unknown_error, unknown_nodes
from headrace.plugins.registry import get_plugin_registry, known_plugins


@dataclass(slots=True)
class DryRun:
    """Everything that can be found about a config before it runs.

    Attributes:
        network: the model, if there is one that can be read or made.
        plan: the engine that `model-engine-file` names, where it stands for a model that is not
            there.
        maker: the function of the custom library that makes it, if one does.
        not_made: why that function gave no network here; a problem, too, unless a run may do
            better or needs none because a saved engine serves it.
        outputs: of that model, at the size of the config's images.
        image: that size, where it is known.
        labels: of the config's label file, none if it cannot be read.
        choice: the parser that decodes, if one was found.
        notices: the config's and those of the choices that a run would make.
        problems: why a run would be refused, in the order they would come up.
    """

    network: Network | None = None
    plan: Plan | None = None
    outputs: list[TensorSpec] = field(default_factory=list)
    image: NetworkInfo | None = None
    labels: Labels = field(default_factory=Labels)
    choice: Choice | None = None
    maker: EngineFunction | None = None
    not_made: HeadraceError | None = None
    notices: list[Finding] = field(default_factory=list)
    problems: list[HeadraceError] = field(default_factory=list)

    def close(self) -> None:
        """End the worker process of the custom library, if it has one."""
        if self.choice is not None:
            self.choice.close()

    @property
    def parser(self) -> str | None:
        """Origin of the parser in words; None if none was found."""
        return None if self.choice is None else self.choice.source

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs of the model or engine; none if they are not known."""
        model = self.network or self.plan
        return () if model is None else tuple(model.inputs)


def dry_run(cfg: ModelConfig) -> DryRun:
    """Check a config as a run would: files, labels, model, plugins, input size, parser.

    Loads the custom library, so its initialising code runs; no parser is called. A function of it
    that makes the network is called in a process of its own, and so are creators of its plugins.
    """
    done = DryRun(notices=list(cfg.notices))

    @contextmanager
    def collected() -> Iterator[None]:
        try:
            yield
        except HeadraceError as error:
            done.problems.append(error.with_traceback(None))  # its frames hold native objects

    with collected():
        require_runnable(cfg)
    with collected():
        cfg.check_files(skip=skipped_files(cfg))
    if cfg.labelfile_path and cfg.labelfile_path.is_file():
        with collected():
            done.labels = load_labels(cfg.labelfile_path)
            done.notices += done.labels.notices
    elif cfg.labels:
        done.labels = Labels(cfg.labels)
    source = None
    with collected():
        done.notices += load_custom_plugins(cfg.custom_lib_path)
        source, _ = network_source(cfg, done.notices)
    if source is None:
        source = model_source(cfg)
    done.maker = engine_function(
        cfg, source.function if isinstance(source, FunctionSource) else None
    )
    if isinstance(source, FunctionSource):
        try:
            done.network = preview_network(cfg, source.function)
        except HeadraceError as error:
            done.not_made = error.with_traceback(None)
            with collected():
                _need(error, cfg, source, done.notices)
    elif source is not None and all(path.is_file() for path in model_paths(cfg).values()):
        with collected():
            done.network = source.network()
    if cfg.model_engine_file is not None and cfg.model_engine_file.is_file():
        with collected():
            plan = serving_plan(cfg, source, done.notices)
            if done.network is None and plan is not None:
                done.plan, done.outputs = plan, list(plan.outputs)
    if done.network is not None and not isinstance(source, FunctionSource):
        with collected():
            where = str(done.network.path or cfg.path)
            if unknown := unknown_error(done.network, DEFAULT_BACKEND, known_plugins(), where):
                raise unknown.with_hints(plugin_hints(cfg.custom_lib_path))
            _try_creators(cfg, source, done)
    if done.inputs and not cfg.input_tensor_from_meta:
        with collected():
            channels, height, width = network_dims(done.inputs[0], cfg)
            done.image = NetworkInfo(width, height, channels)
    if done.network is not None:
        done.outputs = settled_outputs(done.network, cfg)
    with collected():
        choice = done.choice = choose_parser(cfg)
        if choice is not None:
            done.notices += choice.notices
            if choice.library is not None:
                done.notices += choice.library.decisions
            check_outputs(cfg, choice, done.outputs, done.image, done.labels, done.notices)
    return done


def _try_creators(cfg: ModelConfig, source: ModelSource | None, done: DryRun) -> None:
    """Let creators of a compiled library make the plugins of the model, which may crash."""
    path, network = cfg.custom_lib_path, done.network
    if path is None or network is None or source is None:
        return
    if path.suffix.lower() in PYTHON_SUFFIXES or not get_plugin_registry().come_from(path):
        return
    from headrace.network.ir import ir

    nodes = unknown_nodes(network)
    data = [ir.serde.serialize_node(node).SerializeToString() for node in nodes]
    if not data:
        return
    try:
        preview_plugins(cfg, data, str(network.path or cfg.path))
    except HeadraceError as error:
        _need(error, cfg, source, done.notices)


def _need(
    error: HeadraceError, cfg: ModelConfig, source: ModelSource, notes: list[Finding]
) -> None:
    """Raise `error`, of a step of building, if a run would come to it."""
    if not isinstance(error, NoPreviewError) and saved_engine(cfg, source, notes) is None:
        raise error

"""Networks and plugins of a custom library, made, computed or only tried in a worker process.

The application never loads the library. Its own creators stand for those in the worker: layers of
their plugins are built, loaded and run there, and the plan is the same. A preview has a worker that
ends at once.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import (
    CustomLibraryError,
    EngineError,
    HeadraceError,
    ModelError,
    PluginError,
)
from headrace._core.findings import Finding
from headrace.custom.guard import answers
from headrace.custom.guard.call_args import LoadArgs
from headrace.custom.guard.crash import LibraryDiedError, PluginDiedError
from headrace.custom.guard.keeper import can_guard, keeper
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.guard.repro import CaseSaver, FatalCall
from headrace.custom.guard.trust import content_hash
from headrace.engine.plan import Plan
from headrace.engine.plugin_graph.plugin_layers import PluginLayers, Profiles
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.plugin_graph.plugin_saving import record_of
from headrace.infer.model.guarded_cases import BuildArgs, NetworkArgs
from headrace.infer.model.guarded_plugin_layer import GuardedLayer
from headrace.network.network import Network
from headrace.network.onnx_file import network_from_onnx_bytes
from headrace.plugins.base import IPluginCreator, IPluginCreatorInterface, IPluginCreatorV3One
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.layer import SavedPlugin
from headrace.plugins.loading import loading
from headrace.plugins.registry import get_plugin_registry

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.network.tensor_spec import TensorSpec


OPERATIONS = "headrace.infer.model.guarded_operations"
PRELOADS = {
    "open_engines": (
        OPERATIONS,
        "headrace.config.model_config",
        "headrace.infer.model.engine_functions",
        "headrace.trt.host.world",
    ),
    "make_network": (
        "onnx",
        "headrace.engine.builder",
        "headrace.network.ir",
        "headrace.trt.api.build",
        "headrace.trt.api.engine",
        "headrace.trt.api.network",
    ),
    "build_layers": (
        "onnx",
        "headrace.engine.plugin_graph.plugin_layers",
        "headrace.plugins.standard",
    ),
    "load_layer": (
        "headrace.engine.plugin_graph.plugin_record",
        "headrace.plugins.drivers",
        "headrace.plugins.registry",
    ),
}
"""Operation -> modules that its worker imports, and later workers have from their start.

Runtimes are not here: they start threads.
"""

ANSWERS: Mapping[str, type[answers.Answer]] = {
    "open_engines": answers.CreatorsAnswer,
    "make_network": answers.MadeAnswer,
    "preview_network": answers.MadeAnswer,
    "preview_plugins": answers.Answer,
    "build_layers": answers.BuiltAnswer,
    "load_layer": answers.LayerAnswer,
    "open_layer": answers.ContextAnswer,
    "call_layer": answers.CalledAnswer,
    "close": answers.Answer,
}
"""Operation -> what it answers."""


class GuardedEngines:
    """The entry points for engines of one library: the twin of `CppEngines`.

    Attributes:
        path: the library.
        config: of the model that it is for.
        process: the worker.
        options: limits of the worker.
        decisions: notices of loading it.
    """

    def __init__(self, cfg: ModelConfig, path: Path, options: GuardOptions) -> None:
        self.path = path
        self.config = cfg
        self._config = pickled_config(cfg)
        self._cases = CaseSaver(path, content_hash(path), cfg.custom_lib_abi, None)
        self._made_by: dict[int, str] = {}  # number of a network in the worker -> function
        self.options = options
        self.decisions: list[Finding] = []
        text = "its networks and plugins are made in a worker process of their own"
        self.decisions.append(Finding("guard-used", "info", text, str(path)))
        self._creators: list[Any] = []
        self.process = GuardedProcess(str(path), options, setup=None)
        with self.process.lock:
            self._open()
        with loading(path):
            for kind, (name, version, namespace, _) in self._creators:
                get_plugin_registry().register_creator(kind(self, name, version), namespace)

    def make(self, function: str, notices: list[Finding]) -> Network:
        """Call a function that makes a network; its notices are appended.

        Raises:
            CustomLibraryError: it failed, or its process died.
        """
        where = f"{self.path}: {function}"
        limit = self.options.build_timeout_s
        answer, arrays = self.ask(
            "make_network",
            {"function": function},
            where,
            limit=limit,
            call=lambda: FatalCall("network", function, NetworkArgs(self.config, function), limit),
        )
        network = network_of_answer(answer, arrays, self.path, where, notices)
        self._made_by[answer.network] = function
        if answer.plugins:
            network.plugins = WorkerPlugins(self, answer.network, answer.plugins)
        return network

    def build(
        self,
        number: int,
        model: bytes,
        inputs: Sequence[TensorSpec],
        *,
        max_batch: int,
        batched: bool,
        profiles: Profiles,
        scales: Mapping[str, float] | None = None,
        where: str,
    ) -> PluginLayers | None:
        """Run `headrace.engine.plugin_graph.plugin_layers.build_plugins` in the worker.

        `number` is that of a network that was made there; with 0 `model` is all of it.

        Raises:
            ModelError, PluginError: as there; or the worker died.
        """
        payload = {
            "inputs": [[s.name, s.dtype.str, list(s.shape)] for s in inputs],
            "max_batch": max_batch,
            "batched": batched,
            "profiles": [{n: list(map(list, p)) for n, p in x.items()} for x in profiles],
            "scales": dict(scales or {}),
            "where": where,
        }
        plugins = f"{self.path}: plugins of {where}"
        limit = self.options.build_timeout_s
        data = np.frombuffer(model, np.uint8)
        args = BuildArgs(self.config, self._made_by.get(number, ""), payload)
        answer, arrays = self.ask(
            "build_layers",
            {**payload, "network": number},
            plugins,
            [data],
            limit=limit,
            call=lambda: FatalCall("build", "plugins", args, limit, {"network": data}),
        )
        if answer.none:
            return None
        try:
            graph, *blobs = (a.tobytes() for a in arrays)
            records = tuple(PluginRecord.from_json(r) for r in answer.records)
            named = dict(zip(answer.blobs, blobs, strict=True))
            notices = answer.notices
            layers = PluginLayers(graph, records, named, notices, get_plugin_registry(), where)
            for record, layer in zip(records, answer.built, strict=False):
                layers.built.append(GuardedLayer(self, record, named, where, layer))
        except (KeyError, TypeError, ValueError) as error:
            raise PluginError(f"its worker built no plugins: {error}", where=plugins) from error
        return layers

    def load(self, saved: SavedPlugin) -> GuardedLayer:
        """Load a plugin layer of a plan.

        Raises:
            PluginError: it cannot be loaded; the worker died.
        """
        spec = saved.spec
        profile = spec.profiles[0]
        names = (
            tuple(f"in{i}" for i in range(len(profile.opt))),
            tuple(f"shape{i}" for i in range(len(profile.values))),
            tuple(f"out{i}" for i in range(len(spec.shapes))),
        )
        record, blobs = record_of(saved, names, 0)
        return GuardedLayer(self, record, blobs, f"layer {spec.layer!r}")

    def ask(
        self,
        operation: str,
        payload: Mapping[str, object],
        where: str,
        arrays: Sequence[Any] = (),
        *,
        limit: float | None = None,
        plugin: bool = False,
        starting: bool = False,
        call: Callable[[], FatalCall] | None = None,
    ) -> tuple[Any, list[Any]]:
        """Run an operation of `guarded_operations`; its arrays are valid until the next one.

        It answers as `ANSWERS` says.

        Args:
            operation: name of the function.
            payload: its arguments.
            where: for errors.
            arrays: its arrays.
            limit: seconds that it may take; None sets none.
            plugin: True if it is about a plugin in an engine.
            starting: True if nothing runs without it, nor a worker that is started again.
            call: makes the case to save if the worker dies of it.

        Raises:
            CustomLibraryError: the worker died; PluginDiedError, if it is about a plugin.
            HeadraceError: the operation raised it.
        """
        if operation in PRELOADS:
            keeper().import_ahead(PRELOADS[operation])
        with self.process.lock:
            kind: type[HeadraceError] = PluginDiedError if plugin else CustomLibraryError
            try:
                if self.process.pid is None:
                    self._open()
                return self.process.invoke(
                    f"{OPERATIONS}:{operation}",
                    dict(payload),
                    list(arrays),
                    what=where,
                    timeout_s=limit,
                    answer=ANSWERS[operation],
                )
            except LibraryDiedError as error:
                hint = self._cases.hint(error, self.options, call) if call is not None else None
                if hint is None and not self.options.once:
                    hint = "custom-lib-guard=never repeats it in this process, for a debugger"
                finding = error.finding
                if (starting or not plugin) and error.death is not None:
                    finding = replace(finding, wording=f"{error.death.who} {{end}}")
                raise kind(finding, where=where, fix=hint, code=kind.code) from None

    def is_current(self, generation: int) -> bool:
        """True if the worker of that generation still holds its data."""
        return self.process.pid is not None and self.process.generation == generation

    def _open(self) -> None:
        """Load the library in a new worker."""
        payload = {"config": self._config, "path": str(self.path)}
        keeper().import_ahead(PRELOADS["open_engines"])
        try:
            answer, _ = self.process.invoke(
                f"{OPERATIONS}:open_engines",
                payload,
                what=str(self.path),
                answer=ANSWERS["open_engines"],
            )
        except LibraryDiedError as error:
            if error.death is None:  # given up
                raise
            load = FatalCall("load", "loading", LoadArgs(self.config), self.options.load_timeout_s)
            error = self._cases.with_hint(error, self.options, lambda: load)
            raise error.while_loading(self.path) from None
        self._creators = [(_CreatorV3 if c[-1] else _Creator, c) for c in answer.creators]
        notices = [*self.process.notices, *answer.notices]
        self.decisions += [n for n in notices if n not in self.decisions]

    def close(self) -> None:
        """End the worker; it is started again if a plugin runs nevertheless."""
        with suppress(OSError):
            self.process.close()


def pickled_config(cfg: ModelConfig) -> str:
    """Serialise a config for `guarded_operations.open_engines`."""
    return base64.b64encode(pickle.dumps(cfg)).decode()


def network_of_answer(
    answer: answers.MadeAnswer,
    arrays: Sequence[Any],
    path: Path,
    where: str,
    notices: list[Finding],
) -> Network:
    """Read the network of a worker's answer.

    Raises:
        CustomLibraryError: the answer has none.
    """
    try:
        graph, *built = (a.tobytes() for a in arrays)
        network = network_from_onnx_bytes(graph, path)
        network.built = Plan.from_bytes(built[0]) if built else None
        network.sha256, network.size_bytes = None, 0  # of no file
        network.implicit_batch = answer.implicit_batch
    except (EngineError, ModelError, KeyError, TypeError, ValueError) as error:
        raise CustomLibraryError(f"its worker gave no network: {error}", where=where) from error
    notices += answer.notices
    return network


class WorkerPlugins(dict[str, Any]):
    """`Network.plugins` of a network with plugin objects in the worker."""

    def __init__(self, host: GuardedEngines, number: int, nodes: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(nodes))
        self.host = host
        self.number = number


class _WorkerCreator(IPluginCreatorInterface):
    """Stands for a creator in the worker.

    Attributes:
        host: builds and loads what its plugins compute.
        library: the file that they are in.
    """

    def __init__(self, host: GuardedEngines, name: str, version: str) -> None:
        self.host = host
        self.library = str(host.path)
        self.name = name
        self.plugin_version = version
        self.field_names = PluginFieldCollection([])

    def create_plugin(self, name: str, *_: object) -> Any:
        """Refuse: objects of its plugins are in the worker alone."""
        raise PluginError(
            f"plugin {self.name} is in a worker process, and cannot be created in this one",
            where=f"layer {name!r}",
            fix="custom-lib-guard=never loads its library here",
        )


class _Creator(_WorkerCreator, IPluginCreator):
    def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> Any:
        """Refuse, as `create_plugin`."""
        return self.create_plugin(name)


class _CreatorV3(_WorkerCreator, IPluginCreatorV3One):
    pass


PREVIEW_LIMIT_S = 120.0
"""Time limit of a preview; a run waits longer."""


class NoPreviewError(CustomLibraryError):
    """A preview is not possible here; a run may succeed."""


def preview_network(cfg: ModelConfig, function: str) -> Network:
    """Make the network of `cfg`, without an engine and without objects of its plugins.

    A crash or an endless loop of the code does no harm to this process. Errors name the function.

    Raises:
        HeadraceError: there is none, as in a run.
        NoPreviewError: no worker can run here, or it takes too long.
    """
    path = cfg.custom_lib_path
    assert path is not None
    where = f"{path}: {function}"
    with _PreviewWorker(cfg, path, where, ("open_engines", "make_network")) as worker:
        answer, arrays = worker.ask("preview_network", {"where": where})
        network = network_of_answer(answer, arrays, path, where, [])
    network.plugins = dict.fromkeys(answer.plugins)
    return network


def preview_plugins(cfg: ModelConfig, nodes: Sequence[bytes], model: str) -> None:
    """Let the creators of the custom library make the plugins of nodes, as a build begins.

    Nodes are serialised `NodeProto`s; those of other creators are ignored. Messages name the model.

    Raises:
        HeadraceError, NoPreviewError: as `preview_network`.
    """
    path = cfg.custom_lib_path
    assert path is not None
    data = [np.frombuffer(node, np.uint8) for node in nodes]
    where = f"{path}: plugins of {model}"
    with _PreviewWorker(cfg, path, where, ("open_engines", "build_layers")) as worker:
        worker.ask("preview_plugins", {"path": str(path), "where": model}, data)


class _PreviewWorker:
    """A worker for one question."""

    def __init__(self, cfg: ModelConfig, path: Path, where: str, ahead: tuple[str, ...]) -> None:
        if reason := can_guard():
            raise NoPreviewError(f"no worker process can make it here: {reason}", where=where)
        here = cfg.with_overrides(custom_lib_guard="never")  # the worker is the guard
        self._where = where
        self._config = pickled_config(here)
        options = GuardOptions.of(cfg, restarts=0, once=True)
        keeper().import_ahead([name for operation in ahead for name in PRELOADS[operation]])
        python = path.suffix.lower() in (".py", ".pyw")
        self._process = GuardedProcess(str(path), options, python=python)

    def __enter__(self) -> _PreviewWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def ask(
        self, operation: str, payload: dict[str, object], arrays: Sequence[Any] = ()
    ) -> tuple[Any, list[Any]]:
        try:
            return self._process.invoke(
                f"{OPERATIONS}:{operation}",
                {"config": self._config, **payload},
                arrays,
                what=self._where,
                timeout_s=PREVIEW_LIMIT_S,
                answer=ANSWERS[operation],
            )
        except LibraryDiedError as error:
            late = error.death is not None and error.death.late
            kind = NoPreviewError if late else CustomLibraryError
            raise kind(error.finding, where=self._where, code=kind.code) from None

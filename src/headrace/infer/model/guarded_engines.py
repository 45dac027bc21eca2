"""Networks and plugins of a custom library, made, computed or only tried in a worker process.

The application never loads the library. Its own creators stand for those in the worker: layers of
their plugins are built, loaded and run there, and the plan is the same. A preview has a worker that
ends at once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import (
    CustomLibraryError,
    EngineError,
    ModelError,
    PluginError,
)
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import why_no_gpu
from headrace.custom.guard import answers
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.keeper import can_guard, keeper
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.guard.repro import FatalCall
from headrace.engine.machine import usable_cores
from headrace.engine.plan import Plan
from headrace.engine.plugin_graph.plugin_layers import PluginLayers, Profiles
from headrace.engine.plugin_graph.plugin_record import PluginRecord
from headrace.engine.plugin_graph.plugin_saving import record_of
from headrace.infer.model.guarded_cases import BuildArgs, NetworkArgs
from headrace.infer.model.guarded_plugin_layer import GuardedLayer
from headrace.infer.model.guarded_worker import (
    ANSWERS,
    OPERATIONS,
    PRELOADS,
    EnginesWorker,
    pickled_config,
)
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

_MOST_WORKERS = 4


class GuardedEngines(EnginesWorker):
    """The entry points for engines of one library: the twin of `CppEngines`.

    It has more workers while contexts of one layer are open at the same time: calls of one worker
    wait for each other.
    """

    def __init__(self, cfg: ModelConfig, path: Path, options: GuardOptions) -> None:
        self._made_by: dict[int, str] = {}  # number of a network in the worker -> function
        super().__init__(cfg, path, options)
        text = "its networks and plugins are made in a worker process of their own"
        self.decisions.insert(0, Finding("guard-used", "info", text, str(path)))
        self._more: list[EnginesWorker] = []
        self._lent: Counter[tuple[str, EnginesWorker]] = Counter()
        self._lock = threading.Lock()
        with loading(path):
            for name, version, namespace, is_v3 in self.creators:
                kind = _CreatorV3 if is_v3 else _Creator
                get_plugin_registry().register_creator(kind(self, name, version), namespace)

    def lend(self, layer: str) -> EnginesWorker:
        """The worker for a new context of a layer: that with the fewest of them, perhaps a new one.

        Raises:
            CustomLibraryError: it cannot be started.
        """
        with self._lock:
            workers = [self, *self._more]
            worker = min(workers, key=lambda one: self._lent[layer, one])
            if self._lent[layer, worker] and len(workers) < _most_workers():
                worker = EnginesWorker(self.config, self.path, self.options)
                self._more.append(worker)
            self._lent[layer, worker] += 1
            return worker

    def give_back(self, layer: str, worker: EnginesWorker) -> None:
        """Its context is closed."""
        with self._lock:
            self._lent[layer, worker] -= 1

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

    def close(self) -> None:
        """End the workers; they are started again if a plugin runs nevertheless."""
        super().close()
        for worker in self._more:
            worker.close()


def _most_workers() -> int:
    """Workers of one library; on a GPU one, since each has memory of its own there."""
    return 1 if why_no_gpu() is None else min(_MOST_WORKERS, usable_cores())


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

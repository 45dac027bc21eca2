"""A worker process with the networks and plugins of a custom library."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace.custom.guard import answers
from headrace.custom.guard.call_args import LoadArgs
from headrace.custom.guard.crash import LibraryDiedError, PluginDiedError
from headrace.custom.guard.keeper import keeper
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.guard.repro import CaseSaver, FatalCall
from headrace.custom.guard.trust import content_hash

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

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


class EnginesWorker:
    """See module.

    Attributes:
        path: the library.
        config: of the model that it is for.
        process: the worker.
        options: limits of the worker.
        decisions: notices of loading it.
        creators: name, version and namespace of each, and whether it is one of version 3.
    """

    def __init__(self, cfg: ModelConfig, path: Path, options: GuardOptions) -> None:
        self.path = path
        self.config = cfg
        self._config = pickled_config(cfg)
        self._cases = CaseSaver(path, content_hash(path), cfg.custom_lib_abi, None)
        self.options = options
        self.decisions: list[Finding] = []
        self.creators: list[tuple[str, str, str, bool]] = []
        self.process = GuardedProcess(str(path), options, setup=None)
        with self.process.lock:
            self._open()

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
        self.creators = answer.creators
        notices = [*self.process.notices, *answer.notices]
        self.decisions += [n for n in notices if n not in self.decisions]

    def close(self) -> None:
        """End the worker; it is started again if a plugin runs nevertheless."""
        with suppress(OSError):
            self.process.close()


def pickled_config(cfg: ModelConfig) -> str:
    """Serialise a config for `guarded_operations.open_engines`."""
    return base64.b64encode(pickle.dumps(cfg)).decode()

"""Preview of the networks and plugins of a config's own code, in a worker that ends at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noria._core.errors import CustomLibraryError
from noria.custom.guard.crash import LibraryDiedError
from noria.custom.guard.keeper import can_guard, keeper
from noria.custom.guard.options import GuardOptions
from noria.custom.guard.process import GuardedProcess
from noria.model.guarded_engines import OPERATIONS, PRELOADS, network_of_answer, pickled_config
from noria.network.network import Network

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

LIMIT_S = 120.0
"""Time limit of a preview; a run waits longer."""


class NoPreviewError(CustomLibraryError):
    """A preview is not possible here; a run may succeed."""


def preview_network(cfg: ModelConfig, function: str) -> Network:
    """Make the network of `cfg`, without an engine and without objects of its plugins.

    A crash or an endless loop of the code does no harm to this process.

    Args:
        cfg: the config.
        function: of its library, for errors.

    Raises:
        NoriaError: there is none, as in a run.
        NoPreviewError: no worker can run here, or it takes too long.
    """
    path = cfg.custom_lib_path
    assert path is not None
    where = f"{path}: {function}"
    with _PreviewWorker(cfg, path, where, ("open_engines", "make_network")) as worker:
        answer, arrays = worker.ask("preview_network", {"where": where})
        network, _, nodes = network_of_answer(answer, arrays, path, where, [])
    network.plugins = dict.fromkeys(nodes)
    return network


def preview_plugins(cfg: ModelConfig, nodes: Sequence[bytes], model: str) -> None:
    """Let the creators of the custom library make the plugins of nodes, as a build begins.

    Args:
        cfg: the config.
        nodes: serialised `NodeProto`s; those of other creators are ignored.
        model: for messages.

    Raises:
        NoriaError, NoPreviewError: as `preview_network`.
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
        options = GuardOptions(memory_mib=cfg.custom_lib_guard_memory, restarts=0, once=True)
        keeper().import_ahead([name for operation in ahead for name in PRELOADS[operation]])
        python = path.suffix.lower() in (".py", ".pyw")
        self._process = GuardedProcess(str(path), options, python=python)

    def __enter__(self) -> _PreviewWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def ask(
        self, operation: str, payload: dict[str, Any], arrays: Sequence[Any] = ()
    ) -> tuple[dict[str, Any], list[Any]]:
        try:
            return self._process.invoke(
                f"{OPERATIONS}:{operation}",
                {"config": self._config, **payload},
                arrays,
                what=self._where,
                timeout_s=LIMIT_S,
            )
        except LibraryDiedError as error:
            late = error.death is not None and error.death.late
            kind = NoPreviewError if late else CustomLibraryError
            raise kind(error.found, where=self._where, fix=error.fix) from None

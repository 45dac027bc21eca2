"""What a config's own code makes, made in a worker that ends at once: to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noria._core.errors import CustomLibraryError
from noria.custom.guard.errors import LibraryDiedError
from noria.custom.guard.keeper import can_guard, keeper
from noria.custom.guard.options import GuardOptions
from noria.custom.guard.process import GuardedProcess
from noria.model.guarded_engines import AHEAD, HERE, pickled, taken
from noria.network.network import Network

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

LIMIT_S = 120.0
"""How long it may take; a run waits longer."""


class NotLooked(CustomLibraryError):
    """There is no telling here what a run would come to."""


def look_at_network(cfg: ModelConfig, function: str) -> Network:
    """The network of `cfg`, without an engine and without objects of its plugins.

    Whatever the code does, a crash or an endless loop too, this process goes on.

    Raises:
        NoriaError: why there is none, as in a run.
        NotLooked: no worker can run here, or it takes too long.
    """
    path = cfg.custom_lib_path
    assert path is not None
    where = f"{path}: {function}"
    with _Look(cfg, path, where, ("open_engines", "make_network")) as look:
        answer, arrays = look.ask("look_at_network", {"where": where})
        network, _, nodes = taken(answer, arrays, path, where, [])
    network.plugins = dict.fromkeys(nodes)
    return network


def look_at_plugins(cfg: ModelConfig, nodes: Sequence[bytes], model: str) -> None:
    """Let the creators of the custom library make the plugins of nodes, as a build begins.

    Args:
        nodes: serialised `NodeProto`s; those of other creators are passed by.
        model: for messages.

    Raises:
        NoriaError, NotLooked: as `look_at_network`.
    """
    path = cfg.custom_lib_path
    assert path is not None
    data = [np.frombuffer(node, np.uint8) for node in nodes]
    where = f"{path}: plugins of {model}"
    with _Look(cfg, path, where, ("open_engines", "build_layers")) as look:
        look.ask("look_at_plugins", {"path": str(path), "where": model}, data)


class _Look:
    """A worker for one question."""

    def __init__(self, cfg: ModelConfig, path: Path, where: str, ahead: tuple[str, ...]) -> None:
        if reason := can_guard():
            raise NotLooked(f"no worker process can make it here: {reason}", where=where)
        here = cfg.with_overrides(custom_lib_guard="never")  # the worker is the guard
        self._where = where
        self._config = pickled(here)
        options = GuardOptions(memory_mib=cfg.custom_lib_guard_memory, restarts=0, once=True)
        keeper().import_ahead([name for operation in ahead for name in AHEAD[operation]])
        python = path.suffix.lower() in (".py", ".pyw")
        self._process = GuardedProcess(str(path), options, python=python)

    def __enter__(self) -> _Look:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def ask(
        self, operation: str, payload: dict[str, Any], arrays: Sequence[Any] = ()
    ) -> tuple[dict[str, Any], list[Any]]:
        try:
            return self._process.invoke(
                f"{HERE}:{operation}",
                {"config": self._config, **payload},
                arrays,
                what=self._where,
                timeout_s=LIMIT_S,
            )
        except LibraryDiedError as error:
            late = error.death is not None and error.death.late
            kind = NotLooked if late else CustomLibraryError
            raise kind(error.found, where=self._where, fix=error.fix) from None

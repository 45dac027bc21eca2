"""The network that a config's own code makes, made in a worker that ends at once: to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria.custom.guard.engines import AHEAD, HERE, pickled, taken
from noria.custom.guard.errors import LibraryDied
from noria.custom.guard.keeper import can_guard, keeper
from noria.custom.guard.options import GuardOptions
from noria.custom.guard.process import GuardedProcess
from noria.errors import CustomLibraryError
from noria.network.network import Network

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

__all__ = ["look_at_network"]

LIMIT_S = 120.0
"""How long it may take; a run waits longer."""


def look_at_network(cfg: ModelConfig, function: str) -> Network:
    """The network of `cfg`, without an engine and without objects of its plugins.

    Whatever the code does, a crash or an endless loop too, this process goes on.

    Raises:
        CustomLibraryError: why there is none; also if no worker can run here.
    """
    path = cfg.custom_lib_path
    assert path is not None
    where = f"{path}: {function}"
    if reason := can_guard():
        raise CustomLibraryError(f"no worker process can make it here: {reason}", where=where)
    here = cfg.with_overrides(custom_lib_guard="never")  # the worker is the guard
    payload = {"config": pickled(here), "where": where}
    options = GuardOptions(memory_mib=cfg.custom_lib_guard_memory, restarts=0, once=True)
    python = path.suffix.lower() in (".py", ".pyw")
    keeper().import_ahead((*AHEAD["open_engines"], *AHEAD["make_network"]))
    process = GuardedProcess(str(path), options, python=python)
    try:
        answer, arrays = process.invoke(
            f"{HERE}:look_at_network", payload, what=where, timeout_s=LIMIT_S
        )
        network, _, nodes = taken(answer, arrays, path, where, [])
    except LibraryDied as error:
        raise CustomLibraryError(error.found, where=where, fix=error.fix) from None
    finally:
        process.close()
    network.plugins = dict.fromkeys(nodes)
    return network

"""Settings of the guard: modes, limits of a worker, folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headrace._core.files import state_folder
from headrace._core.plain_record import PlainRecord
from headrace.custom.guard.environment import checked_rules
from headrace.custom.guard.reach import NamedPaths

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

GuardMode = Literal["auto", "always", "never"]
"""`auto` guards C++ libraries that are not trusted yet, `always` guards Python modules, too."""


class GuardOptions(PlainRecord, frozen=True):
    """Limits of the process that runs a library.

    Attributes:
        timeout_s: seconds that one call may take; then the process is ended.
        load_timeout_s: the same for loading the library, and for filling inputs.
        build_timeout_s: the same for making a network, and for building plugins.
        memory_mib: address space that it may take beside what it has at the start, in MiB; on a
            machine with a GPU private writable memory, since CUDA reserves addresses for all
            memory that there is. 0 sets no limit.
        restarts: how often it is started again before it is given up; `FORGIVEN_AFTER` calls
            without a fault set the count back.
        crash_dir: where the inputs of fatal calls are kept; None is `crash_folder()`.
        once: the worker is for one call: a fatal one is not saved, errors mention no restarts.
        clean_calls: calls without a fault after which `auto` trusts a library from then on.
        environment: `NAME` passes a variable of the environment that looks like a credential,
            `-NAME` holds another one back; see `headrace.custom.guard.environment.passed`.
        reads: absolute paths that it may read beside the system's and its own; empty: all that
            its user may.
        writes: absolute paths, there already, that it may change beside its temporary folder.
    """

    timeout_s: float = 10.0
    load_timeout_s: float = 60.0
    build_timeout_s: float = 600.0
    memory_mib: int = 4096
    restarts: int = 5
    crash_dir: Path | None = None
    clean_calls: int = 300
    once: bool = False
    environment: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @classmethod
    def of(cls, cfg: ModelConfig, **more: Any) -> GuardOptions:
        """Read the keys of a config; `more` are other fields.

        Raises:
            ConfigError: `custom-lib-paths` or `custom-lib-guard-env` is refused.
        """
        where = str(cfg.origin("custom_lib_paths"))
        folder = Path(cfg.path).parent if cfg.path else Path()
        paths = NamedPaths.read(cfg.custom_lib_paths, folder, where)
        reads = paths.reads
        if reads:
            reads += tuple(_files(cfg))
        rules = checked_rules(cfg.custom_lib_guard_env, str(cfg.origin("custom_lib_guard_env")))
        given = {
            "timeout_s": cfg.custom_lib_guard_timeout,
            "memory_mib": cfg.custom_lib_guard_memory,
            "restarts": cfg.custom_lib_guard_restarts,
        }
        return cls(environment=rules, reads=reads, writes=paths.writes, **given | more)


def _files(cfg: ModelConfig) -> Iterator[str]:
    """Name the files of a config, and the folder of its library."""
    from headrace.config.model_files import darknet_cfg

    files = [getattr(cfg, name) for name in cfg.FIELDS]
    if cfg.custom_network_config:
        files.append(darknet_cfg(cfg))
    if cfg.custom_lib_path is not None:
        files.append(cfg.custom_lib_path.parent)
    yield from (str(path.absolute()) for path in files if isinstance(path, Path))


def crash_folder() -> Path:
    """Return the folder of saved calls: `HEADRACE_CRASH_DIR`, or `crashes` in the state folder."""
    named = os.environ.get("HEADRACE_CRASH_DIR")
    return Path(named) if named else state_folder() / "crashes"

"""History of a running model: its versions, their counts, and the updates that were refused."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal

from msgspec import field

from headrace._core.errors import ConfigError, EngineError
from headrace._core.files import hash_file
from headrace._core.plain_record import PlainRecord

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.record import Record

How = Literal["start", "update", "rollback", "restart"]
_REFUSED = 50  # that are remembered
_SHOWN = 12  # digits of a hash


class ModelVersion(PlainRecord, frozen=True):
    """One version of a model, and when it ran.

    Attributes:
        number: counts from 1; a rollback and a restart run an earlier number again.
        path: the config, model or engine that it came from.
        config: loads it again.
        hashes: of its files, by path, as SHA-256.
        how: what made it run.
        since: when it began, in seconds since 1970.
        inferred_before, failed_before: items of the versions before it.
        steps: updates that lead from the first config to this one: kind and path.
    """

    number: int
    path: Path
    config: ModelConfig
    hashes: dict[Path, str] = field(default_factory=dict)
    how: How = "start"
    since: float = 0.0
    inferred_before: int = 0
    failed_before: int = 0
    steps: tuple[tuple[str, Path], ...] = ()

    @property
    def sha256(self) -> str:
        """The first digits of the hash of its model file; empty where it has none."""
        model = self.config.onnx_file or self.config.model_engine_file
        return "" if model is None else self.hashes.get(model, "")[:_SHOWN]

    def check_unchanged(self) -> None:
        """Refuse a version of which a file was changed since.

        Raises:
            ConfigError: a file is missing or differs.
        """
        for path, digest in self.hashes.items():
            if not path.is_file() or hash_file(path).sha256 != digest:
                state = "was changed" if path.is_file() else "is not there any more"
                raise ConfigError(
                    f"version {self.number} cannot run again: {path.name} {state} since",
                    where=str(path),
                    fix="give each version files of its own",
                )


class ModelHistory:
    """The versions of one model in the order in which they ran; any thread may read it.

    Attributes:
        runs: each time that a version began.
        refused: updates that were refused, the latest of them: when, which file, why.
        refusals: how many there were.
        folder: that of the first config; updates come from it.
        proposed: number of the version that was loaded last.
        first: the config of version 1.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._lock = threading.Lock()
        self.runs: list[ModelVersion] = []
        self.refused: deque[dict[str, Any]] = deque(maxlen=_REFUSED)
        self.refusals = 0
        self.folder = config.path.resolve().parent
        self.proposed = 1
        self._waiting: ModelVersion | None = None
        self.first = config

    @property
    def current(self) -> ModelVersion:
        """The version that runs."""
        with self._lock:
            self._require_start()
            return self.runs[-1]

    @property
    def latest(self) -> ModelVersion:
        """The version that was loaded last: it runs, or waits for the next batch."""
        return self._waiting or self.current

    @property
    def changes(self) -> int:
        """How often another version began; restarts are none."""
        return sum(run.how in ("update", "rollback") for run in self.runs)

    @property
    def versions(self) -> dict[int, ModelVersion]:
        """Every version by its number, as it ran last."""
        with self._lock:
            self._require_start()
            return {run.number: run for run in self.runs}

    @property
    def previous(self) -> ModelVersion | None:
        """The version that ran before the current one; None for the first."""
        with self._lock:
            self._require_start()
            numbers = [run for run in self.runs if run.number != self.runs[-1].number]
            return numbers[-1] if numbers else None

    def shown(self, path: Path) -> str:
        """A path as updates name it, from the folder; elsewhere its last name."""
        whole = path.resolve()
        return str(whole.relative_to(self.folder)) if self.folder in whole.parents else path.name

    @property
    def pending(self) -> bool:
        """A version was loaded and waits for the next batch."""
        return self._waiting is not None

    def _require_start(self) -> None:
        if not self.runs:  # files are hashed for those alone who ask
            self.runs.append(
                ModelVersion(1, self.first.path, self.first, file_hashes(self.first), since=time())
            )

    def propose(
        self,
        path: Path,
        config: ModelConfig,
        how: How,
        number: int | None,
        steps: tuple[tuple[str, Path], ...],
    ) -> ModelVersion:
        """Note a version that waits for its turn; a new one has no number yet.

        Raises:
            EngineError: another one waits.
        """
        if self.pending:
            raise EngineError("Trying to update model too frequently", where=str(path))
        newest = max(self.versions)
        version = ModelVersion(
            number or newest + 1, path, config, file_hashes(config), how, steps=steps
        )
        self._waiting, self.proposed = version, version.number
        return version

    def change(self, record: Record) -> None:
        """Note that the waiting version runs from now on."""
        version, self._waiting = self._waiting, None
        if version is None:
            return
        with self._lock:
            self._require_start()
            self.runs.append(
                replace(
                    version,
                    since=time(),
                    inferred_before=record.inferred_items,
                    failed_before=record.failed_items,
                )
            )

    def restarted(self, record: Record) -> None:
        """Note that the current version was opened anew."""
        self._waiting = replace(self.current, how="restart")
        self.change(record)

    def refuse(self, path: Path | str, why: str) -> None:
        """Note an update that was refused."""
        self.refusals += 1
        self.refused.append({"time": time(), "path": str(path), "reason": why})

    def counts(self, record: Record) -> dict[int, tuple[int, int]]:
        """Items that each version inferred, and those of them that could not be parsed."""
        with self._lock:
            self._require_start()
            runs = list(self.runs)
        ends = [(run.inferred_before, run.failed_before) for run in runs[1:]]
        ends.append((record.inferred_items, record.failed_items))
        counts: dict[int, tuple[int, int]] = {}
        for run, (inferred, failed) in zip(runs, ends, strict=True):
            before = counts.get(run.number, (0, 0))
            counts[run.number] = (
                before[0] + inferred - run.inferred_before,
                before[1] + failed - run.failed_before,
            )
        return counts


def file_hashes(config: ModelConfig) -> dict[Path, str]:
    """SHA-256 of the files that a config names, and of its own; engines that are built are none."""
    names = [config.path, *(v for v in config.values().values() if isinstance(v, Path))]
    built = config.model_engine_file if config.onnx_file is not None else None
    files = {path for path in names if path != built and path.is_file()}
    return {path: hash_file(path).sha256 for path in sorted(files)}

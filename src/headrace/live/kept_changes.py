"""Settings, regions and models that requests changed, in a file: the next life has them again.

Each is kept with what the files of the service said when it was changed. Where they say something
else at the next start, they are newer, and the change is forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError, HeadraceError
from headrace._core.findings import Finding
from headrace.infer.history import ModelVersion
from headrace.infer.update import updated_config
from headrace.live.kept_file import KeptFile

if TYPE_CHECKING:
    from headrace.infer.history import ModelHistory
    from headrace.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A change that a request made.

    Attributes:
        value: of JSON, which makes the change again.
        start: of JSON, what the files of the service said then.
    """

    value: Any
    start: Any


class KeptChanges:
    """The changes of a service by their names, `interval` among them; safe for several threads.

    Args:
        path: of the file; None keeps nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = KeptFile(path, "the changes of earlier requests")
        self._lock = threading.Lock()
        self._changes: dict[str, KeptChange] = {}

    def restore(
        self,
        pipeline: Pipeline,
        start: Callable[[str], Any],
        change: Callable[[str, Any], object],
    ) -> None:
        """Make the changes of earlier lives again.

        One that cannot be made today stays in the file, and a warning says why.

        Args:
            pipeline: of the service, which has not begun.
            start: gives what its files say of a name.
            change: makes a change, by its name and value; it raises HeadraceError.
        """
        self._changes = self._file.read(pipeline, _parsed) or {}
        restored, newer = [], []
        for name, kept in list(self._changes.items()):
            try:
                if start(name) != kept.start:
                    newer.append(name)
                    del self._changes[name]
                    continue
                change(name, kept.value)
                restored.append(name)
            except HeadraceError as error:
                text = f"{{name}}: a change of an earlier request is not made again: {error:brief}"
                fix = (f"mend it, change it anew, or remove its entry from {self._file.path}",)
                data = {"name": name}
                where = str(self._file.path)
                pipeline.note(
                    Finding("change-not-restored", "warning", text, where, data, None, fix)
                )
        if restored:
            text = "changes of earlier requests were made again: {names}"
            pipeline.note(Finding("changes-restored", "info", text, None, {"names": restored}))
        if newer:
            text = "changes of earlier requests are forgotten, the files changed since: {names}"
            pipeline.note(Finding("changes-forgotten", "warning", text, None, {"names": newer}))
            self._write(pipeline)

    def keep(self, pipeline: Pipeline, changes: Mapping[str, KeptChange]) -> None:
        """Note changes that were made, and forget those that are back at the files' values."""
        with self._lock:
            self._changes |= changes
            for name, change in changes.items():
                if change.value == change.start:
                    del self._changes[name]
            self._write(pipeline)

    def forget(self, pipeline: Pipeline, name: str) -> None:
        """Remove a change, if there is one."""
        with self._lock:
            if self._changes.pop(name, None) is not None:
                self._write(pipeline)

    def _write(self, pipeline: Pipeline) -> None:
        entries = {name: asdict(change) for name, change in self._changes.items()}
        self._file.write(pipeline, {"changes": entries})


def kept_version(
    history: ModelHistory, steps: Sequence[tuple[str, Path]], hashes: Mapping[Path, str]
) -> ModelVersion:
    """The version of an earlier process, to be loaded in this one.

    Args:
        history: of the running model.
        steps: of that version: the updates that led to it.
        hashes: of its files at that time; it is loaded only if they are the same.

    Raises:
        ConfigError: a file cannot be read, or there is no step.
    """
    if not steps:
        raise ConfigError("a version of an earlier process has no steps")
    cfg = history.first
    for kind, path in steps:
        cfg = updated_config(cfg, **{kind: path})
    number = max(history.versions) + 1
    return ModelVersion(number, steps[-1][1], cfg, dict(hashes), steps=tuple(steps))


def _parsed(content: Any) -> dict[str, KeptChange]:
    return {name: KeptChange(**entry) for name, entry in content["changes"].items()}

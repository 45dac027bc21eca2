"""A file of the state folder that a service writes at each change: its next life reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headrace._core.errors import HeadraceError
from headrace._core.files import (
    os_errors,
    os_reason,
    sha256_of,
    state_folder,
    write_atomically,
)
from headrace._core.findings import Finding
from headrace._core.text import error_text, quoted

if TYPE_CHECKING:
    from headrace.pipeline import Pipeline

T = TypeVar("T")
_VERSION = 1
_DAMAGED = ".unreadable"


def service_file(configs: Sequence[str | Path], port: int, kind: str) -> Path:
    """The file of a service: each set of configs and port has its own, of each kind."""
    names = [os.path.abspath(name) for name in configs]
    key = sha256_of("\0".join([*names, str(port)]).encode())[:16]
    return state_folder() / "services" / f"{key}.{kind}.json"


class KeptFile:
    """JSON that is written whole, and that this user alone may read.

    Args:
        path: of the file; None keeps nothing.
        what: stands in it, for messages.
    """

    def __init__(self, path: Path | None, what: str) -> None:
        self.path, self._what = path, what

    def read(self, pipeline: Pipeline, parse: Callable[[Any], T]) -> T | None:
        """Read the file; a damaged one is put aside, with a warning of the pipeline.

        Args:
            pipeline: of the service.
            parse: makes values of what `write` got; it raises HeadraceError, or what JSON of
                another form makes Python raise.

        Returns:
            The values; None without a file.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            with os_errors(HeadraceError, "it cannot be read", self.path):
                data = self.path.read_bytes()
            try:
                content = json.loads(data)
                if content["version"] != _VERSION:
                    version = quoted(str(content["version"]))
                    raise HeadraceError(f"it has version {version}", expected=str(_VERSION))
                return parse(content)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise HeadraceError(f"it is damaged: {error_text(error)}") from error
        except HeadraceError as error:
            aside = self.path.with_name(self.path.name + _DAMAGED)
            with suppress(OSError):
                self.path.replace(aside)
            text = f"{self._what} are not known any more: {error:brief}"
            fix = (f"the file is kept as {aside}",)
            pipeline.note(
                Finding("kept-unreadable", "warning", text, str(self.path), {}, None, fix)
            )
            return None

    def write(self, pipeline: Pipeline, content: Mapping[str, Any]) -> None:
        """Write the file; one that cannot be written is a warning, and the service runs on."""
        if self.path is None:
            return
        text = json.dumps({"version": _VERSION, **content}, indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self.path, [text.encode()], mode=0o600)
        except OSError as error:
            text = f"{self._what} cannot be written, and a restart will not know them: "
            text += os_reason(error)
            notice = Finding("kept-unwritten", "warning", text, str(self.path))
            if notice not in pipeline.notices:
                pipeline.note(notice)

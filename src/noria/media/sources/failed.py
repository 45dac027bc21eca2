"""A source that could not be opened, beside others that could."""

from __future__ import annotations

from collections.abc import Generator

from noria._core.errors import NoriaError
from noria._core.notices import Notice
from noria.media.frame import Frame
from noria.media.sources.base import Source


class FailedSource(Source):
    """Fails with `error` as soon as it is read, so that it is reported like any that breaks off.

    Its notice is the one that the report of a run has for it.
    """

    def __init__(self, error: NoriaError, name: str, source_id: int = 0) -> None:
        super().__init__(name, source_id)
        what = str(error).removeprefix(f"{name}: ")
        self.notices.append(Notice("warning", f"failed after 0 frames: {what}", name))
        self._error = error

    def _read(self) -> Generator[Frame, None, None]:
        raise self._error
        yield

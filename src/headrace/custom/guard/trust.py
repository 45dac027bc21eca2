"""C++ libraries that the user trusts, or that ran long enough without a fault: not guarded."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace._core.errors import CustomLibraryError
from headrace._core.files import os_reason
from headrace.custom.guard.options import state_folder


@dataclass(frozen=True, slots=True)
class Trusted:
    """One entry: the content, not the place, is trusted.

    Attributes:
        sha256: hash of the library file.
        path: its place when it became trusted.
        why: `said` (`headrace trust`) or how many calls it ran without a fault.
        since: date and time, UTC.
    """

    sha256: str
    path: str
    why: str
    since: str


class TrustStore:
    """The trusted libraries of this user, in `trusted.json` of the state folder.

    A file that cannot be read counts as empty; one that cannot be written leaves libraries
    guarded.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.file = (folder or state_folder()) / "trusted.json"

    def entries(self) -> dict[str, Trusted]:
        """Read all entries, by hash."""
        try:
            given = json.loads(self.file.read_text())
            return {e["sha256"]: Trusted(**e) for e in given["libraries"]}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def get(self, sha256: str) -> Trusted | None:
        """Return the entry of this content, None if it is not trusted."""
        return self.entries().get(sha256)

    def add(self, sha256: str, path: Path, why: str) -> Trusted:
        """Trust this content from now on.

        Raises:
            CustomLibraryError: the list cannot be written.
        """
        entry = Trusted(sha256, str(path), why, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._changing() as entries:
            entries[sha256] = entry
        return entry

    def remove(self, sha256: str) -> bool:
        """Stop trusting this content; return whether it was trusted.

        Raises:
            CustomLibraryError: the list cannot be written.
        """
        with self._changing() as entries:
            return entries.pop(sha256, None) is not None

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Trusted]]:
        from filelock import FileLock

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.file}.lock", timeout=10):
                entries = self.entries()
                yield entries
                self._write(entries)
        except OSError as error:
            raise CustomLibraryError(
                f"the list of trusted libraries cannot be written: {error}", where=str(self.file)
            ) from error

    def _write(self, entries: dict[str, Trusted]) -> None:
        text = json.dumps({"libraries": [asdict(e) for e in entries.values()]}, indent=1)
        handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".trusted")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.replace(name, self.file)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        CustomLibraryError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CustomLibraryError(
            f"the library cannot be read: {os_reason(error)}", where=str(path)
        ) from error

"""C++ libraries that the user trusts, or that ran long enough without a fault: not guarded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace._core.errors import CustomLibraryError
from headrace._core.files import hash_file, locked, os_errors, state_folder, write_atomically


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
            content = json.loads(self.file.read_text())
            return {e["sha256"]: Trusted(**e) for e in content["libraries"]}
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
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.file, timeout_s=10):
                entries = self.entries()
                yield entries
                text = json.dumps({"libraries": [asdict(e) for e in entries.values()]}, indent=1)
                write_atomically(self.file, [text.encode()])
        except OSError as error:
            raise CustomLibraryError(
                f"the list of trusted libraries cannot be written: {error}", where=str(self.file)
            ) from error


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        CustomLibraryError: it cannot be read.
    """
    with os_errors(CustomLibraryError, "the library cannot be read", path):
        return hash_file(path).sha256

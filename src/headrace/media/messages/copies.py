"""Copies of messages in a folder, for those who look for a fault: one file each."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from headrace._core.errors import MediaError
from headrace._core.files import os_errors, write_atomically

_MOST = 100_000  # files; a run of days must not fill a disk with them


class MessageCopies:
    """Writes each message as `NNNNNNNN.json`, behind those that are there; 100,000 at most.

    Args:
        folder: made if it is not there.

    Raises:
        MediaError: it cannot be made or read.
    """

    def __init__(self, folder: Path) -> None:
        with os_errors(MediaError, "copies of messages cannot be written", str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [int(p.stem) for p in folder.glob("[0-9]*.json") if p.stem.isdecimal()]
        self._folder, self._numbers = folder, count(max(numbers, default=-1) + 1)
        self._left = _MOST

    def put(self, message: bytes) -> None:
        """Write a message.

        Raises:
            MediaError: it cannot be written.
        """
        if not self._left:
            return
        self._left -= 1
        path = self._folder / f"{next(self._numbers):08d}.json"
        with os_errors(MediaError, "a copy of a message cannot be written", str(path)):
            write_atomically(path, [message], durable=False)

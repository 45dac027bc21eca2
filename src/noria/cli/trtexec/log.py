"""Lines as trtexec prints them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

TENSORRT_VERSION = "8.6.1"
"""The version whose report is printed: scripts ask for one."""


class Log:
    """Lines `[MM/DD/YYYY-HH:MM:SS] [I] text`.

    Results go to standard output, warnings and errors to standard error.
    Source: TensorRT facts 6.2.
    """

    def __init__(self, words: Sequence[str], *, verbose: bool = False) -> None:
        self.verbose_too = verbose
        major, minor, patch = (int(n) for n in TENSORRT_VERSION.split("."))
        number = f"{major}{minor}{patch:02d}"
        command = " ".join(["trtexec", *words])
        self._tail = f"TensorRT.trtexec [TensorRT v{number}] # {command}"

    def running(self) -> None:
        """Print the first line."""
        print(f"&&&& RUNNING {self._tail}", flush=True)

    def ended(self, passed: bool) -> int:
        """The last line; returns the exit status."""
        print(f"&&&& {'PASSED' if passed else 'FAILED'} {self._tail}", flush=True)
        return 0 if passed else 1

    def info(self, text: str = "") -> None:
        """Print a result."""
        self._say("I", text, sys.stdout)

    def verbose(self, text: str) -> None:
        """Print a detail, if details are asked for."""
        if self.verbose_too:
            self._say("V", text, sys.stdout)

    def warning(self, text: str) -> None:
        """Print a warning."""
        self._say("W", text, sys.stderr)

    def error(self, text: str) -> None:
        """Print an error."""
        self._say("E", text, sys.stderr)

    @staticmethod
    def _say(letter: str, text: str, stream: object) -> None:
        stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
        for line in text.splitlines() or [""]:
            safe = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
            print(f"[{stamp}] [{letter}] {safe}", file=stream, flush=True)  # type: ignore[call-overload]

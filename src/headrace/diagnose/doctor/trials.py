"""Parts of the machine that may crash or hang are looked at in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from time import monotonic
from typing import IO, Self

from headrace._core.processes import ProcessEnd, start_module
from headrace.diagnose.doctor.checks import Area, Check

_LONGEST_S = 120.0  # TensorRT builds an engine, a GPU plans its kernels
_POLITE = (signal.SIGTERM, signal.SIGHUP)  # end this process without leaving a block


class Trials:
    """`headrace doctor --part NAME` for each name, all at once; leaving the block ends them.

    Each has a session of its own and writes to files: what it starts holds nobody up, and ends
    with it. A signal that would end this process leaves the block first.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._trials: dict[str, _Trial] = {}
        self._end = monotonic() + _LONGEST_S
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            for number in _POLITE:
                with suppress(ValueError):  # not in the main thread
                    undo.callback(signal.signal, number, signal.signal(number, _leave))
            for name in self._names:
                self._trials[name] = _Trial(name, undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def checks(self, area: Area, name: str) -> list[Check]:
        """Wait for the findings about the part `name`; a process that fails is a problem."""
        trial = self._trials[name]
        fix = (f"headrace doctor --part {name} shows what it prints",)
        try:
            trial.process.wait(max(0.1, self._end - monotonic()))
        except subprocess.TimeoutExpired:
            text = f"its trial did not end within {_LONGEST_S:.0f} s"
            return [Check(area, name, "problem", text, fix)]
        end = ProcessEnd(trial.process.returncode)
        if end.signal:
            return [Check(area, name, "problem", f"its trial {end}", fix)]
        try:
            # a package may print behind it, at the end of the process
            rows = json.JSONDecoder().raw_decode(trial.text(trial.out))[0]["checks"]
        except (ValueError, KeyError, TypeError):
            last = (trial.text(trial.errors).splitlines() or ["nothing was printed"])[-1]
            return [Check(area, name, "problem", f"its trial {end}: {last}", fix)]
        return [Check(**check | {"fix": tuple(check["fix"])}) for check in rows]


class _Trial:
    def __init__(self, name: str, undo: ExitStack) -> None:
        self.out, self.errors = (undo.enter_context(_file()) for _ in range(2))
        self.process = start_module(
            "headrace",
            *("doctor", "--part", name, "--json"),
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.errors,
            start_new_session=True,
        )
        undo.callback(self._kill)

    def text(self, file: IO[bytes]) -> str:
        """The text that the process wrote to one of its files."""
        file.seek(0)
        return file.read().decode(errors="replace").strip()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # all of its session have ended
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _leave(number: int, _: object) -> None:
    raise KeyboardInterrupt(f"signal {number}")

"""Parts of the machine that may crash or hang are looked at in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from time import monotonic
from types import TracebackType
from typing import Self

from noria.diagnose.doctor.checks import Area, Check

_LONGEST_S = 120.0  # TensorRT builds an engine, a GPU plans its kernels


class Trials:
    """`noria doctor --part NAME` for each name, all at once; leaving the block ends them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._end = monotonic() + _LONGEST_S
        for name in names:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", "noria", "doctor", "--part", name, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def checks(self, area: Area, name: str) -> list[Check]:
        """Wait for the findings about the part `name`; a process that fails is a problem."""
        process = self._processes[name]
        fix = (f"noria doctor --part {name} shows what it prints",)
        try:
            out, errors = process.communicate(timeout=max(0.1, self._end - monotonic()))
        except subprocess.TimeoutExpired:
            text = f"its trial did not end within {_LONGEST_S:.0f} s"
            return [Check(area, name, "problem", text, fix)]
        if process.returncode < 0:
            number = -process.returncode
            killed = next((s.name for s in signal.Signals if s == number), f"signal {number}")
            return [Check(area, name, "problem", f"its trial was killed by {killed}", fix)]
        try:
            found = json.loads(out)["checks"]
        except (ValueError, KeyError, TypeError):
            last = (errors.strip().splitlines() or ["nothing was printed"])[-1]
            text = f"its trial ended with exit status {process.returncode}: {last}"
            return [Check(area, name, "problem", text, fix)]
        return [Check(**check | {"fix": tuple(check["fix"])}) for check in found]

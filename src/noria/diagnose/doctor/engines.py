"""Runtimes: each runs a small model in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from noria._core.cuda import why_no_gpu
from noria._core.text import error_text
from noria.diagnose.doctor.checks import Check
from noria.diagnose.doctor.trial import OUTCOME
from noria.engine.backends import BACKENDS, GPU_RUNTIMES, PACKAGES, how_to_install
from noria.engine.backends.onnxruntime_package import (
    CPU_FIX,
    gpu_fix,
    packages,
)

_TRIAL = "noria.diagnose.doctor.trial"
_LONGEST_S = 120.0  # TensorRT builds an engine, a GPU plans its kernels


def engine_checks() -> Iterator[Check]:
    """Check the packages of ONNX Runtime, and every runtime that is installed."""
    installed = packages()
    if len(installed) > 1:
        names = " and ".join(f"{name} {number}" for name, number in installed.items())
        text = f"{names} are installed and write to one folder: one damages the other"
        fix = gpu_fix() if why_no_gpu() is None else CPU_FIX
        yield Check("engine", "packages", "problem", text, (fix,))
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(_checked, BACKENDS)


def _checked(name: str) -> Check:
    try:
        return _tried(name)
    except Exception as error:  # one runtime must not hide the others
        return Check("engine", name, "problem", f"cannot be examined: {error_text(error)}")


def _tried(name: str) -> Check:
    needs = PACKAGES.get(name, ())
    if needs and not any(importlib.util.find_spec(package) for package in needs):
        return Check("engine", name, "absent", "not installed", how_to_install(name))
    if name in GPU_RUNTIMES and (reason := why_no_gpu()) is not None:
        return Check("engine", name, "absent", reason)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", _TRIAL, name],
            capture_output=True, text=True, errors="replace", timeout=_LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        text = f"a small model did not end within {_LONGEST_S:.0f} s"
        return Check("engine", name, "problem", text)
    if done.returncode < 0:
        number = -done.returncode
        killed = next((s.name for s in signal.Signals if s == number), f"signal {number}")
        return Check("engine", name, "problem", f"its process was killed by {killed}")
    marked = [line for line in done.stdout.splitlines() if line.startswith(OUTCOME)]
    if not marked:
        last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        text = f"its process ended with exit status {done.returncode}: {last}"
        return Check("engine", name, "problem", text)
    found = json.loads(marked[-1].removeprefix(OUTCOME))
    if "error" in found:
        return Check("engine", name, "problem", found["error"], tuple(found["fix"]))
    return Check(
        "engine", name, "ok", f"{found['version']}, ran a small model on {found['device']}"
    )

"""`examine`: the doctor's round over all areas."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from headrace._core.errors import HeadraceError
from headrace._core.text import error_text
from headrace.diagnose.doctor.checks import Area, Check, Findings
from headrace.diagnose.doctor.engines import engine_check, package_checks
from headrace.diagnose.doctor.gpu import gpu_checks
from headrace.diagnose.doctor.guard import guard_checks
from headrace.diagnose.doctor.surroundings import (
    compiler_checks,
    emulator_checks,
    extra_checks,
    gstreamer_check,
    video_checks,
)
from headrace.diagnose.doctor.trials import Trials
from headrace.engine.backends import BACKENDS, GPU_RUNTIMES
from headrace.engine.machine import this_machine

Look = Callable[[], Iterator[Check]]
PARTS: dict[str, Area] = {"gpu": "gpu", **dict.fromkeys(BACKENDS, "engine"), "gstreamer": "tools"}
"""What may crash or hang, so that it is looked at in a process of its own -> its area."""


def examine() -> Findings:
    """Look at everything."""
    with Trials(PARTS) as trials:
        parts: dict[str, Look] = {
            name: partial(_tried, trials, area, name) for name, area in PARTS.items()
        }
        checks = list(_survived("gpu", parts["gpu"]))
        gpu = any(check.name == "driver" and check.state == "ok" for check in checks)
        looks: tuple[tuple[Area, Look], ...] = (
            ("engine", lambda: iter(package_checks(gpu=gpu))),
            *(("engine", parts[name]) for name in BACKENDS),
            ("video", video_checks),
            ("tools", parts["gstreamer"]),
            ("tools", compiler_checks),
            ("tools", emulator_checks),
            ("guard", guard_checks),
            ("extra", extra_checks),
        )
        for area, look in looks:
            checks += _survived(area, look)
    return Findings(_system(), _device(checks), tuple(checks))


def examine_part(name: str) -> Findings:
    """Look at one of `PARTS` in this process, which it may end."""
    looks: dict[str, Look] = {
        "gpu": gpu_checks,
        "gstreamer": lambda: iter([gstreamer_check()]),
    }
    look = looks.get(name) or (lambda: iter([engine_check(name)]))
    return Findings(_system(), None, tuple(_survived(PARTS[name], look, name)))


def _tried(trials: Trials, area: Area, name: str) -> Iterator[Check]:
    return iter(trials.checks(area, name))


def _survived(area: Area, look: Look, name: str | None = None) -> Iterator[Check]:
    """Go on with the next part where one cannot be looked at."""
    try:
        yield from look()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever is installed here may fail in any way
        text = f"{error:brief}" if isinstance(error, HeadraceError) else error_text(error)
        yield Check(area, name or area, "problem", f"cannot be examined: {text}")


def _system() -> str:
    try:
        number = version("headrace")
    except PackageNotFoundError:  # its source is on the path, nothing is installed
        number = "from its source"
    python = f"Python {platform.python_version()}"
    return f"headrace {number}, {python}, {platform.platform()}, {this_machine()}"


def _device(checks: Sequence[Check]) -> str:
    """Name where a run computes: on the GPU if a runtime for it passed its trial."""
    on_gpu = any(check.name in GPU_RUNTIMES and check.state == "ok" for check in checks)
    return "cuda:0" if on_gpu else "cpu"

"""`examine`: the doctor's round over all areas."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from noria._core.errors import NoriaError
from noria._core.text import error_text
from noria.diagnose.doctor.checks import Check, Findings
from noria.diagnose.doctor.engines import engine_checks
from noria.diagnose.doctor.gpu import gpu_checks
from noria.diagnose.doctor.surroundings import extra_checks, tool_checks, video_checks
from noria.engine.backends import GPU_RUNTIMES
from noria.engine.machine import this_machine


def examine(load_gstreamer: Callable[[], Any]) -> Findings:
    """Look at everything. Runtimes, which may crash, are tried in processes of their own.

    Args:
        load_gstreamer: returns the module `Gst`, or raises `MissingExtraError`.
    """
    areas: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("gpu", gpu_checks),
        ("engine", engine_checks),
        ("video", video_checks),
        ("tools", partial(tool_checks, load_gstreamer)),
        ("extra", extra_checks),
    )
    checks = tuple(check for area, look in areas for check in _survived(area, look))
    return Findings(_system(), _device(checks), checks)


def _survived(area: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Go on with the next area where one cannot be looked at."""
    try:
        yield from look()
    except (Exception, SystemExit) as error:  # whatever is installed here may fail in any way
        text = error.found if isinstance(error, NoriaError) else error_text(error)
        yield Check(area, area, "problem", f"cannot be examined: {text}")


def _system() -> str:
    try:
        number = version("noria")
    except PackageNotFoundError:  # its source is on the path, nothing is installed
        number = "from its source"
    python = f"Python {platform.python_version()}"
    return f"noria {number}, {python}, {platform.platform()}, {this_machine()}"


def _device(checks: Sequence[Check]) -> str:
    """Name where a run computes: on the GPU if a runtime for it passed its trial."""
    on_gpu = any(check.name in GPU_RUNTIMES and check.state == "ok" for check in checks)
    return "cuda:0" if on_gpu else "cpu"

"""Loading a library in a process of its own, to see the effects of its static initialisers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.processes import ProcessEnd, module_command
from headrace._core.text import error_text
from headrace.custom.guard.crash import HANG_SIGNAL, describe, read_report
from headrace.custom.library import open_here
from headrace.plugins.registry import get_plugin_registry

MARK = "headrace-inspect:"
_REPORT_BYTES = 1 << 24


@dataclass(frozen=True)
class Creator:
    """A plugin creator that the library registered.

    Attributes:
        fields: what it takes, as `name: TYPE`.
        trouble: why its fields are not known; empty if they are.
    """

    name: str
    version: str
    namespace: str
    fields: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class LoadResult:
    """Outcome of loading the library.

    Attributes:
        ok: it is loadable.
        error: the reason if it is not.
        trace: lines of the backtrace of a crash, innermost call first.
        creators: plugin creators that its static initialisers registered.
        decisions: notices of headrace about it.
        output: its printed lines, cut.
        release: of TensorRT, as its creators told it: 8601 is 8.6.1; 0 if they did not.
    """

    ok: bool
    error: str | None = None
    creators: tuple[Creator, ...] = ()
    decisions: tuple[str, ...] = ()
    output: str = ""
    trace: tuple[str, ...] = ()
    release: int = 0


def load_in_child(path: Path, timeout_s: float) -> LoadResult:
    """Load the library in a new interpreter and report the outcome."""
    with tempfile.TemporaryFile() as report:
        fd = report.fileno()
        command = module_command("headrace.custom.inspect_load", str(path), str(fd))
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                stdin=subprocess.DEVNULL,
                pass_fds=[fd],
                check=False,
            )
        except subprocess.TimeoutExpired:
            return LoadResult(False, f"loading it did not end within {timeout_s:g} s")
        report.seek(0)
        crash = report.read(_REPORT_BYTES)
    output, _, result = done.stdout.rpartition(MARK)
    if not result:
        output = done.stdout
    printed = (output + done.stderr).strip()[-2000:]
    if result and done.returncode == 0:
        outcome = json.loads(result.partition("\n")[0])
        creators = tuple(
            Creator(name, version, namespace, tuple(fields), trouble)
            for name, version, namespace, fields, trouble in outcome["creators"]
        )
        error = outcome["error"]
        return LoadResult(
            error is None, error, creators, tuple(outcome["decisions"]), printed,
            release=outcome["release"],
        )  # fmt: skip
    error, trace = _how_it_ended(done.returncode, bool(result), crash, timeout_s)
    return LoadResult(False, error, output=printed, trace=tuple(trace))


def _how_it_ended(
    code: int, was_loaded: bool, report: bytes, timeout_s: float
) -> tuple[str, list[str]]:
    when = "when its process ended" if was_loaded else "while it was loaded"
    if crash := read_report(report):
        event, trace = describe(crash, code, "died", timeout_s)
        return f"it {event} {when}", trace
    return f"its process {ProcessEnd(code)} {'after' if was_loaded else 'while'} it was loaded", []


def _shown(creator: Any) -> tuple[object, ...]:
    fields: list[str] = []
    trouble = ""
    try:
        fields = [f"{field.name}: {field.type.name}" for field in creator.field_names]
    except Exception as error:
        trouble = error_text(error)
    named = (creator.name, creator.plugin_version, creator.plugin_namespace)
    return (*named, fields, trouble)


def _release(creator: Any) -> int:
    """Return the release that code of a creator's library named; 0 if it did not."""
    if (told := getattr(creator, "release", None)) is not None:  # of another processor's library
        return int(told)
    native = getattr(creator, "native", None)
    return 0 if native is None else int(_native.foreign_origin(native.image)[1])


def _child(path: str, report: int) -> None:
    """Load it in this process; the result is the last line of standard output."""
    # Output of the library must not get into the result, nor be lost if it ends the process.
    result: dict[str, object] = {"error": None, "creators": [], "decisions": [], "release": 0}
    _native.guard_report_to(report, HANG_SIGNAL)
    _native.guard_set_function(path)
    try:
        library = open_here(path)
    except CustomLibraryError as error:
        result["error"] = f"{error:brief}"
        _native.guard_set_function("")
    else:
        result["decisions"] = [f"{notice:brief}" for notice in library.decisions]
        own = [
            creator
            for creator in get_plugin_registry().all_creators
            if not type(creator).__module__.startswith("headrace.plugins.standard")
        ]
        result["creators"] = [_shown(creator) for creator in own]
        result["release"] = max((_release(creator) for creator in own), default=0)
        _native.guard_set_function("")
    sys.stdout.flush()
    os.write(1, f"\n{MARK}{json.dumps(result)}\n".encode())


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]))

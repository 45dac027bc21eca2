"""Run a check in a copy of this process: a plugin that ends it ends one check alone."""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import struct
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

from headrace._core import _native
from headrace._core.errors import HeadraceError
from headrace._core.text import printable
from headrace.custom.guard.crash import HANG_SIGNAL, Report, describe, read_report
from headrace.diagnose.plugin_check.arena import GUARD_PAGES, PAGE
from headrace.diagnose.plugin_check.breach import Breach, BrokenError, of_error
from headrace.diagnose.plugin_check.clauses import OF_METHODS
from headrace.plugins.spoken import CPP_NAMES, spoken
from headrace.plugins.trace import Call, Tracer

LIMIT_S = 60.0
"""Seconds of a call."""
_STEP_S = 0.5
_COUNT = struct.Struct("Q")
_MOST_BYTES = 1 << 20
Check = Callable[[], list[Breach]]


class DefectError(Exception):
    """A check failed by itself: a defect of headrace."""


def run_check(check: Check, *, ended: str | None = None) -> list[Breach]:
    """Run a check; breaches, one of them if the plugin ended the process or did not return.

    `ended` is the clause for a call of `enqueue` that ends it where no memory says another one.

    Raises:
        DefectError: an exception that is no finding about the plugin.
    """
    rows, breach = in_copy(lambda: [_row(b) for b in check()], ended=ended)
    if breach is not None:
        return [breach]
    return list(map(_breach, rows))


def in_copy(
    act: Callable[[], Any], *, ended: str | None = None, limit_s: float = LIMIT_S
) -> tuple[Any, Breach | None]:
    """Run a function in a copy of this process.

    Returns:
        what it returned (of JSON's kinds), or None and the breach that it found or ended by.

    Raises:
        DefectError: as `run_check`.
    """
    with (
        tempfile.TemporaryFile(buffering=0) as report,
        tempfile.TemporaryFile() as output,
        mmap.mmap(-1, _COUNT.size) as calls,
    ):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # nothing of this function goes on in the copy
            _become(act, read, write, report.fileno(), output.fileno(), calls)
        os.close(write)
        answer, late = _read(read, limit_s, calls)
        os.close(read)
        if late:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = read_report(os.pread(report.fileno(), _MOST_BYTES, 0))
        output.seek(0)
        last = [
            printable(line) for line in output.read()[-400:].decode("utf-8", "replace").split("\n")
        ]
    if late:
        return None, Breach("returns", f"a call did not return within {limit_s:g} s")
    if not answer:
        return None, _ended(found, code, ended, [line for line in last[-3:] if line])
    result = json.loads(answer)
    if "defect" in result:
        raise DefectError(result["defect"])
    if "breach" in result:
        return None, _breach(result["breach"])
    return result["value"], None


def _become(
    act: Callable[[], Any], read: int, write: int, report: int, output: int, calls: mmap.mmap
) -> None:
    """Be the copy."""
    code, own = 1, os.getpid()
    try:
        os.close(read)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _native.guard_report_to(report, HANG_SIGNAL)
        answer: dict[str, Any]
        try:
            with _Naming(calls):
                answer = {"value": act()}
        except BrokenError as error:
            answer = {"breach": _row(error.breach)}
        except HeadraceError as error:
            answer = {"breach": _row(of_error(error))}
        except Exception:
            answer = {"defect": traceback.format_exc()}
        data = json.dumps(answer).encode()
        while data and os.getpid() == own:  # not a process that a plugin forked
            data = data[os.write(write, data) :]
        code = 0
    finally:
        os._exit(code)


def _row(breach: Breach) -> list[Any]:
    return [breach.clause, breach.event, breach.level, list(breach.hints)]


def _breach(row: list[Any]) -> Breach:
    clause, text, level, advice = row
    return Breach(clause, text, level, "", tuple(advice))


class _Naming(Tracer):
    """Names the method that is being called for the report of a crash; counts calls."""

    def __init__(self, calls: mmap.mmap) -> None:
        super().__init__()
        self._shared, self._begun, self._process = calls, 0, os.getpid()

    def begin(self, call: Call) -> None:
        """See `Tracer`."""
        self._begun += 1
        _COUNT.pack_into(self._shared, 0, self._begun)
        _native.guard_set_function(spoken(call[2], call[3]))

    def add(self, call: Call, result: object, seconds: float, error: str, creates: bool) -> None:
        """See `Tracer`."""
        if os.getpid() != self._process:  # the call forked, and both came back
            os._exit(0)
        _native.guard_set_function("")


_PYTHON_NAMES = {cpp: name for name, cpp in CPP_NAMES.items()}


def _read(pipe: int, limit_s: float, calls: mmap.mmap) -> tuple[bytes, bool]:
    """Read the answer of the copy; True with it if one call takes all the time.

    Time counts in steps that this process sees: none passes for two that are stopped.
    """
    data, waited, seen = b"", 0.0, -1
    step = min(_STEP_S, limit_s)
    while True:
        if select.select([pipe], [], [], step)[0]:
            part = os.read(pipe, 1 << 16)
            if not part:
                return data, False
            data += part
            continue
        waited += step
        (number,) = _COUNT.unpack_from(calls)
        if number != seen:
            seen, waited = number, 0.0
        elif waited >= limit_s:
            return b"", True


def _ended(report: Report | None, code: int, ended: str | None, said: list[str]) -> Breach:
    """The breach that the end of a copy stands for."""
    event, trace = describe(report, code, "died", 0.0)
    method = report.function if report is not None else ""
    if (placed := _placed(report)) is not None:
        clause, text = placed
        return Breach(clause, text, "error", "", tuple(trace[:3]))
    name = _PYTHON_NAMES.get(method, method)
    clause = OF_METHODS.get(name, "destroy" if not method else "enqueue")
    if report is not None and report.message.startswith("uncaught"):
        clause = "exceptions"
    elif clause == "enqueue" and ended is not None:
        clause = ended
    who = f"{method} " if method else "code between the calls "
    return Breach(clause, f"{who}{event}", "error", "", (*trace[:3], *said))


def _placed(report: Report | None) -> tuple[str, str] | None:
    """Clause and words for an access to memory that a check has set up."""
    if report is None or report.signal not in (signal.SIGSEGV, signal.SIGBUS):
        return None
    slack = GUARD_PAGES * PAGE
    near = [
        (min(abs(report.address - start), abs(report.address - end)), start, end, name)
        for start, end, name in report.regions
        if start <= report.address < end
        or (not name.startswith("old") and start - slack <= report.address < end + slack)
    ]
    if not near:
        return None
    inside = [one for one in near if one[1] <= report.address < one[2]]
    _, start, end, name = min(inside or near)
    verb = {"write": "writes", "read": "reads"}.get(report.access, "accesses")
    kind, _, rest = name.partition(": ")
    if kind == "old":
        return "addresses-kept", f"{report.function} {verb} the memory of {rest}"
    if kind == "lent":
        clause = "deserialize-lent" if "deserialize" in rest else "fields-lent"
        when = "past the end of" if report.address >= end else "after the call"
        return clause, f"{report.function} {verb} {when} {rest}".replace(
            "after the call", "after its call the"
        )
    if inside:
        return "inputs-read-only", f"{report.function} writes into {name}"
    place = "before the start of" if report.address < start else "past the end of"
    text = f"{report.function} {verb} {place} {name} ({end - start:,} bytes)"
    for part in ("input", "output", "workspace"):
        if part in name:
            return f"{part}{'' if part == 'workspace' else 's'}-bounds", text
    return None

"""How a worker ended: the report of its signal handler, words and errors for it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from headrace._core.errors import CustomLibraryError, ParserError, PluginError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import FAULT_HINT
from headrace._core.processes import signal_name
from headrace.binary.elf import ElfError, ElfFile
from headrace.custom.guard.symbols import MappedFile, trace
from headrace.plugins.spoken import FUNCTION, METHOD

HANG_SIGNAL = signal.SIGRTMAX - 3
"""Makes a worker report the place where it is."""

Ending = Literal["died", "late", "nonsense"]
_SLACK = 1 << 20  # how far past the end of known memory a fault still is its doing
_PYTHON_LINES = 12

_SANITIZERS = {
    "__asan_": "AddressSanitizer",
    "__tsan_": "ThreadSanitizer",
    "__msan_": "MemorySanitizer",
    "__ubsan_": "UndefinedBehaviorSanitizer",
}

# What a function may leave for headrace to free -> where it must be from.
_ALLOCATED = {"attributeLabel": "strdup or malloc", "mask": "new float[]"}


@dataclass(slots=True)
class Report:
    """A report of the signal handler; format: `native/src/guard/crash.cpp`.

    Attributes:
        signal: number, or None.
        code: si_code of the signal.
        address: the place that was accessed.
        access: `read`, `write` or `-`.
        exit: status given to exit, or None.
        gpu: the fault that broke its context of CUDA.
        function: the one that was being called.
        release: field of its result that headrace was releasing.
        refused: the last call of it that was answered with null, false or zero.
        message: of an exception or a failed assertion.
        overflow: the stack is used up.
        pc: where it happened.
        frames: addresses, innermost first.
        maps: the memory map.
        symbols: frame address -> (name, offset), as the process itself knew them.
        regions: (start, end, name) of memory whose end is guarded.
        rest: lines of Python's own handler.
    """

    signal: int | None = None
    code: int = 0
    address: int = 0
    access: str = "-"
    exit: int | None = None
    gpu: str = ""
    function: str = ""
    release: str = ""
    refused: str = ""
    message: str = ""
    overflow: bool = False
    pc: int | None = None
    frames: list[int] = field(default_factory=list)
    maps: list[MappedFile] = field(default_factory=list)
    symbols: dict[int, tuple[str, int]] = field(default_factory=dict)
    regions: list[tuple[int, int, str]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def read_report(data: bytes) -> Report | None:
    """Read a report, as far as it was written; None if there is none."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines or lines[0] != "headrace-crash 1":
        return None
    report = Report()
    ended = False
    for line in lines[1:]:
        if ended:
            report.rest.append(line)
        elif line == "end":
            ended = True
        else:
            try:
                _read_line(report, *line.partition(" ")[::2])
            except (ValueError, IndexError):  # its memory may have been overwritten
                continue
    return report


def _read_line(report: Report, key: str, value: str) -> None:
    words = value.split()
    match key:
        case "signal":
            report.signal, report.code = int(words[0]), int(words[1])
            report.address, report.access = int(words[2], 16), words[3]
        case "exit":
            report.exit = int(value)
        case "stack-overflow":
            report.overflow = True
        case "gpu" | "function" | "release" | "refused" | "message":
            setattr(report, key, value.strip() if key == "message" else value)
        case "pc":
            report.pc = int(value, 16)
        case "frame":
            report.frames.append(int(value, 16))
        case "map":
            if mapping := MappedFile.parse(value):
                report.maps.append(mapping)
        case "symbol":
            report.symbols[int(words[0], 16)] = (words[2], int(words[1]))
        case "region":
            start, end, name = value.split(" ", 2)
            report.regions.append((int(start, 16), int(end, 16), name))


def describe(
    report: Report | None, code: int | None, ending: Ending, timeout_s: float
) -> tuple[str, list[str]]:
    """Describe an end: (the event in words, lines of the backtrace).

    Args:
        report: of the signal handler, None if there is none.
        code: exit code of the process, negative for a signal.
        ending: as the application saw it.
        timeout_s: limit of the call, for `late`.
    """
    lines: list[str] = []
    if report:
        thrown = report.message.startswith("uncaught ")
        ended = report.signal == signal.SIGABRT or report.exit is not None
        arguments = report.frames, report.pc, report.maps, report.symbols
        lines = trace(*arguments, thrown=thrown, ended=ended)
        lines = report.rest[:_PYTHON_LINES] or lines
    if ending == "late":
        return f"did not return within {timeout_s:g} s and was ended", lines
    if ending == "nonsense":
        return "overwrote the memory of its worker", lines
    if report is None:
        return _by_code(code), lines
    if report.gpu:  # found out after the call: the frames are not its own
        return f"left the GPU unusable: {report.gpu}", [FAULT_HINT]
    if report.exit is not None:
        return f"ended its process by exit({report.exit})", lines
    if report.signal is None:  # what it wrote cannot be read
        return _by_code(code), lines
    said = f": {report.message}" if report.message else ""
    if allocation := _ALLOCATED.get(report.release):
        name, freed = report.release, "headrace frees it after the call"
        article = "an" if name[0] in "aeiou" else "a"
        hints = [f"{name} must be allocated with {allocation}: {freed}"]
        if "invalid pointer" not in report.message:
            hints.append(
                "or it was freed already, or the function wrote past the end of memory of its own: "
                "compiled by headrace compile --sanitize address it says where"
            )
        failed = f"({signal_name(report.signal)}{said})"
        return f"gave {article} {name} that headrace could not release {failed}", hints
    if report.overflow:
        return "used up its stack (endless recursion, or arrays too large for it)", lines
    if report.signal == signal.SIGABRT:
        return f"aborted (SIGABRT){said}", lines
    answered = f"; before, {report.refused} was answered with null" if report.refused else ""
    return _by_signal(report) + said + answered, lines


def _by_signal(report: Report) -> str:
    assert report.signal is not None
    event = f"crashed ({signal_name(report.signal)})"
    if report.signal == signal.SIGFPE:
        return f"{event}, an integer was divided by zero or overflowed"
    if report.signal != signal.SIGSEGV:
        return event
    access = {"read": "reading", "write": "writing"}.get(report.access, "accessing")
    if past := _past_the_end(report):
        return f"{event}, {access} {past}"
    if report.code in (0, 128):  # sent, or an address that cannot be
        return event
    target = "a null pointer" if report.address < 4096 else f"address {report.address:#x}"
    return f"{event}, {access} {target}"


def _past_the_end(report: Report) -> str | None:
    past = [
        (report.address - end, f"past the end of {name} ({end - start:,} bytes)")
        for start, end, name in report.regions
        # Only the page right behind is known to be a guard; farther away it is a guess.
        if end > start and 0 <= report.address - end < _SLACK
    ]
    return min(past, key=lambda one: one[0])[1] if past else None


def _by_code(code: int | None) -> str:
    if code is None:
        return "ended its process"
    if code == 71:
        return "closed file descriptors that it did not open: its worker lost its connection"
    if code >= 0:
        return f"ended its process (exit status {code})"
    if -code == signal.SIGKILL:
        return "was killed (SIGKILL), perhaps by the kernel because memory ran out"
    return f"crashed ({signal_name(-code)})"


def sanitizer_of(library: str) -> str | None:
    """Name the sanitizer that a library was compiled with, by the functions that it calls.

    A sanitizer ends the process itself, after a report of its own.
    """
    try:
        symbols = [s.name for s in ElfFile.read(Path(library)).symbols]
    except (ElfError, OSError):
        return None
    for prefix, name in _SANITIZERS.items():
        if any(symbol.startswith(prefix) for symbol in symbols):
            return name
    return None


@dataclass(slots=True)
class Death:
    """One end of a worker.

    Attributes:
        found: the end in words: `crashed (SIGSEGV), reading a null pointer`.
        trace: lines of the backtrace, innermost call first.
        report: of its signal handler, if that could write one.
        code: its exit code, negative for a signal; None if it is lost.
        on_frame: completes the saved case.
        late: it was ended because it took too long.
    """

    found: str
    trace: list[str]
    report: Report | None
    code: int | None
    on_frame: Callable[[object, int], None] | None = None
    late: bool = False

    @property
    def who(self) -> str:
        """The code that ended it: a method of a plugin, else the function that was called."""
        named = self.report.function if self.report is not None else ""
        return named if named.startswith((METHOD, FUNCTION)) else "the function"

    @property
    def past_the_end(self) -> bool:
        """Whether it died of an access behind the end of a tensor."""
        report = self.report
        if report is None or report.signal != signal.SIGSEGV:
            return False
        return _past_the_end(report) is not None


class LibraryDiedError(ParserError):
    """The worker of a library died in a call, or is not started any more.

    Attributes:
        death: how; None if it was not started.
    """

    ended_worker = True

    def __init__(self, problem: str | Finding, *, death: Death | None = None, **more: Any) -> None:
        super().__init__(problem, **more)
        self.death = death

    @property
    def same(self) -> str:
        """Text that is equal for the same fault in another call."""
        trace = [] if self.death is None else self.death.trace
        return "\n".join([self.where or "", f"{self:brief}", *trace])

    def while_loading(self, path: Path) -> CustomLibraryError:
        """The same of a library that was being loaded."""
        finding = self.finding
        if self.death is not None:
            finding = replace(finding, wording="the library {end}")
        finding = finding.changed(suffix=" while it was loaded")
        return CustomLibraryError(finding, where=str(path), code=CustomLibraryError.code)

    def in_frame(self, source: object, frame: int) -> None:
        """Note in the saved case which frame its inputs are from."""
        if self.death is not None and self.death.on_frame is not None:
            self.death.on_frame(source, frame)


class PluginDiedError(PluginError):
    """The worker died in a call of a plugin, or is not started any more: a batch has no results."""

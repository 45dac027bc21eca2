"""Inspection of a C++ library: its functions, its needs, its behaviour while it is loaded."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from headrace.binary.abi import Evidence, all_evidence, static_evidence
from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import (
    EntryPoint,
    entry_points,
    export_hints,
    filled,
    returns_boxes,
    uses_host,
)
from headrace.binary.library_search import find_library
from headrace.binary.symbol_names import demangled
from headrace.custom.emulated.emulator import why_not_here
from headrace.custom.inspect_load import LoadResult, load_in_child
from headrace.custom.inspect_tensorrt import TensorrtReport, tensorrt_report
from headrace.custom.load_errors import (
    check_header,
    compile_command,
    missing_versions,
)
from headrace.custom.stand_ins import Demand, demands, is_nvidia, supported, undefined_names


@dataclass(frozen=True)
class LinkedLibrary:
    """A library that it is linked against.

    Attributes:
        state: `found`, `stand-in` (headrace puts one in its place), `missing`, or `not looked for`:
            it is of a machine whose libraries do not run here.
        path: where the loader finds it.
        functions: what is asked of it, where that is known: of stand-ins, or by symbol versions.
    """

    name: str
    state: Literal["found", "stand-in", "missing", "not looked for"]
    path: str | None = None
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class LibraryReport:
    """The report of `headrace inspect`.

    Attributes:
        machine: the CPU it is built for.
        built_with: what its compilers left in it: names and versions.
        entry_points: the functions that a host would call.
        fills: kinds of parsers that its code must have, by the vectors that it instantiates.
        box_bytes: 24 or 28, None if nothing tells, or no parser returns boxes.
        evidence: each hint at it, the decisive one first.
        headers: `headrace` if it was compiled against headrace's headers, `nvidia` if its symbols
            tell that, else None.
        linked: what it is linked against.
        undefined: strong symbols that nothing offers: it cannot be loaded.
        too_new: (library, versions that it needs, newest here).
        load: what happened when it was loaded in a process of its own; None: not tried.
        returns_boxes: whether it seems to have a detector parser.
        tensorrt: what it asks of TensorRT and CUDA; None if nothing.
        hints: what to do.
    """

    path: Path
    machine: str
    soname: str | None
    size_bytes: int
    built_with: tuple[str, ...]
    entry_points: tuple[EntryPoint, ...]
    fills: tuple[str, ...]
    box_bytes: int | None
    evidence: tuple[Evidence, ...]
    headers: Literal["headrace", "nvidia"] | None
    linked: tuple[LinkedLibrary, ...]
    undefined: tuple[str, ...]
    too_new: tuple[tuple[str, str, str], ...]
    load: LoadResult | None
    returns_boxes: bool = True
    tensorrt: TensorrtReport | None = None
    hints: tuple[str, ...] = field(default=())

    @property
    def built(self) -> str:
        """Machine, compilers and headers that it was built for."""
        headers = (
            f"against {self.headers.replace('nvidia', 'NVIDIA')}'s headers" if self.headers else ""
        )
        return ", ".join([self.machine, *self.built_with[:3], *([headers] if headers else [])])

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON types."""
        data = asdict(self)
        data["path"] = str(self.path)
        for point, shown in zip(self.entry_points, data["entry_points"], strict=True):
            shown |= {"key": point.about.key, "signature": point.about.signature}
            shown["called"] = point.about.called
        return data


def inspect_library(
    path: str | Path, *, load: bool = True, timeout_s: float = 20.0
) -> LibraryReport:
    """Inspect a C++ library: its file, and its behaviour while it is loaded.

    Args:
        path: the library.
        load: load it, in a child process, to see its plugin creators, or how it fails. That runs
            its code, with this process's rights.
        timeout_s: how long loading may take.

    Raises:
        CustomLibraryError: the file is no shared library, or of another machine and unreadable.
    """
    path = Path(path).absolute()
    elf = check_header(path, any_machine=True)
    other, help_of_it = why_not_here(elf)
    here = not other
    asked = demands(elf) if here else []
    boxes = returns_boxes(elf)
    report = LibraryReport(
        path=path,
        machine=elf.machine_name,
        soname=elf.soname,
        size_bytes=len(elf.data),
        built_with=elf.compilers(),
        entry_points=tuple(entry_points(elf)),
        fills=filled(elf),
        box_bytes=static_evidence(elf).layout if boxes else None,
        evidence=tuple(all_evidence(elf)) if boxes else (),
        headers=_headers(elf),
        linked=tuple(_linked(name, elf, asked, here) for name in elf.needed),
        undefined=tuple(map(demangled, undefined_names(elf))) if here else (),
        too_new=tuple(missing_versions(elf)) if here else (),
        load=load_in_child(path, timeout_s) if load and here else None,
        returns_boxes=boxes,
    )
    release = report.load.release if report.load else 0
    told = tensorrt_report(elf, report.entry_points, release, here=here)
    report = replace(report, tensorrt=told)
    return replace(report, hints=(*filter(None, [help_of_it]), *_hints(report, elf, here)))


def _linked(name: str, elf: ElfFile, asked: list[Demand], here: bool) -> LinkedLibrary:
    by_version = tuple(demangled(s.name) for s in elf.symbols if s.needed_from == name)
    demand = next((d for d in asked if d.soname == name), None)
    if demand is not None and supported():
        names = tuple(demangled(symbol) for symbol, _ in demand.names)
        return LinkedLibrary(name, "stand-in", None, names)
    shown = by_version if is_nvidia(name) else ()
    if not here:
        return LinkedLibrary(name, "not looked for", None, shown)
    path = find_library(name, elf)
    if path is None:
        return LinkedLibrary(name, "missing", None, shown or by_version)
    return LinkedLibrary(name, "found", str(path), shown)


def _headers(elf: ElfFile) -> Literal["headrace", "nvidia"] | None:
    names = {s.name for s in elf.symbols}
    if any(
        n.startswith(("headrace_abi_box_bytes", "headrace_host_api", "headrace_headers"))
        for n in names
    ):
        return "headrace"
    if any("nvinfer1" in n or n.startswith("getPluginRegistry") for n in names):
        return "nvidia"
    return None


def _hints(report: LibraryReport, elf: ElfFile, here: bool) -> list[str]:
    hints = []
    command = compile_command("parser.cpp")
    if not here:
        hints.append(f"compile its source on this machine: {command}")
    if missing := [lib.name for lib in report.linked if lib.state == "missing"] if here else []:
        hints.append(f"install {', '.join(missing)}, or name their folder in LD_LIBRARY_PATH")
    if report.undefined:
        hints.append("was every source file of the parser linked into it?")
    if report.too_new:
        hints.append(f"it was built on a newer system: compile its source here: {command}")
    if report.box_bytes is None and any(p.kind == "detector" for p in report.entry_points):
        hints.append("the size of boxes shows when it runs; or set custom-lib-abi to 24 or 28")
    if device := [p.name for p in report.entry_points if p.device]:
        hints.append(f"{', '.join(device)}: for GPU memory; use the counterpart for host memory")
    # one that was not loaded may have plugins
    others = bool(report.load.creators) if report.load and report.load.ok else uses_host(elf)
    hints += export_hints(elf, has_plugins=others)
    if report.load is not None and not report.load.ok:
        code = f"import headrace.custom; headrace.custom.open_library({str(report.path)!r})"
        command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
        hints.append(f"a debugger tells more: gdb -ex run --args {command}")
    return hints

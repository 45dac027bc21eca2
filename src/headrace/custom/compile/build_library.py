"""Compiling a custom library or a program from its sources, with a plain C++ compiler."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from headrace._core.errors import CustomLibraryError
from headrace._core.files import os_reason
from headrace._core.findings import Finding
from headrace.custom.compile.absent_libraries import link_stubs
from headrace.custom.compile.absent_libraries import notice_of as notice_of_stubs
from headrace.custom.compile.errors import compile_failed, undefined_in
from headrace.custom.compile.toolchain import (
    GENERATIONS,
    GSTREAMER,
    Generation,
    application_flags,
    c_compiler,
    cuda_home,
    find_compiler,
    find_nvcc,
    gpu_present,
    has_gstreamer,
    header_flags,
    include_dir,
    link_dir,
    package_flags,
    run_folders,
)
from headrace.custom.compile.trt_generation import (
    MACRO,
    USUAL,
    evidence_of,
    is_chosen,
    notice_of,
    texts_of,
    tried,
)

CudaMode = Literal["auto", "host", "nvcc"]

_NVCC_TAKES = ("-std=c++17", "--expt-relaxed-constexpr", "--extended-lambda")
"""What build files of kernels commonly allow."""
_CUB_NAMES = include_dir() / "headrace" / "cub_names.h"
HOST_SUFFIXES = (".cpp", ".cc", ".cxx")


@dataclass(frozen=True)
class Unit:
    """One file to compile.

    Attributes:
        device: whether nvcc compiles it, or it is linked with what nvcc compiled.
        nvcc: the program, for `.cu` files.
        is_c: whether a file named `.c` is compiled as C, as Makefiles of applications do.
    """

    source: Path
    device: bool = False
    nvcc: str | None = None
    is_c: bool = False

    def command(
        self,
        compiler: str,
        common: Sequence[str],
        folders: Sequence[str],
        headers: Sequence[str],
        target: Path,
    ) -> list[str]:
        """Return the command that makes the object file `target` of it."""
        if self.source.suffix in (".o", ".a"):
            return ["cp", str(self.source), str(target)]
        cuda = [f"-I{self.home() / 'include'}"] if self.device else []
        ends = [*folders, *cuda, *headers, "-c", str(self.source), "-o", str(target)]
        if self.source.suffix == ".c" and self.is_c:
            plain = [f for f in common if not f.startswith("-std=")]
            return [c_compiler(compiler), *plain, *ends]
        if not (self.nvcc and self.source.suffix == ".cu"):
            return [compiler, *common, *ends]
        for_host = [f for f in common if f != "-fPIC" and not f.startswith("-std=")]
        passed = ",".join(["-fPIC", *[f for f in for_host if f.startswith("-W")]])
        rest = [f for f in for_host if not f.startswith(("-W", "-fsanitize", "-fno-omit"))]
        before = ["-include", str(_CUB_NAMES)]
        return [self.nvcc, "-ccbin", compiler, *_NVCC_TAKES, *before, "-Xcompiler", passed, *rest,
                *ends]  # fmt: skip

    def link_flags(self) -> list[str]:
        """Return linker flags beside a device unit's object."""
        return [f"-L{self.home() / 'lib64'}", "-lcudart"]

    def home(self) -> Path:
        """Return the folder of nvcc's toolkit.

        Raises:
            CustomLibraryError: it lacks its headers.
        """
        home = cuda_home(self.nvcc or "nvcc")
        if home is None:
            raise CustomLibraryError(
                "CUDA's headers are not beside nvcc", fix="name the toolkit's folder in CUDA_HOME"
            )
        return home


def host_file(source: Path) -> Path | None:
    """The C++ file that stands for `x.cu` on a CPU: `x_host.cpp` beside it."""
    for suffix in HOST_SUFFIXES:
        if (path := source.with_name(f"{source.stem}_host{suffix}")).is_file():
            return path
    return None


def compile_units(sources: Sequence[Path], mode: CudaMode) -> tuple[list[Unit], list[Finding]]:
    """Choose the files to compile for these sources; with notices about `.cu` files.

    Raises:
        CustomLibraryError: a `.cu` file can be compiled neither way.
    """
    if mode not in ("auto", "host", "nvcc"):
        raise CustomLibraryError(f"cuda={mode!r} is none", expected="auto, host or nvcc")
    kernels = [s for s in sources if s.suffix == ".cu"]
    if not kernels:
        return [Unit(s) for s in sources], []
    nvcc = find_nvcc() if mode != "host" else None
    if mode == "nvcc" and nvcc is None:
        raise CustomLibraryError(
            "there is no nvcc on this machine",
            where=str(kernels[0]),
            fix=["install NVIDIA's CUDA toolkit", _host_hint(kernels[0])],
        )
    lacking = [s for s in kernels if host_file(s) is None]
    if nvcc and (mode == "nvcc" or gpu_present() or lacking):
        findings = [
            Finding("compiled-with", "info", f"compiled with {nvcc}", str(s)) for s in kernels
        ]
        if not gpu_present():
            text = "this machine has no GPU to run it"
            findings.append(Finding("no-gpu", "warning", text, str(kernels[0])))
        return [Unit(s, device=True, nvcc=nvcc) for s in sources], findings
    if lacking:
        raise CustomLibraryError(
            "CUDA code cannot be compiled for the CPU",
            where=str(lacking[0]),
            fix=[
                _host_hint(lacking[0]),
                "or leave the file out: parsers for host memory do not need it",
            ],
        )
    units, notices, paths = [], [], {s.absolute() for s in sources}
    for source in sources:
        beside = host_file(source) if source.suffix == ".cu" else None
        if beside is None:
            units.append(Unit(source))
            continue
        notices.append(
            Finding("compiled-instead", "info", f"{beside.name} is compiled instead", str(source))
        )
        if beside.absolute() not in paths:
            units.append(Unit(beside))
    return units, notices


def _host_hint(source: Path) -> str:
    return (
        f"write its functions for the CPU in {source.stem}_host.cpp beside it: "
        "that file is compiled instead"
    )


Sanitizer = Literal["address", "undefined"]
ENTRY = include_dir() / "headrace" / "program.cpp"
"""The source of the entry of programs."""
PROGRAM_FLAGS = ("-Wl,--entry=headrace_program_entry", "-Wl,--require-defined=main")
SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu")
HEADER_SUFFIXES = (".h", ".hpp", ".hh", ".cuh")


@dataclass(frozen=True)
class CompileResult:
    """A library or program that was compiled.

    Attributes:
        library: the file, absolute.
        commands: what ran, in order; every word one argument.
        notices: what was decided (host files for .cu sources, …) and warnings about the result.
        seconds: how long it took.
    """

    library: Path
    commands: tuple[tuple[str, ...], ...]
    notices: tuple[Finding, ...] = ()
    seconds: float = 0.0


# addr2line of binutils 2.40 names a wrong file for inlined code of version 5
_SYMBOLS = "-gdwarf-4"


def compile_library(
    sources: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    generation: Generation = "9.x",
    include: Sequence[str | Path] = (),
    define: Sequence[str] = (),
    flags: Sequence[str] = (),
    links: Sequence[str] = (),
    standard: str = "gnu++17",
    debug: bool = False,
    sanitize: Sequence[Sanitizer] = (),
    cuda: CudaMode = "auto",
    compiler: str | None = None,
    dry_run: bool = False,
    program: bool = False,
) -> CompileResult:
    """Compile the sources of a custom library against headrace's headers.

    Args:
        sources: C++ files, unchanged; `.cu` files see `cuda`.
        output: the library; None: `lib<first source>.so` in the working directory, or
            `<first source>` for a program.
        generation: view of the headers: `9.x` (28-byte boxes) or `6.x` (24-byte boxes, as programs
            of 5.0 to 8.0 expect). Headrace reads both.
        include: further folders of headers, searched before headrace's.
        define: macros, `NAME` or `NAME=value`.
        flags: further flags of the compiler, such as `-fpermissive`.
        links: further arguments of the linker, such as `-lopencv_core`.
        standard: of C++, for `-std`.
        debug: with symbols and without optimisation.
        sanitize: instrument with these sanitisers; run the program with the matching LD_PRELOAD.
        cuda: what becomes of `.cu` files: `host` takes the C++ file `x_host.cpp` beside `x.cu`,
            `nvcc` compiles for the GPU, `auto` does the latter where nvcc and a GPU are.
        compiler: instead of `$CXX` or g++.
        dry_run: only tell the commands.
        program: True makes a program that can be started, see `headrace.trt.host.program`.

    Raises:
        CustomLibraryError: no compiler, no sources, or the compiler or linker refuses them: with
            its first messages, and what to do about them.
    """
    started = time.perf_counter()
    if generation not in GENERATIONS:
        raise CustomLibraryError(
            f"generation={generation!r} is none", expected=" or ".join(GENERATIONS)
        )
    files = _checked_sources(sources)
    usual = files[0].stem if program else f"lib{files[0].stem}.so"
    target = Path(output) if output is not None else Path(usual)
    target = target.absolute()
    if not target.parent.is_dir():
        raise CustomLibraryError(
            "the folder of the library does not exist", where=str(target.parent)
        )
    _check_target(target)
    tool = find_compiler(compiler)
    common = [f"-std={standard}", "-fPIC", "-Wall", *(["-O0", _SYMBOLS] if debug else ["-O2"])]
    common += [f"-fsanitize={s}" for s in sanitize]
    if sanitize:
        common += ["-fno-omit-frame-pointer", _SYMBOLS]
    common += [f"-D{macro}" for macro in define] + list(flags)
    folders = [f"-I{folder}" for folder in include]
    units, notices = compile_units(files, cuda)
    is_application = program and uses_gstreamer(files)
    is_plugin = not program and uses_gstreamer(files) and has_gstreamer()
    if is_application or is_plugin:
        units = [replace(unit, is_c=True) for unit in units]
        common.append("-D_GNU_SOURCE")
    if cuda == "host" or (
        any(f.suffix == ".cu" for f in files) and not any(u.device for u in units)
    ):
        common.append("-DHEADRACE_CUDA_HOST")
    with tempfile.TemporaryDirectory(prefix="headrace-compile-") as scratch:
        headers = header_flags(generation)
        if is_application or is_plugin:
            headers = [*headers, *package_flags(GSTREAMER, "--cflags")]
        objects = [str(Path(scratch, f"{i}_{u.source.stem}.o")) for i, u in enumerate(units)]

        def commands(more: Sequence[str] = ()) -> list[tuple[Path, list[str]]]:
            return [
                (u.source, u.command(tool, [*common, *more], folders, headers, Path(name)))
                for u, name in zip(units, objects, strict=True)
            ]

        compiles = commands()
        if not dry_run:
            try:
                _compile_all(compiles, files)
            except CustomLibraryError as error:
                if is_chosen(define, flags):
                    raise
                major, notice = _generation(error, commands, files)
                common.append(f"-D{MACRO}={major}")
                notices.append(notice)
                compiles = commands()
                _compile_all(compiles, files)
        if is_application:
            link = [tool, *(f for f in common if f.startswith("-fsanitize=")), *objects, "-o",
                    str(target), *links, *_plugin_links(), "-lm", "-ldl", "-lpthread"]  # fmt: skip
        elif program:
            objects.append(str(Path(scratch, "entry.o")))
            compiles.append((ENTRY, entry_command(tool, headers, objects[-1])))
            if not dry_run:
                _compile_all(compiles[-1:], files)
        entry = PROGRAM_FLAGS if program else ()
        if not is_application:
            own = _plugin_links() if is_plugin else []
            link = _link_command(units, objects, target, tool, common, [*entry, *links, *own])
        if not dry_run:
            home = None if gpu_present() else next((u.home() for u in units if u.device), None)
            if stubs := _link_all(link, files, home, Path(scratch)):
                notices.append(notice_of_stubs(stubs, target))
    return CompileResult(
        target,
        tuple(tuple(command) for command in [*(c for _, c in compiles), link]),
        tuple(notices),
        seconds=time.perf_counter() - started,
    )


def _plugin_links() -> list[str]:
    """List the linker's flags for GStreamer and headrace's library."""
    return [*application_flags("--libs"), *(f"-Wl,-rpath,{folder}" for folder in run_folders())]


_OF_GSTREAMER = re.compile(
    rb'^\s*#\s*include\s*[<"](gst/|glib|gstnvds|nvdscustomlib)', re.MULTILINE
)
_BESIDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def uses_gstreamer(sources: Sequence[Path]) -> bool:
    """True where a source, or a header beside it, includes GStreamer's or GLib's headers."""
    waiting = [source for source in sources if source.suffix in SOURCE_SUFFIXES]
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        seen.add(file)
        text = file.read_bytes()
        if _OF_GSTREAMER.search(text):
            return True
        beside = (file.parent / os.fsdecode(name) for name in _BESIDE.findall(text))
        waiting += [path for path in beside if path not in seen and path.is_file()]
    return False


def _generation(
    error: CustomLibraryError,
    commands: Callable[[Sequence[str]], list[tuple[Path, list[str]]]],
    files: Sequence[Path],
) -> tuple[int, Finding]:
    """Find the release of TensorRT that sources compile with which the usual one refuses.

    Raises:
        CustomLibraryError: no release takes them: `error`, or that of the nearest release.
    """
    text = "\n".join(texts_of(files))
    if not evidence_of(text)[0]:
        raise error
    attempts = tried(text, lambda m: commands([f"-D{MACRO}={m}"] if m != USUAL else []))
    if len(attempts) == 1:
        raise error
    if not attempts[-1].errors:
        return attempts[-1].major, notice_of(attempts[-1].major, text, files[0])
    nearest = min(attempts, key=lambda one: one.errors)
    if nearest is not attempts[0]:
        error = compile_failed(nearest.output, nearest.refused[0], nearest.command, files)
    counts = ", ".join(f"{a.major}: {a.errors}" for a in attempts)
    hint = f"releases of TensorRT were tried (errors: {counts})"
    if nearest is not attempts[0]:
        hint += f"; {nearest.major} is the nearest: -D {MACRO}={nearest.major}"
    raise CustomLibraryError(error.finding.changed(fix=[hint])) from None


def entry_command(compiler: str, headers: Sequence[str], target: str) -> list[str]:
    """Return the command that compiles the entry of a program, which starts this Python."""
    python = sys.executable.replace("\\", "\\\\").replace('"', '\\"')
    macro = f'-DHEADRACE_PYTHON="{python}"'
    return [compiler, "-std=gnu++17", "-fPIC", "-O2", macro, *headers, "-c", str(ENTRY),
            "-o", target]  # fmt: skip


def _check_target(target: Path) -> None:
    """A library replaces a library only: never a source, or another file."""
    try:
        with open(target, "rb") as file:
            head = file.read(4)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CustomLibraryError(
            f"the library cannot be written: {os_reason(error)}", where=str(target)
        ) from error
    if head not in (b"\x7fELF", b""):
        raise CustomLibraryError(
            "is there already and is no library: it is not overwritten",
            where=str(target),
            fix="choose another name with -o",
        )


def _link_command(
    units: Sequence[Unit],
    objects: Sequence[str],
    target: Path,
    program: str,
    common: Sequence[str],
    links: Sequence[str],
) -> list[str]:
    sanitizers = [flag for flag in common if flag.startswith("-fsanitize=")]
    command = [program, "-shared", *sanitizers, *objects, "-o", str(target)]
    if not sanitizers:  # their runtime comes with the program that loads the library
        command.append("-Wl,--no-undefined")
    # some compilers link their C++ library statically: exported, it would mix with that of the
    # process, whose templates' statics are found first
    command += ["-Wl,--exclude-libs,libstdc++.a", *links]
    if device := next((unit for unit in units if unit.device), None):
        command += device.link_flags()  # before headrace's link libraries, which add nothing
    command.append(f"-L{link_dir()}")
    if _has_filesystem_archive(program):
        command.append("-lstdc++fs")  # <experimental/filesystem>, which YOLO collections use
    return command


def _has_filesystem_archive(program: str) -> bool:
    done = subprocess.run(
        [program, "-print-file-name=libstdc++fs.a"], capture_output=True, text=True, check=False
    )
    return os.path.isabs(done.stdout.strip())


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    english = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, env=english, check=False)


def _compile_all(compiles: Sequence[tuple[Path, list[str]]], sources: Sequence[Path]) -> None:
    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
        done = list(pool.map(_run, [command for _, command in compiles]))
    for (source, command), result in zip(compiles, done, strict=True):
        if result.returncode:
            raise compile_failed(result.stderr, source, shlex.join(command), sources)


def _link_all(
    link: list[str], sources: Sequence[Path], home: Path | None, scratch: Path
) -> list[Path]:
    """Link, and return the stubs of libraries that the toolkit lacks."""
    result = _run(link)
    stubs = []
    if result.returncode and home is not None:
        stubs = link_stubs(undefined_in(result.stderr), home, link[0], scratch)
        if stubs:
            result = _run([*link, *map(str, stubs)])
    if result.returncode:
        raise compile_failed(result.stderr, None, shlex.join(link), sources)
    return stubs


def _checked_sources(sources: Sequence[str | Path]) -> list[Path]:
    files = []
    for source in map(Path, sources):
        if source.is_dir():
            inside = sorted(p.name for p in source.iterdir() if p.suffix in SOURCE_SUFFIXES)
            raise CustomLibraryError(
                "this is a folder",
                where=str(source),
                expected="the source files of one library",
                fix=f"in it: {', '.join(inside[:12])}" if inside else None,
            )
        if not source.is_file():
            raise CustomLibraryError("the source file does not exist", where=str(source))
        if source.suffix in HEADER_SUFFIXES:
            raise CustomLibraryError(
                "this is a header: it is compiled by the sources that include it",
                where=str(source),
                fix=f"leave it out, and name its folder: -I {source.parent}",
            )
        if source.suffix not in (*SOURCE_SUFFIXES, ".o", ".a"):
            raise CustomLibraryError(
                f"{source.name} is no C++ source by its name",
                where=str(source),
                expected=f"one of {', '.join(SOURCE_SUFFIXES)}, or an object file (.o, .a)",
            )
        files.append(source)
    if not files:
        raise CustomLibraryError("there is no source file to compile")
    return files

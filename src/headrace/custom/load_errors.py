"""Errors for C++ libraries that cannot be loaded, or lack a function."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.files import os_reason
from headrace._core.formats.foreign import model_words
from headrace.binary.code_calls import CodeCalls
from headrace.binary.elf import ElfError, ElfFile, version_key
from headrace.binary.entry_points import KINDS, checked_kind, standing
from headrace.binary.library_search import find_library
from headrace.binary.symbol_names import NearNames, missing_name_hints, parser_like
from headrace.custom.emulated.emulator import why_not_here
from headrace.custom.stand_ins import is_nvidia, supported

if TYPE_CHECKING:
    from headrace.config.origin import Origin


_SHOWN = 8
_COMPILE = "headrace compile parser.cpp -o libparser.so"


def compile_command(source: str) -> str:
    """Return the command that compiles a parser's source file."""
    return f"headrace compile {source} -o lib{Path(source).stem}.so"


def check_header(path: Path, *, any_machine: bool = False) -> ElfFile:
    """Read the file and refuse one that is no library for this machine.

    Args:
        path: the file.
        any_machine: take libraries for other machines, too.

    Raises:
        CustomLibraryError: not ELF, damaged, not a shared library, or of another architecture.
    """
    try:
        elf = ElfFile.read(path)
    except OSError as error:
        raise CustomLibraryError(
            f"the library cannot be read: {os_reason(error)}", where=str(path)
        ) from error
    except ElfError as error:
        problem, fix = _not_elf(path, str(error))
        raise CustomLibraryError(
            problem, where=str(path), expected="an ELF shared library (.so)", fix=fix or _COMPILE
        ) from error
    problem, help_of_it = ("", "") if any_machine else why_not_here(elf)
    if problem:
        raise CustomLibraryError(
            problem,
            where=str(path),
            fix=[*filter(None, [help_of_it]), f"compile its source on this machine: {_COMPILE}"],
            code="library-machine",
        )
    if elf.file_type != 3:
        raise CustomLibraryError(
            f"the file is {elf.type_name}, not a shared library",
            where=str(path),
            fix=f"link it with -shared: {_COMPILE}",
        )
    if not any_machine:
        _check_sanitizer(elf)
    return elf


def _check_sanitizer(elf: ElfFile) -> None:
    """Refuse AddressSanitizer's runtime in a process that it would end: it must be loaded first."""
    needed = next((name for name in elf.needed if name.startswith("libasan.so")), None)
    maps = Path("/proc/self/maps")
    if needed is None or not maps.exists() or "/libasan.so" in maps.read_text(errors="replace"):
        return
    raise CustomLibraryError(
        "the library was compiled with -fsanitize=address, whose runtime must be loaded before "
        "the program",
        where=str(elf.path),
        fix="ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="
        '"$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" headrace run …',
    )


def _not_elf(path: Path, problem: str) -> tuple[str, str | None]:
    """Describe a file that is no sound ELF file, and how to mend that."""
    with path.open("rb") as file:
        head = file.read(512)
    if head[:4] == b"\x7fELF":
        return problem, "was it copied or downloaded completely?"
    if not head:
        return "the file is empty", None
    if head.startswith(b"version https://git-lfs"):
        return "the file is a Git LFS pointer, not the library itself", "fetch it: git lfs pull"
    if (words := model_words(path)) is not None:
        return f"{words}, not an ELF shared library", None
    for magic, kind in (
        (b"MZ", "a Windows library"),
        (b"!<arch>", "a static library (.a)"),
        (b"\xcf\xfa\xed\xfe", "a macOS library"),
        (b"PK\x03\x04", "a zip file"),
        (b"\x1f\x8b", "a gzip file"),
    ):
        if head.startswith(magic):
            return f"the file is {kind}, not an ELF shared library", None
    if b"\0" not in head:
        line = head.decode("utf-8", "replace").strip().partition("\n")[0][:60]
        return f"the file is text, not a library; it begins with {line!r}", None
    return "the file is not an ELF shared library", None


def load_failed(elf: ElfFile, reason: str, demangled: str) -> CustomLibraryError:
    """Make the error for a library that `dlopen` refused.

    Args:
        elf: the library.
        reason: the text of dlerror.
        demangled: the same text with C++ symbol names made readable.
    """
    problems: list[str] = []
    fix: list[str] = []
    if other := _other_c_library(elf):
        problems.append(f"it is built for {other}, this system has glibc")
        fix.append(f"compile its source on this machine: {_COMPILE}")
    missing = [
        name
        for name in elf.needed
        if not (supported() and is_nvidia(name)) and not find_library(name, elf)
    ]
    if missing:
        problems.append(f"it is linked against {', '.join(missing)}, not found on this machine")
        if any(map(is_nvidia, missing)):
            fix.append(
                "these belong to NVIDIA's SDK; a parser does not need them: compile its source "
                f"without -lnvinfer and the like: {_COMPILE}"
            )
        else:
            fix.append("install them, or name their folder in LD_LIBRARY_PATH")
    for library, versions, newest in missing_versions(elf):
        problems.append(f"it needs {versions} of {library}, which here ends at {newest}")
        fix.append(f"it was built on a newer system: compile its source here: {_COMPILE}")
    if not missing and (symbol := re.search(r"undefined symbol: ([^\s,]+)", reason)):
        match = re.search(r"undefined symbol: (.+)$", demangled)
        problems.append(f"nothing defines {match[1] if match else demangled}")
        if not symbol[1].startswith("_Z") or "nvinfer1" in symbol[1] or "nvonnx" in symbol[1]:
            fix.append("if it comes from NVIDIA's SDK: leave out the code that builds engines")
        if "experimental::filesystem" in demangled:
            fix.append("link it with -lstdc++fs, after the source files")
        else:
            fix.append("was every source file of the parser linked into it?")
    if not problems:
        problems.append(demangled.removeprefix(f"{elf.path}: "))
    return CustomLibraryError(
        "the library cannot be loaded: " + "; ".join(problems),
        where=str(elf.path),
        fix=list(dict.fromkeys(fix)),
        code="library-needs" if missing else None,
    )


def _other_c_library(elf: ElfFile) -> str | None:
    """Name the C library that it is built for, if the file names another than glibc."""
    if any(name.startswith(("libc.musl", "ld-musl")) for name in elf.needed):
        return "musl, the C library of Alpine Linux"
    if "libc.so" in elf.needed:
        return "bionic, the C library of Android" if "liblog.so" in elf.needed else "musl or bionic"
    return None


def missing_versions(elf: ElfFile) -> list[tuple[str, str, str]]:
    """List (library, versions that it lacks, newest version that it has)."""
    result = []
    for library, needs in elf.version_needs.items():
        path = find_library(library, elf)
        try:
            offered = ElfFile.read(path).version_defs if path else frozenset()
        except (ElfError, OSError):
            continue
        lacking = sorted({n for n in needs if n not in offered}, key=version_key)
        if not lacking or not offered:
            continue
        family = lacking[-1].partition("_")[0] + "_"
        newest = max((o for o in offered if o.startswith(family)), key=version_key, default="none")
        result.append((library, ", ".join(lacking[-_SHOWN:]), newest))
    return result


def no_such_function(elf: ElfFile, name: str, kind: str, check_macro: str) -> CustomLibraryError:
    """Make the error for a function that is not there, or has C++ linkage.

    Args:
        elf: the library.
        name: the function that the user named.
        kind: of `entry_points.KINDS`, the kind that the user wants.
        check_macro: checks such a function in its source.
    """
    for symbol in sorted(elf.functions()):
        if symbol.startswith("_Z") and f"{len(name)}{name}" in symbol:
            signature = _native.demangle(symbol)
            if signature.partition("(")[0].rpartition("::")[2] == name:
                right = KINDS[kind].signature.replace("(", f"{name}(", 1)
                other = _parameters(signature) != _parameters(right)
                return CustomLibraryError(
                    f"{name} has C++ linkage: its name in the library is {symbol}",
                    where=str(elf.path),
                    expected=f'extern "C" {right}' if other else "a function with C linkage",
                    fix=[
                        *([f"change its parameters, too: it is {signature}"] if other else []),
                        f'write extern "C" before bool {name}(…) in its source, and compile it '
                        "again",
                        f"{check_macro}({name}); reports this at compile time",
                    ],
                    code="function-missing",
                )
    near = missing_hints(elf, name, kind)
    return CustomLibraryError(
        f"the library has no function {name!r}",
        where=str(elf.path),
        fix=near.hints,
        data=near.data,
        code="function-missing",
    )


_ELEMENTS = {
    "detector": "NvDsInferParseObjectInfo",
    "instance segmentation": "NvDsInferInstanceMaskInfo",
    "classifier": "NvDsInferAttribute",
}
_NETWORK_TYPES = {"detector": 0, "classifier": 1, "segmentation": 2, "instance segmentation": 3}


def of_another_kind(elf: ElfFile, name: str, required: str, kind: str) -> CustomLibraryError:
    """Make the error for a function that its source, or its code, shows to be of another kind."""
    what = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    what += " parser" if kind in _NETWORK_TYPES else ""
    told = f"{name} is {what}, as its source checks"
    if checked_kind(elf, name) is None:
        told = f"{name} fills a vector of {_ELEMENTS[kind]}: it is {what}"
    network = f", with network-type={_NETWORK_TYPES[kind]}" if kind in _NETWORK_TYPES else ""
    return CustomLibraryError(
        told,
        where=f"{elf.path}: {name}",
        expected=f"{required}: {KINDS[required].signature.replace('bool (', f'bool {name}(', 1)}",
        fix=[
            f"name it in {KINDS[kind].key}{network}",
            "or name a function of the kind that the key is for: headrace inspect lists them",
        ],
        code="function-of-other-kind",
    )


def _parameters(signature: str) -> str:
    """The parameters of a signature, the same however a compiler or a programmer writes them."""
    text = signature.partition("(")[2]
    text = re.sub(r"std::(__cxx11::)?basic_string<char,[^>]*>[^,&]*", "std::string", text)
    text = re.sub(r",\s*std::allocator<[^<>]*>\s*", "", text)
    text = re.sub(r"\bNvDsInferParseObjectInfo\b", "NvDsInferObjectDetectionInfo", text)
    text = re.sub(r"\bconst (\w[\w:<> ]*?)([&*])", r"\1 const\2", text)
    return re.sub(r"\s+", "", text)


def named_at(error: CustomLibraryError, origin: Origin) -> CustomLibraryError:
    """Return the error with the config's line that names its subject, before its own place."""
    if origin.where is None or type(error) is not CustomLibraryError:  # a fault of its own
        return error
    where = f"{origin.where}: {error.where}" if error.where else origin.where
    return CustomLibraryError(error.finding, where=where)


def missing_hints(elf: ElfFile, name: str, kind: str) -> NearNames:
    """List functions of the library with similar names: of this kind first, the nearest first."""
    functions = sorted(n for n in elf.functions() if not n.startswith("_"))
    names, what = functions, "functions"
    if kind != "engine creator" and (parsers := parser_like(functions)):
        names, what = parsers, "parser-like functions"
    fits = partial(standing, expected=kind, calls=CodeCalls(elf))
    return missing_name_hints(name, names, kind=f"exported {what}", standing=fits)

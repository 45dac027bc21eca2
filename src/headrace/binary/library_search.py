"""Where the dynamic loader would find a library that another one is linked against."""

from __future__ import annotations

import os
import platform
import re
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.binary.elf import ElfFile, is_foreign
from headrace.binary.regular_files import open_regular

ROOT_VARIABLE = "HEADRACE_AARCH64_ROOT"
_ROOTS = ("/usr/aarch64-linux-gnu", "/")
LOADER = "lib/ld-linux-aarch64.so.1"
_FOREIGN = ("lib", "usr/lib", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu",
            "usr/lib/aarch64-linux-gnu/tegra", "usr/local/lib")  # fmt: skip


def foreign_root() -> Path | None:
    """Find the folder of a system for AArch64 on another machine; None if there is none.

    `HEADRACE_AARCH64_ROOT` names one; else it is Debian's for cross compilers, or this system's own
    libraries of that architecture.
    """
    named = os.environ.get(ROOT_VARIABLE)
    roots = [named] if named else _ROOTS
    return next((Path(root) for root in roots if Path(root, LOADER).exists()), None)


def find_library(name: str, elf: ElfFile, loaded: Mapping[str, Path] | None = None) -> Path | None:
    """The file that the loader would take for a DT_NEEDED entry of `elf`; None if none.

    For a library of another machine it is looked for in the system of an emulator. Who asks for
    many gives what is `loaded_libraries`.
    """
    foreign = is_foreign(elf)
    if "/" in name:
        return Path(name) if Path(name).exists() else None
    if not foreign and (path := (loaded_libraries() if loaded is None else loaded).get(name)):
        return path
    for path in _candidates(name, elf):
        if _fits(path, elf):
            return path
    return None


def find_elsewhere(name: str) -> Path | None:
    """A copy where the loader does not look: NVIDIA's packages of pip, and its toolkit."""
    purelib = Path(sysconfig.get_paths()["purelib"])
    folders = [
        *purelib.glob("nvidia/*/lib"),
        *purelib.glob("nvidia/lib"),
        purelib / "tensorrt_libs",
    ]
    folders += [Path("/usr/local/cuda/lib64"), *Path("/usr/local").glob("cuda-*/lib64")]
    return next((p for folder in folders if (p := folder / name).is_file()), None)


def _candidates(name: str, elf: ElfFile) -> Iterator[Path]:
    origin = str(elf.path.resolve().parent)
    folders = [p.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for p in elf.run_paths]
    if is_foreign(elf):
        if root := foreign_root():
            folders += [str(root / folder) for folder in _FOREIGN]
        yield from (Path(folder, name) for folder in folders)
        return
    folders += [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    for folder in folders:
        yield Path(folder, name)
    try:
        cache = Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        cache = b""
    for match in re.finditer(rb"\0(/[^\0]*/" + re.escape(name.encode()) + rb")(?=\0)", cache):
        yield Path(os.fsdecode(match[1]))
    triplet = f"{platform.machine()}-linux-gnu"
    for folder in ("/lib", "/usr/lib", "/usr/local/lib"):
        yield from (Path(folder, triplet, name), Path(folder + "64", name), Path(folder, name))


def _fits(path: Path, elf: ElfFile) -> bool:
    """Whether it is of the same machine and width; the loader passes others over."""
    try:
        with open_regular(path) as file:
            head = file.read(20)
    except (OSError, ValueError):
        return False
    return head[:4] == b"\x7fELF" and head[4:6] == elf.data[4:6] and head[18:20] == elf.data[18:20]


def loaded_libraries() -> dict[str, Path]:
    """File names of the libraries in this process."""
    try:
        maps = Path("/proc/self/maps").read_text(errors="surrogateescape")
    except OSError:
        return {}
    lines = [line for line in maps.splitlines() if ".so" in line and "/" in line]
    paths = dict.fromkeys(line[line.index("/") :] for line in lines)  # each has several
    return {Path(p).name: Path(p) for p in paths if not p.startswith("/memfd:")}

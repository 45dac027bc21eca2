"""The emulator, the system and the program that run libraries of another processor."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from headrace._core import _native
from headrace.binary.elf import HOST_MACHINES, MACHINES, ElfFile, is_foreign
from headrace.binary.library_search import LOADER, ROOT_VARIABLE, foreign_root
from headrace.custom.stand_in_image import AARCH64

INSTALL = "apt install qemu-user libc6-arm64-cross libstdc++6-arm64-cross"
_PROGRAMS = ("qemu-aarch64", "qemu-aarch64-static")


@dataclass(frozen=True, slots=True)
class Emulator:
    """How libraries for AArch64 run here.

    Attributes:
        program: the emulator, QEMU in its user mode.
        root: folder of a system for AArch64, with a loader, a C and a C++ library.
        host: the program that loads libraries there.
    """

    program: Path
    root: Path
    host: Path

    def command(self, *arguments: object) -> list[str]:
        """Return the command that starts the program."""
        emulate = [str(self.program), "-L", str(self.root)]
        return [*emulate, str(self.host), *map(str, arguments)]


def needs_emulator(elf: ElfFile) -> bool:
    """Whether a library is for a processor that is emulated here."""
    return elf.machine == AARCH64 and sys.platform == "linux" and platform.machine() == "x86_64"


def find_emulator() -> Emulator | str:
    """Find the emulator for AArch64 on x86-64; else return the reason why none can be used."""
    host = Path(_native.__file__).with_name("host-aarch64")
    if not host.is_file():
        return (
            "this build of headrace lacks the program that loads them: where "
            "aarch64-linux-gnu-g++ is installed, make build makes it; wheels have it"
        )
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        return "there is no emulator, qemu-aarch64"
    if (root := foreign_root()) is None:
        where = os.environ.get(ROOT_VARIABLE) or "/usr/aarch64-linux-gnu"
        return f"there are no libraries for AArch64: {where}/{LOADER} does not exist"
    return Emulator(Path(found), root, host)


def why_not_here(elf: ElfFile) -> tuple[str, str]:
    """Tell why a library of another processor cannot run here, and the remedy; empty if it can."""
    if not is_foreign(elf):
        return "", ""
    here = MACHINES[HOST_MACHINES[platform.machine()]]
    problem = f"the library is built for {elf.machine_name}, this machine is {here}"
    if not needs_emulator(elf):
        return problem, ""
    found = find_emulator()
    if isinstance(found, Emulator):
        return "", ""
    return f"{problem}; it would run emulated, but {found}", INSTALL

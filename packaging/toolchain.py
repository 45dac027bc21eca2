"""A compiler and headers whose binaries run on any Linux from 2019 on, unpacked without root.

Debian 11's GCC 10 links against glibc 2.31; what the core uses of it is as old as 2.28. Its
packages and those of Python's headers are fetched by apt, with signatures checked, into a folder of
their own: nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_GCC = "g++-10 gcc-10 cpp-10 libgcc-10-dev libstdc++-10-dev libc6 libc6-dev linux-libc-dev"
_COMPILER = f"""{_GCC} libgcc-s1 libstdc++6 binutils-x86-64-linux-gnu
libbinutils libctf0 libctf-nobfd0 libisl23 libmpc3 libmpfr6 libgmp10 zlib1g
g++-10-aarch64-linux-gnu gcc-10-aarch64-linux-gnu cpp-10-aarch64-linux-gnu
binutils-aarch64-linux-gnu libgcc-10-dev-arm64-cross libstdc++-10-dev-arm64-cross
libc6-dev-arm64-cross libc6-arm64-cross linux-libc-dev-arm64-cross libgcc-s1-arm64-cross
libstdc++6-arm64-cross""".split()
_OWN = ("isl", "mpc", "mpfr", "gmp", "bfd", "opcodes", "ctf")
_HEADERS = {"3.11": "bookworm", "3.13": "trixie"}


def fetch(suite: str, machine: str, packages: list[str], folder: Path) -> None:
    """Unpack Debian packages of a release into a folder.

    Raises:
        SystemExit: apt is not there, or gave no package.
    """
    if shutil.which("apt-get") is None:
        raise SystemExit("wheels are built on Debian or Ubuntu: apt-get fetches an older compiler")
    state = folder.with_name(f"{folder.name}.apt")
    for name in ("state/lists/partial", "cache/archives/partial", "deb"):
        (state / name).mkdir(parents=True, exist_ok=True)
    sources = state / "sources.list"
    source = f"deb [signed-by={_KEYS}] http://deb.debian.org/debian {suite} main\n"
    sources.write_text(source)
    options = {
        "Dir::State": state / "state", "Dir::Cache": state / "cache",
        "Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-",
        "Dir::State::status": "/dev/null", "APT::Architecture": MACHINES[machine],
        "APT::Architectures": MACHINES[machine], "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *packages], check=True, cwd=state / "deb")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for package in sorted((state / "deb").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, part], check=True)
    for link in (path for path in part.rglob("*") if path.is_symlink()):
        target = os.readlink(link)
        if target.startswith("/"):  # of the machine, not of the folder
            link.unlink()
            link.symlink_to(os.path.relpath(part / target[1:], link.parent))
    part.rename(folder)
    shutil.rmtree(state)


def compiler(machine: str, folder: Path) -> Path:
    """Return a program that compiles C++ for a machine as g++ does."""
    root = folder / "bullseye"
    if not root.is_dir():
        fetch("bullseye", "x86_64", _COMPILER, root)
    own, tools = folder / "libraries", folder / f"tools-{machine}"
    for path in (own, tools):
        path.mkdir(exist_ok=True)
    libraries = [*(f"usr/lib/x86_64-linux-gnu/lib{name}*.so*" for name in _OWN)]
    for pattern in (*libraries, "lib/x86_64-linux-gnu/libz.so*"):
        for library in root.glob(pattern):
            (own / library.name).unlink(missing_ok=True)
            (own / library.name).symlink_to(library)
    for name, program, options in (
        *((name, name, "") for name in ("as", "ld", "nm", "ar", "ranlib", "strip")),
        ("c++", "g++-10", f"--sysroot={root} -B{tools}"),
    ):
        path = root / f"usr/bin/{machine}-linux-gnu-{program}"
        script = f'#!/bin/sh\nLD_LIBRARY_PATH={own} exec {path} {options} "$@"\n'
        (tools / name).unlink(missing_ok=True)
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    return tools / "c++"


def python_headers(version: str, machine: str, folder: Path) -> Path:
    """Return the folder of Python.h of a version, for a machine."""
    root = folder / f"python{version}-{machine}"
    if not root.is_dir():
        fetch(_HEADERS[version], machine, [f"libpython{version}-dev"], root)
    include = root / f"usr/include/python{version}"
    # the packaged pyconfig.h only points at the one of this machine, by an absolute path
    shutil.copyfile(
        root / f"usr/include/{machine}-linux-gnu/python{version}/pyconfig.h",
        include / "pyconfig.h",
    )
    return include

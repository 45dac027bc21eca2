"""Build the wheels and the source distribution of a release into `dist/`, and check them.

    python packaging/wheels.py [--machine x86_64] [--api cp312]

Four wheels of the core's two binary interfaces: cp311, and cp312-abi3 for each newer Python, for
x86-64 and aarch64; and headrace-gst, which is Python alone. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).parent))
from release import placed
from sbom import write_sbom
from toolchain import MACHINES, compiler, python_headers

ROOT = Path(__file__).resolve().parents[1]
WORK, DIST = ROOT / "build" / "wheels", ROOT / "dist"
APIS = {"cp311": "3.11", "cp312": "3.13"}  # the headers of each; those of 3.13 know 3.12's limits
_BASELINE = {"x86_64": "-msse4.2 -mpopcnt -mcx16", "aarch64": ""}  # x86-64-v2, armv8-a
_GLIBC = 28  # 2.28, of 2018: the newest that a wheel may need
_CORE = "headrace/_core/_native.abi3.so"
_STAND_INS = ("https://headrace.example/headrace", "maintainers@headrace.example")


def run(*command: object, **environment: str) -> None:
    """Run a program of this environment; its failure ends the build."""
    env = {**os.environ, **environment}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    subprocess.run([str(part) for part in command], check=True, env=env, cwd=ROOT)


def rate() -> None:
    """Rate the metadata, which must get 10 of 10.

    Before the first release they name neither a home page nor a contact. Rated then is what
    `release.py --home --contact` would write, with names that no host can have (RFC 2606).
    """
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    if "urls" not in project or not all("email" in author for author in project["authors"]):
        print(
            f"rated as a release writes it, with {_STAND_INS[0]} and {_STAND_INS[1]} as addresses"
        )
        text, _ = placed(text, *_STAND_INS)
    folder = WORK / "rated"
    shutil.rmtree(folder, ignore_errors=True)
    for name in (project["readme"], *project["license-files"]):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, path)
    (folder / "pyproject.toml").write_text(text)
    run("pyroma", "--min=10", folder)


def stamp() -> str:
    """The time that all files of the distributions have: that of the last commit."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return os.environ.get("SOURCE_DATE_EPOCH") or done.stdout.strip() or "315532800"


def core_wheel(machine: str, api: str, epoch: str) -> Path:
    """Build the wheel of a machine and a binary interface of Python."""
    folder = WORK / f"{api}-{machine}"
    headers = python_headers("3.11", machine, WORK)  # of the Python that builds
    arguments = [
        f"-DCMAKE_CXX_COMPILER={compiler(machine, WORK)}",
        f"-DHEADRACE_AARCH64_CXX={compiler('aarch64', WORK)}",
        f"-DPython_INCLUDE_DIR={headers}",
        f"-DCMAKE_CXX_FLAGS=-ffile-prefix-map={ROOT}=. {_BASELINE[machine]}",
    ]
    suffix = f".cpython-311-{machine}-linux-gnu.so"
    if api != "cp311":
        arguments.append(f"-DHEADRACE_ABI3={python_headers(APIS[api], machine, WORK)}")
        suffix = ".abi3.so"
    run(
        sys.executable, "-m", "pip", "wheel", ".", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", folder, f"--config-settings=build-dir={folder}/build",
        CMAKE_ARGS=shlex.join(arguments), SETUPTOOLS_EXT_SUFFIX=suffix, SOURCE_DATE_EPOCH=epoch,
    )  # fmt: skip
    tags = ["--python-tag", api, "--abi-tag", "abi3" if api != "cp311" else "cp311"]
    raw = max(folder.glob("headrace-*.whl"), key=lambda path: path.stat().st_mtime)
    run(sys.executable, "-m", "wheel", "tags", "--remove", *tags,
        "--platform-tag", f"linux_{machine}", raw, SOURCE_DATE_EPOCH=epoch)  # fmt: skip
    raw = next(folder.glob(f"headrace-*-linux_{machine}.whl"))
    write_sbom(raw, epoch)
    run("auditwheel", "repair", "--wheel-dir", DIST, raw, SOURCE_DATE_EPOCH=epoch)
    raw.unlink()
    wheel = next(DIST.glob(f"headrace-*-{api}-*{machine}.whl"))
    glibc = min(int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", wheel.name))
    if glibc > _GLIBC:
        raise SystemExit(f"{wheel.name} needs glibc 2.{glibc}; 2.{_GLIBC} must do")
    return wheel


def check_clones(wheel: Path) -> None:
    """Refuse a core that does not choose between its functions for AVX2 and for all processors.

    A linker that strips may lose these relocations; calls then reach another function.
    """
    with ZipFile(wheel) as archive:
        core = next(
            name for name in archive.namelist() if "/_core/_native." in name and ".so" in name
        )
        path = archive.extract(core, WORK)
    command = ["readelf", "--relocs", "--wide", path]
    if (
        "_IRELATIV"
        not in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ):
        raise SystemExit(f"{wheel.name}: the linker lost the clones of functions for AVX2")


def main() -> None:
    """Build what is asked for, else everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", action="append", choices=list(MACHINES))
    parser.add_argument("--api", action="append", choices=list(APIS))
    options = parser.parse_args()
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("wheels are built by Python 3.11: make PYTHON=python3.11 wheels")
    epoch = stamp()
    WORK.mkdir(parents=True, exist_ok=True)
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("headrace*"):
        old.unlink()
    for machine in options.machine or MACHINES:
        for api in options.api or APIS:
            wheel = core_wheel(machine, api, epoch)
            run("check-wheel-contents", wheel)
            if machine == "x86_64":
                check_clones(wheel)
            if api != "cp311":
                with ZipFile(wheel) as archive:  # what lib/ holds for linkers are texts
                    core = archive.extract(_CORE, WORK)
                run("abi3audit", "--strict", "--assume-minimum-abi3=3.12", core)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST]
    run(*build, "--sdist", ".", SOURCE_DATE_EPOCH=epoch)
    run(*build, "--wheel", "packaging/gst", SOURCE_DATE_EPOCH=epoch)
    files = sorted(DIST.glob("headrace*"))
    run("twine", "check", "--strict", *files)
    rate()
    for path in files:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

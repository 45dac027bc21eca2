"""Plant faults in a copy of the checkout, and see whether the tests catch them.

    .venv/bin/python scripts/mutations.py --list
    .venv/bin/python scripts/mutations.py --run            # all, one after the other
    .venv/bin/python scripts/mutations.py --run 3 17-20

The faults are those of `mutations.toml`. A fault is caught if one of its tests fails, and all of
them pass without it. The native core is compiled again for faults in C++ (with `CMAKE_ARGS`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = ("src", "native")
SUFFIXES = (".py", ".cpp", ".h")
COPIED = ("src", "native", "packaging", "tests", "examples", "docs", "benchmarks", "scripts")
FILES = (
    "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "Makefile", "CHANGELOG.md",
    "SECURITY.md",
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """One fault.

    Attributes:
        room: the package it is in.
        fault: the fault in words.
        find: text that stands once in the sources.
        put: what replaces it.
        tests: ends of paths under tests/.
        select: `-k` expression: words that are in names of the tests, with `or` between them.
    """

    room: str
    fault: str
    find: str
    put: str
    tests: tuple[str, ...]
    select: str = ""

    def place(self, root: Path) -> Path | None:
        """Return the file that holds `find` once, if exactly one does."""
        found = [p for p in _sources(root) for _ in range(p.read_text().count(self.find))]
        return found[0] if len(found) == 1 else None

    def chosen(self, root: Path) -> list[str]:
        """Return the tests that exist, below `root`."""
        every = [str(p.relative_to(root)) for p in (root / "tests").rglob("*")]
        return sorted({p for p in every for t in self.tests if p.endswith(f"/{t}")})


def _sources(root: Path) -> Iterator[Path]:
    for folder in SOURCES:
        yield from (p for p in sorted((root / folder).rglob("*")) if p.suffix in SUFFIXES)


class Copy:
    """A copy of a checkout with an environment of its own, in which faults are planted."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "headrace"
        self.root.mkdir()
        ignored = shutil.ignore_patterns("__pycache__", "_build", "*.engine")
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self.root / name, ignore=ignored)
        for name in FILES:
            if (root / name).is_file():
                shutil.copy(root / name, self.root)
        python = root / ".venv" / "bin" / "python"
        places = subprocess.run(
            [python, "-c", "import sys, headrace._core._native as n; print(n.__file__, "
             "*(p for p in sys.path if '-packages' in p))"],
            capture_output=True, text=True, check=True, cwd=folder,
        ).stdout.split()  # fmt: skip
        self._native = Path(places[0])
        self.package = self.root / "src" / "headrace"
        # the module, headers and link libraries
        shutil.copytree(self._native.parents[1], self.package, dirs_exist_ok=True)
        environment = folder / "venv"
        subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
        self.python = environment / "bin" / "python"
        (own,) = (environment / "lib").glob("python*/site-packages")
        (own / "headrace.pth").write_text("\n".join([str(self.package.parent), *places[1:]]) + "\n")
        self.tools = root / ".venv" / "bin"

    def compile(self) -> None:
        """Bring the native core up to date."""
        target = self.root / "compiled"
        headers = subprocess.run(
            [self.root / "scripts" / "python_headers.sh", "python3", self.root / "headers"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        options = f"-DPython_INCLUDE_DIR={headers} {os.environ.get('CMAKE_ARGS', '')}"
        path = f"{self.tools}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
             "--no-build-isolation", "--no-deps", "--upgrade", "--target", target, "."],
            cwd=self.root, env={**os.environ, "PATH": path, "CMAKE_ARGS": options},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        shutil.copy(target / "headrace" / "_core" / self._native.name, self.package / "_core")

    def test(self, tests: Sequence[str], select: str) -> tuple[bool, str]:
        """Run tests; returns whether all passed, and the last line."""
        command = [self.python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        if '"slow:' in (self.root / "pyproject.toml").read_text():
            command += ["-m", "not slow"]
        command += [*tests, *(["-k", select] if select else [])]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True,
                                  timeout=300, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, "it hung"
        lines = done.stdout.strip().splitlines() or [done.stderr[-200:]]
        failed = next((s for s in lines if s.startswith(("FAILED", "ERROR"))), lines[-1])
        return done.returncode == 0, re.sub(r" - .*", "", failed)


def judge(mutation: Mutation, copy: Copy, sound: dict[tuple[str, ...], bool]) -> tuple[str, str]:
    """Plant a fault, run its tests, and take it back; returns the outcome and a word about it.

    Args:
        mutation: the fault.
        copy: where it is planted.
        sound: of selections of tests, whether they pass without a fault; completed here.
    """
    file, tests = mutation.place(copy.root), mutation.chosen(copy.root)
    if file is None:
        return "anchor not found", ""
    if not tests:
        return "no tests", ""
    key = (*tests, mutation.select)
    text, native = file.read_text(), file.suffix != ".py"
    file.write_text(text.replace(mutation.find, mutation.put))
    try:
        if native:
            copy.compile()
        passed, word = copy.test(tests, mutation.select)
    finally:
        file.write_text(text)
        if native:
            copy.compile()
    if passed:
        return "SURVIVED", word
    if key not in sound:
        sound[key] = copy.test(tests, mutation.select)[0]
    return ("caught" if sound[key] else "tests fail anyway"), word


def _numbers(words: Sequence[str], count: int) -> list[int]:
    chosen: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    return chosen or list(range(1, count + 1))


def main() -> int:
    """List or run the mutations; exit code 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="show the faults and where they are")
    parser.add_argument("--run", nargs="*", metavar="N", help="plant these (3 7-9), or all")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="another checkout")
    options = parser.parse_args()
    root = options.root.resolve()
    data = tomllib.loads((HERE / "mutations.toml").read_text())["mutation"]
    every = [Mutation(**{**d, "tests": tuple(d["tests"])}) for d in data]
    if options.run is None:
        for i, m in enumerate(every, 1):
            place = m.place(root)
            where = place.relative_to(root) if place else "anchor not found"
            print(f"{i:3} {m.room:9} {m.fault}: {where}")
        return 0
    outcomes: Counter[str] = Counter()
    sound: dict[tuple[str, ...], bool] = {}
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Copy(root, Path(folder))
        for i in _numbers(options.run, len(every)):
            start = time.monotonic()
            outcome, word = judge(every[i - 1], copy, sound)
            outcomes[outcome] += 1
            took = time.monotonic() - start
            print(f"{i:3} {every[i - 1].room:9} {outcome:17} {took:5.1f} s  {every[i - 1].fault}"
                  f"  [{word}]", flush=True)  # fmt: skip
    print(", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common()))
    return 1 if outcomes["SURVIVED"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""docs/cpp-methods.md: the methods of TensorRT's C++ classes by release, and those of our headers.

The compiler answers: a method is there if a class that derives from its class can name it, and
tested if the C++ sources of the tests call it (the compiler then emits it into their objects) or,
of an interface that libraries implement, if one of their classes defines it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from headrace.trt.release import Span

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_suffix(".txt")
"""A line is a class with its public methods; `name>=8.5<10.0` came with 8.5 and left with 10.0.
Types behind a name tell an overload from the method that had the name before."""
INCLUDE = ROOT / "native" / "include"
SOURCES = ROOT / "tests" / "trt" / "host" / "sources"
RELEASES = ("7.2", "8.6", "9.3", "10.16", "11.1")
_INCLUDES = (
    '#include "NvInfer.h"\n#include "NvInferPlugin.h"\n#include "NvInferPluginUtils.h"\n'
    '#include "NvOnnxParser.h"\n'
)
_NAME = re.compile(r"(\w+)(?:\(([^)]*)\))?((?:[<>]=?[\d.]+)*)")
_REFUSED = re.compile(r"refused<[^(]*>\(((?:\s*\"[^\"]*\")+)\s*,")
_CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?:([^{};]*)\{")
_SYMBOL = re.compile(r"[0-9a-f]+ [TtWwu] ([\w:<>, ()]+)::(~?\w+)\((.*)\)(?: const)?$")


@dataclass(frozen=True, slots=True)
class Method:
    """A public method of a class.

    Attributes:
        owner: the class, with its namespace.
        name: of the method.
        arguments: types that tell an overload; None of a name's first method.
        span: the releases that have it, as text.
    """

    owner: str
    name: str
    arguments: tuple[str, ...] | None
    span: str

    @property
    def shown(self) -> str:
        """Its name for readers."""
        types = "" if self.arguments is None else f"({', '.join(self.arguments)})"
        return f"{self.owner.removeprefix('nvinfer1::')}::{self.name}{types}"


@dataclass
class Census:
    """The methods of one release.

    Attributes:
        total: all of its methods.
        tested: those that the headers have and the tests call.
        untested: those that the headers have and no test calls.
        refused: those that a call refuses by name.
        missing: those that do not compile.
    """

    total: list[Method] = field(default_factory=list)
    tested: list[Method] = field(default_factory=list)
    untested: list[Method] = field(default_factory=list)
    refused: list[Method] = field(default_factory=list)
    missing: list[Method] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of methods that are there and tested."""
        return len(self.tested) / len(self.total)


@cache
def methods() -> tuple[Method, ...]:
    """Read the table of methods."""
    return tuple(_read(FILE.read_text("utf-8")))


def _read(text: str) -> Iterator[Method]:
    for line in text.splitlines():
        owner, _, names = line.partition(": ")
        full = owner if "::" in owner else f"nvinfer1::{owner}"
        for name, types, span in _NAME.findall(names):
            yield Method(full, name, tuple(types.split(",")) if types else None, span)


def of_release(number: str) -> Census:
    """Ask the compiler for each method of a release."""
    version = tuple(map(int, number.split(".")))
    census = Census([m for m in methods() if Span.of(m.span).has(version)])
    missing = _missing(census.total, number)
    called, refused = called_by_tests(), _refused()
    for method in census.total:
        if method in missing:
            census.missing.append(method)
        elif method.shown.partition("(")[0] in refused:
            census.refused.append(method)
        else:
            (census.tested if _is_called(method, called) else census.untested).append(method)
    return census


def _missing(asked: Sequence[Method], number: str) -> set[Method]:
    """Those that no class can name; one unit is compiled for all of them."""
    major, minor = number.split(".")
    flags = [f"-DNV_TENSORRT_MAJOR={major}", f"-DNV_TENSORRT_MINOR={minor}"]
    classes = sorted({m.owner for m in asked})
    unit = [_INCLUDES, "#include <utility>", "using namespace nvinfer1;"]
    gone: set[Method] = set()
    absent = _failed([f"using class_{i} = {c};" for i, c in enumerate(classes)], unit, flags)
    for i in absent:
        gone |= {m for m in asked if m.owner == classes[i]}
    there = [m for m in asked if m not in gone]
    lines = [_probe(i, method) for i, method in enumerate(there)]
    return gone | {there[i] for i in _failed(lines, unit, flags)}


def _probe(index: int, method: Method) -> str:
    if method.arguments is None:
        return f"struct method_{index} : {method.owner} {{ using {method.owner}::{method.name}; }};"
    values = ", ".join(f"std::declval<{kind}>()" for kind in method.arguments)
    return (
        f"using method_{index} = "
        f"decltype(std::declval<{method.owner} &>().{method.name}({values}));"
    )


def _failed(lines: Sequence[str], head: Sequence[str], flags: Sequence[str]) -> set[int]:
    """The numbers of the lines that the compiler refuses."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "unit.cpp")
        source.write_text("\n".join([*head, "#line 1", *lines, ""]), "utf-8")
        done = subprocess.run(
            [compiler(), "-std=c++17", "-fsyntax-only", "-fmax-errors=0", "-w",
             f"-I{INCLUDE}", *flags, str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return {int(n) - 1 for n in re.findall(r"unit\.cpp:(\d+):\d+: error", done.stderr)}


def compiler() -> str:
    """The C++ compiler that answers.

    Raises:
        FileNotFoundError: there is none.
    """
    found = shutil.which("g++") or shutil.which("c++")
    if found is None:
        raise FileNotFoundError("the table of methods needs a C++ compiler: g++ is not installed")
    return found


@cache
def _refused() -> frozenset[str]:
    """The methods that the headers refuse by name."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "unit.cpp")
        source.write_text(_INCLUDES, "utf-8")
        expanded = subprocess.run(
            [compiler(), "-std=c++17", "-E", "-P", f"-I{INCLUDE}", str(source)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    texts = _REFUSED.findall(expanded)
    return frozenset("".join(re.findall(r'"([^"]*)"', text)) for text in texts)


@cache
def called_by_tests() -> frozenset[str]:
    """The methods that the tests' C++ sources call or define: `class::name/number of arguments`."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            (source, major, Path(folder, f"{source.stem}_{major}.o"))
            for source in sorted(SOURCES.glob("*.cpp"))
            for major in _majors_of(source)
        ]
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            return frozenset().union(*pool.map(_called, jobs))


def _majors_of(source: Path) -> tuple[int, ...]:
    """The generations that a source is compiled for: `// generations: 8 10` in its first lines."""
    head = source.read_text("utf-8")[:600]
    row = re.search(r"^// generations: ([\d ]+)", head, re.M)
    return tuple(map(int, row.group(1).split())) if row else (10,)


def _called(job: tuple[Path, int, Path]) -> set[str]:
    source, major, target = job
    subprocess.run(
        [compiler(), "-std=c++17", "-O0", "-c", "-w", f"-I{INCLUDE}",
         f"-DNV_TENSORRT_MAJOR={major}", str(source), "-o", str(target)],
        check=True, capture_output=True,
    )  # fmt: skip
    symbols = subprocess.run(
        ["nm", "-C", str(target)], check=True, capture_output=True, text=True
    ).stdout
    called = set()
    for line in symbols.splitlines():
        match = _SYMBOL.match(line)
        if match:
            owner, name, arguments = match.groups()
            called.add(f"{owner}::{name}/{_count(arguments)}")
    text = _with_own_headers(source)
    return called | _implemented(text, called) | _of_the_host(text, called)


def _of_the_host(text: str, defined: set[str]) -> set[str]:
    """The methods of interfaces that classes of the headers define and a source calls."""
    names = set(re.findall(r"(?:->|\.)(\w+)\(", text))
    hosts = {name for name in _parents() if name.startswith("Host")}
    own: set[str] = set()
    for symbol in defined:
        owner, _, method = symbol.rpartition("::")
        name = owner.rpartition("::")[2]
        if name in hosts and method.partition("/")[0] in names:
            own |= {f"nvinfer1::{interface}::{method}" for interface in _above(name)}
    return own


def _with_own_headers(source: Path) -> str:
    text = source.read_text("utf-8")
    own = (source.parent / name for name in re.findall(r'^#include "(\w+\.h)"', text, re.M))
    return text + "".join(path.read_text("utf-8") for path in own if path.is_file())


def _implemented(text: str, defined: set[str]) -> set[str]:
    """The methods of interfaces that classes of a source define."""
    own: set[str] = set()
    for name, bases in _CLASS.findall(text):
        interfaces = {each for base in re.findall(r"\bI[A-Z]\w+", bases) for each in _above(base)}
        for symbol in defined:
            owner, _, method = symbol.rpartition("::")
            if owner.rpartition("::")[2] == name:
                own |= {f"nvinfer1::{interface}::{method}" for interface in interfaces}
    return own


@cache
def _parents() -> dict[str, list[str]]:
    texts = (path.read_text("utf-8") for path in sorted(INCLUDE.rglob("*.h")))
    return {
        name: re.findall(r"\bI[A-Z]\w+", bases)
        for text in texts
        for name, bases in _CLASS.findall(text)
    }


def _above(name: str) -> set[str]:
    """A class of the headers and those that it derives from."""
    return {name}.union(*(_above(parent) for parent in _parents().get(name, ())))


def _count(arguments: str) -> int:
    depth, count = 0, 1 if arguments.strip() else 0
    for sign in arguments:
        depth += (sign in "<(") - (sign in ">)")
        count += sign == "," and not depth
    return count


def _is_called(method: Method, called: frozenset[str]) -> bool:
    namespace, _, owner = method.owner.rpartition("::")
    names = {f"{namespace}::{name}::{method.name}" for name in _above(owner)}
    if method.arguments is not None:
        return any(f"{name}/{len(method.arguments)}" in called for name in names)
    return not names.isdisjoint(_without_counts(called))


@cache
def _without_counts(called: frozenset[str]) -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name in called)


def table() -> str:
    """Write the counts of every release in Markdown, and each method that is refused or missing."""
    lines = [
        "| release | methods | there and tested | share | there | refused by name | missing |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    named: dict[str, dict[str, list[str]]] = {"refused": {}, "missing": {}, "untested": {}}
    for number in RELEASES:
        census = of_release(number)
        row = (
            number, len(census.total), len(census.tested), f"{census.share:.1%}",
            len(census.tested) + len(census.untested), len(census.refused), len(census.missing),
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, row)) + " |")
        for kind, rows in named.items():
            for method in getattr(census, kind):
                rows.setdefault(method.shown, []).append(number)
    titles = {
        "refused": "Refused: a call reports class, method and release, and gives null or false",
        "missing": "Missing: a source that names them does not compile",
        "untested": "There, but no test calls them",
    }
    for kind, rows in named.items():
        if rows:
            lines += ["", f"{titles[kind]}:", ""]
            lines += [f"- `{name}` ({', '.join(of)})" for name, of in sorted(rows.items())]
    return "\n".join(lines)


def page() -> str:
    """Write docs/cpp-methods.md."""
    return f"""---
search: c++ tensorrt methods, nvinfer.h coverage, which methods
---

# Methods of the C++ interface

The classes of `NvInfer.h`, `NvInferPlugin.h` and `NvOnnxParser.h` by release of TensorRT: how many
of their public methods [Headrace's headers](cpp-engines.md) have, and how many of those the tests
call. The compiler counts: a method is there if its class can name it, and tested if the C++ sources
of the tests call it. Old members stay in every generation of the headers, and later ones are there
in the older, so a source compiles whatever its release.

{table()}

`python scripts/tensorrt_methods.py` prints this page, `--check` compares it with the headers, and
`--write` brings it up to date.
"""

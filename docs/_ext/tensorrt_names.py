"""The table of names in docs/trt.md: each TensorRT release's, and those headrace.trt has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from headrace import trt
from headrace.trt import exports, release

FILE = Path(__file__).with_suffix(".txt")
"""Names by class with the releases that have them; written by scripts/tensorrt_names.py."""
RELEASES = ("8.6", "10.0", "10.3", "10.8", "10.13", "10.16", "11.1")
_BEGIN, _END = "<!-- names by release -->", "<!-- end of names -->"
_NAME = re.compile(r"(\w+)(\S*)")


@dataclass
class Names:
    """The names of one release.

    Attributes:
        total: how many there are, methods and members of enums counted.
        refused: those that are refused with the reason.
        missing: those that are absent without a word.
    """

    total: int = 0
    refused: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def of_release(number: str) -> Names:
    """Look every name of a release up, looking like it."""
    before = release.current().name
    release.set_version(number)
    try:
        found = Names()
        for owner, name in _names(release.current().number):
            found.total += 1
            if not _is_there(owner, name):
                shown = f"{owner}.{name}" if owner else name
                refused = any(exports.refusal("", part) for part in (owner, name) if part)
                (found.refused if refused else found.missing).append(shown)
        return found
    finally:
        release.set_version(before)


def _names(number: release.Version | None) -> Iterator[tuple[str, str]]:
    for line in FILE.read_text("utf-8").splitlines():
        owner, _, names = line.partition(": ")
        for name, span in _NAME.findall(names):
            if release.Span.of(span).has(number):
                yield owner.removesuffix(":"), name


def _is_there(owner: str, name: str) -> bool:
    if not owner:
        return hasattr(trt, name)
    cls = getattr(trt, owner, None) or getattr(trt.ILogger, owner, None)
    if cls is None:
        return False
    if not isinstance(cls, type):
        return hasattr(cls, name)
    return name in _attributes(cls, release.current().name)


@cache
def _attributes(cls: type, release_name: str) -> frozenset[str]:
    declared = {key for base in cls.__mro__ for key in vars(base).get("__annotations__", ())}
    return frozenset({*declared, *dir(cls), *getattr(cls, "__members__", ())})


def table() -> str:
    """Write the counts of every release, and what is missing, in Markdown."""
    lines = ["| release | names | here | refused by name | missing |", "|---|---:|---:|---:|---:|"]
    missing: dict[str, list[str]] = {}
    for number in RELEASES:
        names = of_release(number)
        here = names.total - len(names.refused) - len(names.missing)
        row = (number, names.total, here, len(names.refused), len(names.missing))
        lines.append("| " + " | ".join(map(str, row)) + " |")
        for name in names.missing:
            missing.setdefault(name, []).append(number)
    lines += ["", "Missing:", ""]
    lines += [f"- `{name}` ({', '.join(numbers)})" for name, numbers in sorted(missing.items())]
    return "\n".join(lines)


def rewritten(page: str) -> str:
    """Return docs/trt.md with the table between its marks."""
    head, _, rest = page.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}\n\n{table()}\n\n{_END}{tail}"

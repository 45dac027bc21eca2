"""Sources beside a custom library that is not there, and the command that compiles them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu")
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_MOST_BYTES = 1 << 16
_MOST = 40  # sources of one library
# SRCFILES := a.cpp b.cu, as the Makefiles of DeepStream's samples have it, also over lines
_LISTED = re.compile(r"^\s*(?:SRCFILES|SRCS?|SOURCES)\s*[:+?]?=\s*((?:[^\n\\]|\\\n|\\.)*)", re.M)


def build_command(library: Path) -> str | None:
    """Return the command that compiles a library from the sources in its folder.

    The sources are those that a Makefile there lists, else all. None if there are none.
    """
    folder = library.parent
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.is_file())
    except (OSError, ValueError):
        return None
    sources = [n for n in names if n.endswith(_SUFFIXES)]
    makefile = next((folder / n for n in _MAKEFILES if n in names), None)
    listed = [] if makefile is None else [n for n in _listed_in(makefile) if n in sources]
    # x_host.cpp stands for x.cu where there is no GPU: headrace compile takes it by itself
    own = {Path(n).stem for n in sources if n.endswith(".cu")}
    sources = listed or [n for n in sources if Path(n).stem.removesuffix("_host") not in own
                         or n.endswith(".cu")]  # fmt: skip
    if not 0 < len(sources) <= _MOST:
        return None
    words = ["headrace", "compile", *(_shown(folder / n) for n in sources), "-o", _shown(library)]
    return shlex.join(words)


def _listed_in(makefile: Path) -> list[str]:
    try:
        with makefile.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return []
    match = _LISTED.search(text)
    return match[1].replace("\\\n", " ").split() if match else []


def _shown(path: Path) -> str:
    """The path from where the user stands, if it is below."""
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown

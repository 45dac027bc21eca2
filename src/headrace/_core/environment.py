"""Packages that Headrace needs: missing, too old, or with files missing."""

from __future__ import annotations

import csv
import os
import re
import traceback
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, requires

from headrace._core.text import error_text

_INSTEAD = {"onnxruntime": "onnxruntime-gpu"}
"""Package -> one that brings the same modules."""
_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*([0-9.]+)")


def damages() -> list[str]:
    """Name each needed package that is missing, older than its bound, or incomplete.

    Returns:
        One line for each, and the command that mends them behind; empty if all are there.
    """
    rows = list(_damages())
    if not rows:
        return []
    wanted = " ".join(f"'{requirement}'" for requirement, _ in rows)
    fix = f"pip install --force-reinstall {wanted}"
    return [*(f"{requirement}: {text}" for requirement, text in rows), fix]


def damage_text(error: Exception) -> str:
    """Return the text of an error that damaged packages cause; empty if they seem sound.

    Args:
        error: of an import, or of a name that a package should have.
    """
    lines = damages()
    if lines:
        return "packages that headrace needs are damaged:\n  " + "\n  ".join(lines)
    if isinstance(error, ImportError) and (package := _imported(error)):
        fix = f"pip install --force-reinstall {package}"
        return f"a package that headrace needs cannot be loaded: {error_text(error)}\n  {fix}"
    return ""


def _imported(error: ImportError) -> str:
    """Name the package that the last file of headrace on the way imports; empty if it is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [i for i, frame in enumerate(frames) if "/headrace/" in frame.filename]
    line = frames[own[-1]].line or "" if own else ""
    match = re.match(r"(?:from|import)\s+([A-Za-z_]\w*)", line.strip())
    return "" if match is None or match[1] == "headrace" else match[1]


def _damages() -> Iterator[tuple[str, str]]:
    try:
        asked = requires("headrace") or []
    except PackageNotFoundError:  # its source is on the path, nothing is installed
        return
    for line in asked:
        requirement, _, marker = line.partition(";")
        bound = _BOUND.fullmatch(requirement.strip())
        if bound is None or "extra ==" in marker:
            continue
        name, lowest = bound.groups()
        text = f"{name}>={lowest}"
        installed = _installed(name) or _installed(_INSTEAD.get(name, name))
        if installed is None:
            yield text, "is not installed"
            continue
        if _numbers(installed.version) < _numbers(lowest):
            yield text, f"{installed.version} is installed"
        elif missing := _missing(installed):
            yield text, f"{missing} of its files are missing"


def _installed(name: str) -> Distribution | None:
    try:
        return Distribution.from_name(name)
    except PackageNotFoundError:
        return None


def _missing(installed: Distribution) -> int:
    """How many of a package's files are not there; those that are compiled on use are no files.

    `Distribution.files` leaves out what is missing from Python 3.12 on.
    """
    rows = csv.reader((installed.read_text("RECORD") or "").splitlines())
    names = [row[0] for row in rows if row and not row[0].endswith(".pyc")]
    return sum(not os.path.exists(str(installed.locate_file(name))) for name in names)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, to be compared: `18.1.0rc1` as 18, 1, 0."""
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])

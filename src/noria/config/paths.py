"""Paths in config files: the folder they are relative to, and hints when nothing is there."""

from __future__ import annotations

import difflib
import errno
import itertools
import os
from pathlib import Path

from noria.config.values import BadValueError

_LISTED_NAMES = 5000
_PATH_MAX = 4096


def resolve(text: str, config: Path) -> Path:
    """The absolute path that a value of `config` means. Source: config facts, section 1.6.

    Relative paths start at the real folder of the config file (its symbolic link is followed
    first), never at the working directory. Links are resolved where the file exists; a file that
    does not exist is no error here. Neither `~` nor `$NAME` is expanded.

    Raises:
        BadValueError: the path cannot be looked at: permission, link loop, too long.
    """
    reason: str | None = os.strerror(errno.ENAMETOOLONG)
    try:
        joined = os.path.join(os.path.dirname(os.path.realpath(config)), text)
        if len(os.fsencode(joined)) < _PATH_MAX:
            try:
                return Path(os.path.realpath(joined, strict=True))
            except FileNotFoundError:
                return Path(joined)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
    raise BadValueError(f"a usable path ({reason})", "a path that can be looked at")


def missing_hints(path: Path) -> list[str]:
    """Return hints about a path where no file is."""
    hints = []
    text = str(path)
    name = path.name
    try:
        if path.is_dir():
            return ["it is a folder"]
        parent = path.parent
        while not parent.is_dir() and parent != parent.parent:
            parent = parent.parent
        if parent != path.parent:
            missing = path.relative_to(parent).parts[0]
            name = missing
            hints.append(f"{parent} has no folder {missing}")
        with os.scandir(parent) as found:
            names = [entry.name for entry in itertools.islice(found, _LISTED_NAMES)]
    except (OSError, ValueError):
        return hints
    folded = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower().strip(" \"'"), folded, n=3, cutoff=0.6)
    if close:
        hints.append(f"near it in {parent}: {', '.join(folded[c] for c in close)}")
    if name != name.strip():
        hints.append("the name ends with a blank: trailing blanks belong to the value")
    if any(quote in text for quote in "\"'"):
        hints.append("quotes are part of the value: write the path without them")
    if " #" in text or "\t#" in text:
        hints.append("a comment behind the value is part of it: put it on its own line")
    if "~" in text or "$" in text:
        hints.append("neither ~ nor $NAME is expanded")
    return hints

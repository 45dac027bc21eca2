"""Paths and source names in configs: their absolute form, and hints when nothing is there.

`headrace.media` opens sources; the rules for what is a stream are the same there.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
from pathlib import Path
from urllib.parse import unquote

from headrace._core.files import os_reason
from headrace._core.formats.table import is_model_name
from headrace._core.near import near_names
from headrace._core.text import quoted
from headrace._core.urls import url_name, url_scheme
from headrace.config.values import BadValueError, is_utf8

_LISTED_NAMES = 5000
_PATH_MAX = 4096


def resolve(text: str, config: Path) -> Path:
    """The absolute path that a value of `config` means. Source: config facts, section 1.6.

    Relative paths start at the real folder of the config file (its symbolic link is followed
    first), never at the working directory. Links are resolved where the file exists; a file that
    does not exist is no error here. Neither `~` nor `$NAME` is expanded.
    """
    reason = os.strerror(errno.ENAMETOOLONG)
    try:
        joined = os.path.join(os.path.dirname(os.path.realpath(config)), text)
        if len(os.fsencode(joined)) < _PATH_MAX:
            try:
                return Path(os.path.realpath(joined, strict=True))
            except FileNotFoundError:
                return Path(joined)
    except (OSError, ValueError) as error:
        reason = os_reason(error)
    raise BadValueError(f"a usable path ({reason})", "a path that can be looked at")


def given_kind(path: Path) -> str:
    """Return the word for a path that a user gave for a model: its file, or its config."""
    return "model" if is_model_name(path.name) else "config file"


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:")
_SOURCE_AS_FILE = (
    "it looks like a source: a source follows the config in `headrace run CONFIG SOURCE`; "
    "`headrace serve` takes sources from a pipeline file, or by POST /api/sources"
)


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
            if _SCHEME.fullmatch(missing):
                return [_SOURCE_AS_FILE]
            hints.append(f"{parent} has no folder {missing}")
        with os.scandir(parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _LISTED_NAMES)]
    except (OSError, ValueError):
        return hints
    wanted = name.lower().strip(" \"'")
    suffix = Path(wanted).suffix
    folded = {c.lower(): c for c in names if c.lower().endswith(suffix)}
    close = near_names(wanted, folded)
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


_CAMERA = re.compile(r"camera:\d+|/dev/video\d+")
LIVE_SCHEMES = frozenset(("rtsp", "rtsps", "rtmp", "rtmps", "udp", "rtp", "srt", "tcp"))
_LONGEST = 8192
_FILE = re.compile(r"file://(localhost(?=/))?", re.IGNORECASE)


def is_url(text: str) -> bool:
    """Whether it is a URL of anything but a file."""
    return url_scheme(text) not in (None, "file")


def is_camera(text: str) -> bool:
    """Whether it is a camera of this machine."""
    return bool(_CAMERA.fullmatch(text))


def is_stream(text: str) -> bool:
    """Whether it is a network stream or a camera."""
    return is_camera(text) or is_url(text)


def is_live(text: str) -> bool:
    """Whether frames of it come in real time: a camera, or a stream that is no file of a server."""
    return is_camera(text) or url_scheme(text) in LIVE_SCHEMES


def uri_trouble(text: str) -> str | None:
    """Describe the fault of a source's name, to stand behind "is not"; else None."""
    if not text.strip():
        return "a path or URL: it is empty"
    if len(text) > _LONGEST:
        return f"usable: it is longer than {_LONGEST} characters"
    if any(c < " " or c == "\x7f" for c in text):
        return "printable: it holds a control character"
    return None if is_utf8(text) else "UTF-8 text"


def absolute_uri(text: str, config: Path | None = None) -> str:
    """The absolute form of a source's name: URLs and cameras stay, `file://` becomes a path.

    `file://` may be followed by a relative path, as in deepstream-app files. Relative paths start
    at the folder of `config`, None is the working directory. Patterns keep their wildcards.
    """
    if is_stream(text):
        return text
    path = text
    if prefix := _FILE.match(text):
        path = text[prefix.end() :]
        if not path:
            raise BadValueError("a path or URL: it is empty", "a path behind file://")
        written = _resolved(path, config)
        # %20 and the like stand for themselves where a file is called so
        return written if os.path.lexists(written) else _resolved(unquote(path), config)
    return _resolved(path, config)


def _resolved(text: str, config: Path | None) -> str:
    trouble = uri_trouble(text)
    if trouble:
        raise BadValueError(trouble, "a path or URL")
    folder = text.endswith("/")
    path = str(Path(text).absolute() if config is None else resolve(text, config))
    return path + "/" if folder and path != "/" else path


def safe_uri(text: str) -> str:
    """A source's name without user, password and query, for messages."""
    return quoted(url_name(text), limit=200)

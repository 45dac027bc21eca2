"""Source names in pipeline files: their kinds, their absolute form, and how to show them.

`noria.media` opens them; the rules for what is a stream are the same there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from noria._core.text import quoted, url_name, url_scheme
from noria.config.paths import resolve
from noria.config.values import BadValueError

_CAMERA = re.compile(r"camera:\d+|/dev/video\d+")
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


def uri_trouble(text: str) -> str | None:
    """Describe the fault of a source's name, to stand behind "is not"; else None."""
    if not text.strip():
        return "a path or URL: it is empty"
    if len(text) > _LONGEST:
        return f"usable: it is longer than {_LONGEST} characters"
    if any(c < " " or c == "\x7f" for c in text):
        return "printable: it holds a control character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "UTF-8 text"
    return None


def absolute_uri(text: str, config: Path | None = None) -> str:
    """The absolute form of a source's name: URLs and cameras stay, `file://` becomes a path.

    Args:
        text: as written; `file://` may be followed by a relative path, as in deepstream-app files.
        config: the file that names it, whose folder relative paths start at; None is the working
            directory. Patterns keep their wildcards.

    Raises:
        BadValueError: the path cannot be looked at.
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

"""URLs, and texts that may hold some, without their secrets."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_SECRET = re.compile(
    r"(?i)\b((?:user(?:name)?|login|pass(?:word|wd)?|pwd|token|auth|secret|api[_-]?key|key|sig\w*)"
    r"[=_:])[^/&;,?#]*"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://\S+")
_STREAM_KEY = re.compile(r"(?i)\b(rtmp\w*(?::/*|/+)[^\s/]+/\S*?)[^\s/…]+(?=\s|$)")
_LOGIN = re.compile(r"[^\s/\\'\"@]+:[^\s@]+@(?=[^\s@])")


def without_secrets(text: str) -> str:
    """`text` with its URLs as `url_name` writes them, and no secrets of mistyped ones.

    These are `user:password@` and the last part of an RTMP path.
    """
    if ":" not in text and "rtmp" not in text.lower():
        return text
    text = _URL.sub(lambda match: url_name(match[0]), text)
    return _STREAM_KEY.sub(r"\1…", _LOGIN.sub("…@", text))


def url_scheme(text: str) -> str | None:
    """The scheme of a URL in lower case; None for a path."""
    match = _SCHEME.match(text)
    return match[1].lower() if match else None


def has_login(url: str) -> bool:
    """True if a URL has a user or password before its host."""
    return "@" in urlsplit(url).netloc


def url_name(url: str) -> str:
    """`url` without user, password, query and anything that looks like a secret in its path.

    It rather cuts too much than too little: passwords are often not percent-encoded, so an `@`,
    `/` or `?` inside one must not make a part of it visible. The last part of an RTMP path is the
    key of a stream.
    """
    scheme = _SCHEME.match(url)
    if not scheme:
        return url
    rest = url[scheme.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest:
        # An @ behind a plain host belongs to the path, or to a password with a slash in it.
        plain = "@" not in authority and ":" not in authority
        rest = f"{authority}/…" if plain else rest.rpartition("@")[2]
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    rest = _SECRET.sub(r"\1…", rest)
    if scheme[1].lower().startswith("rtmp") and rest.count("/") > 1:
        rest = f"{rest.rpartition('/')[0]}/…"
    return scheme[0] + rest

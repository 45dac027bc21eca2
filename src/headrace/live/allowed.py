"""Rules of the requests to a service: the sources that they may name, among others."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headrace._core.errors import HeadraceError
from headrace._core.files import os_errors
from headrace._core.text import quoted
from headrace._core.urls import url_scheme
from headrace.config.paths import is_camera
from headrace.live.kept import KeptSources
from headrace.live.kept_changes import KeptChanges

_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)/?)?")
# What FFmpeg and this module read alike: nothing in it is a host for one and a login for the other.
_AUTHORITY = re.compile(
    r"(?:[^\s/?#\\@]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?", re.ASCII
)


class SourceRefusedError(HeadraceError):
    """A request names a source that the service may not open."""

    code = "source-not-allowed"


@dataclass(frozen=True, slots=True)
class _Remote:
    """A scheme, with a host and a port where only these are allowed."""

    scheme: str
    host: str = ""
    port: str = ""

    def covers(self, other: _Remote) -> bool:
        return self.scheme == other.scheme and (
            not self.host or (self.host == other.host and self.port in ("", other.port))
        )


class AllowedSources:
    """Holds the sources of requests against a list.

    Args:
        entries: folders; `rtsp:` and other schemes, `camera:` among them; a scheme with a host, as
            `rtsp://gate.example` or `http://10.0.0.7:8080`. Without any, every source is allowed.

    Raises:
        HeadraceError: an entry is none of these, or a folder that is not there.
    """

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._folders: list[Path] = []
        self._remotes: list[_Remote] = []
        for entry in entries:
            if match := _ENTRY.fullmatch(entry):
                remote = _remote(match[1], match[2] or "")
                if remote is None:
                    raise _no_entry(entry)
                self._remotes.append(remote)
            elif os.path.isdir(entry):
                self._folders.append(Path(entry).resolve())
            else:
                raise _no_entry(entry)

    def checked(self, uri: str) -> str:
        """The source to open for a request: `uri`, or its path without links.

        Raises:
            SourceRefusedError: it is not allowed. Nothing is opened before, and the error does not
                say whether there is such a file.
        """
        if not (self._folders or self._remotes):
            return uri
        scheme = "camera" if is_camera(uri) else url_scheme(uri)
        if scheme in (None, "file"):
            return self._path(unquote(urlsplit(uri).path) if scheme else uri)
        remote = _remote(scheme, "" if scheme == "camera" else _authority(uri))
        if remote is None or not any(entry.covers(remote) for entry in self._remotes):
            raise SourceRefusedError("the service takes no source from there")
        return uri

    def _path(self, text: str) -> str:
        try:
            path = Path(text).resolve()
        except (OSError, ValueError, RuntimeError):
            raise SourceRefusedError("the service takes no source from there") from None
        if not any(path == folder or folder in path.parents for folder in self._folders):
            raise SourceRefusedError("the service takes no source from there")
        with os_errors(SourceRefusedError, "cannot be read", path):
            links = path.is_dir() and any(entry.is_symlink() for entry in os.scandir(path))
        if links:
            raise SourceRefusedError("the folder holds links: the service takes none of it")
        return str(path)


def _authority(uri: str) -> str:
    return re.split(r"[/?#]", uri.partition("://")[2], maxsplit=1)[0]


def _remote(scheme: str, authority: str) -> _Remote | None:
    """The parts of an address; None if the authority is not a plain host with a port."""
    if not authority:
        return _Remote(scheme.lower())
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    return _Remote(scheme.lower(), match[1].lower().rstrip("."), match[2] or "")


def _no_entry(entry: str) -> HeadraceError:
    return HeadraceError(
        f"{quoted(entry)} is no place of sources",
        where="--allow-source",
        expected="a folder that is there, a scheme as rtsp:, or a scheme and a host as "
        "rtsp://gate.example",
    )


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """Limits the requests to a service.

    Attributes:
        allowed: the sources that they may name.
        open_probes: answer `/healthz` and `/readyz` without the token, too.
        kept: the live sources that they added, in this life and earlier ones.
        changes: what else requests changed, in this life and earlier ones.
    """

    allowed: AllowedSources = field(default_factory=AllowedSources)
    open_probes: bool = False
    kept: KeptSources = field(default_factory=KeptSources)
    changes: KeptChanges = field(default_factory=KeptChanges)

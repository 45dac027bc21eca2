"""Storages that fsspec reaches, and the package that each needs."""

from __future__ import annotations

import re

from headrace._core.errors import MissingExtraError
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace._core.urls import url_scheme, without_secrets

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "http": "aiohttp"}
"""Scheme -> package, of the storages that most use."""

BUCKETS = frozenset(("s3", "s3a", "gs", "gcs"))
"""URL schemes that name a bucket in front of the path."""

NO_BUCKET = "there is no such bucket"
_NO_BUCKET = "bucket does not exist"  # as S3 and GCS say it
_KEYS = "keys come from the environment or the files of the storage's own tools"
_QUERY = re.compile(r"\?[^\s'\"]*")  # signatures and tokens

_SAME = {
    "s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "adl": "az", "https": "http",
}  # fmt: skip


def missing_package(url: str, error: ImportError) -> MissingExtraError:
    """The error for a URL of a storage that needs another package."""
    scheme = url_scheme(url) or ""
    package = PACKAGES.get(_SAME.get(scheme, scheme), "")
    if not package:
        text, fix = without_secrets(str(error)), f"install the package that reads {scheme}://"
        return MissingExtraError(text, fix=fix)
    reason = error.__cause__ or error
    absent = isinstance(reason, ModuleNotFoundError) and reason.name == package
    why = "is not installed" if absent else f"cannot be imported ({error_text(reason)})"
    text = f"{package} {why}, and {scheme}:// needs it"
    return MissingExtraError(without_secrets(text), fix=f"pip install {package}")


def refusal(error: Exception) -> tuple[str, tuple[str, ...]]:
    """Word the answer of a storage, with the way out.

    Args:
        error: of a foreign file system, which may be of any type.
    """
    text = without_secrets(_QUERY.sub("", error_text(error, kind=False)))
    if isinstance(error, FileNotFoundError):
        return (NO_BUCKET if _NO_BUCKET in text.lower() else "there is no such file"), ()
    if isinstance(error, PermissionError) or "credential" in text.lower():
        return f"access is refused: {text}", (_KEYS,)
    return (text if isinstance(error, OSError) else f"{type(error).__name__}: {text}"), ()


def usable_schemes() -> dict[str, bool]:
    """Scheme -> whether its package can be imported; importing each is how that is found out.

    Raises:
        MissingExtraError: fsspec is not installed.
    """
    registry = import_extra("fsspec.registry", "remote")
    usable = {}
    for scheme in PACKAGES:
        try:
            registry.get_filesystem_class(scheme)
        except Exception:  # a package of another project: what it raises at import is anything
            usable[scheme] = False
        else:
            usable[scheme] = True
    return usable

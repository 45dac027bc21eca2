"""The key that a creator is registered under: name, version and namespace, each checked.

Source: tensorrt-plugins spec 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.errors import CustomLibraryError
from headrace.plugins.base import IPluginCreatorInterface, IPluginCreatorV3One

if TYPE_CHECKING:
    from headrace.plugins.base import AnyCreator


Key = tuple[str, str, str]
"""Name, version, namespace."""
MAX_STRING = 1024
"""Bytes of a text, with its end, that engines keep."""


def key_of(creator: object, namespace: str) -> Key:
    """Make the key of a creator under a namespace.

    Raises:
        CustomLibraryError: not a creator; a name or version is missing or too long.
    """
    where = f"creator {type(creator).__name__}"
    if not isinstance(creator, IPluginCreatorInterface):
        raise CustomLibraryError(
            f"a {type(creator).__name__} is not a plugin creator",
            expected="an object of a class derived from IPluginCreator or IPluginCreatorV3One",
        )
    if library := getattr(creator, "library", None):
        where = f"{library}: {where}"
    parts = []
    for attribute in ("name", "plugin_version"):
        text = getattr(creator, attribute, None)
        if not isinstance(text, str) or not text:
            raise CustomLibraryError(
                f"{attribute} is {text!r}"[:200],
                where=where,
                expected=f"text of 1 to {MAX_STRING - 1} bytes, set in __init__",
            )
        _check_text(text, attribute, where)
        parts.append(text)
    if not isinstance(namespace, str):
        raise CustomLibraryError(f"the namespace is {namespace!r}", where=where, expected="text")
    _check_text(namespace, "the namespace", where)
    return parts[0], parts[1], namespace


def namespace_of(creator: AnyCreator, asked: str) -> str:
    """Set the namespace that a creator is registered under; the one that it has from then on.

    Creators of version 3 have no way to be told, and C++ ones may return a constant.
    """
    if asked or not isinstance(creator, IPluginCreatorV3One):
        creator.plugin_namespace = asked
    own = getattr(creator, "plugin_namespace", asked)
    return own if isinstance(own, str) else asked


def _check_text(text: str, what: str, where: str) -> None:
    """Refuse text that a plan cannot keep: too long, or bytes of C++ that are no UTF-8."""
    data = text.encode(errors="surrogateescape")
    limit = f"text of at most {MAX_STRING - 1} bytes"
    if len(data) >= MAX_STRING:
        shown = f"{data[:20].decode(errors='replace')!r}..."
        raise CustomLibraryError(
            f"{what} is {shown}, longer than {MAX_STRING - 1} bytes", where=where, expected=limit
        )
    try:
        data.decode()
    except UnicodeDecodeError:
        shown = repr(data[:60])
        raise CustomLibraryError(
            f"{what} is {shown}, which is no UTF-8", where=where, expected=limit
        ) from None

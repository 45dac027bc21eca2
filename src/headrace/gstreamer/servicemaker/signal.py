"""Signals between custom objects and elements, as far as they have a meaning here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from headrace._core.errors import HeadraceError

_REASON = "actions of sources (smart recording, sources that come and go) are not available"


class Emitter:
    """Calls actions of elements in the original.

    `CommonFactory` makes none here: an application that checks for one goes on without.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name

    def set(self, properties: Mapping[str, object]) -> Emitter:
        """Accept properties."""
        return self

    def attach(self, action: str, node: object) -> NoReturn:
        """Refuse: no element here has such actions.

        Raises:
            HeadraceError: always.
        """
        raise HeadraceError(f"{action}: {_REASON}", where=self.name)


class Handler:
    """Handles signals of elements in the original; `Feeder` and `Receiver` are the ones here."""


class SourceManager(Emitter):
    """Adds and removes sources of `nvdsdynamicsrcbin` in the original."""

    def add_source(self, source: str) -> NoReturn:
        """Refuse: there is no such element.

        Raises:
            HeadraceError: always.
        """
        raise HeadraceError(f"a source cannot be added: {_REASON}", where=self.name,
                         fix="headrace serve adds and removes sources")  # fmt: skip

    remove_source = terminate = add_source

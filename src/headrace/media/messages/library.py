"""Payloads that a library of the user's makes (`msg2p-lib`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import headrace
from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.media.messages.converter import ConverterConfig
from headrace.media.messages.event import MessageEvent
from headrace.media.messages.payload import sensor_of

_TYPES = {"deepstream": 0, "minimal": 1, "protobuf": 2, "custom": 257}
"""Schema -> number of the original's NvDsPayloadType."""


class PayloadLibrary(Protocol):
    """A library that makes payloads; `custom/converter` has it."""

    notices: list[Finding]

    def payloads(self, event: MessageEvent, sensor: str) -> list[bytes]:
        """Make the payloads of a frame."""

    def close(self) -> None:
        """End the library."""


def library_for(
    library: str, schema: str, config: str, of_metadata: bool, where: str
) -> PayloadLibrary | None:
    """The library that makes the payloads; None without one.

    Args:
        library: its path; empty without one.
        schema: of `payload.SCHEMAS`.
        config: the converter's file; empty without one.
        of_metadata: payloads are made of metadata, else of events.
        where: the output, for messages.

    Raises:
        ConfigError: `custom` has no library, or `headrace` has one.
        CustomLibraryError: it cannot be loaded, or refuses to start.
    """
    if not library:
        if schema == "custom":
            problem = "schema=custom has no library"
            raise ConfigError(problem, where=where, expected="library=LIB.so")
        return None
    if schema not in _TYPES:
        raise ConfigError(
            f"schema={schema} is not made by a library", where=where, expected=" or ".join(_TYPES)
        )
    return headrace._wiring.open_converter(Path(library), config, _TYPES[schema], of_metadata)


def library_payloads(
    library: PayloadLibrary, event: MessageEvent, config: ConverterConfig | None
) -> list[bytes]:
    """The messages of an event.

    Raises:
        CustomLibraryError: a function of the library failed.
        LibraryDiedError: the library is given up.
    """
    return library.payloads(event, sensor_of(event, config or {}))

"""Requests and answers that are not calls of a parser: a JSON text and arrays.

`{"do": "module:function", "payload": {...}, "arrays": [[dtype, shape, offset], ...]}`, answered by
`{"payload": {...}, "arrays": [...]}` or `{"error": {...}}`. Answers may say `decisions` and
`notices`, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import (
    ConfigError,
    CustomLibraryError,
    EngineError,
    ModelError,
    NoriaError,
    ParserError,
    PluginError,
)
from noria._core.notices import Notice
from noria.custom.guard.wire import Nonsense, Region, Writer

Arrays = list[npt.NDArray[Any]]


def _types() -> dict[str, type[NoriaError]]:
    from noria.custom.cpp_function import ParserReturnedFalse

    given = (
        ConfigError, CustomLibraryError, ParserError, ParserReturnedFalse, EngineError, PluginError,
        ModelError,
    )  # fmt: skip
    return {kind.__name__: kind for kind in given}


def error_json(error: BaseException, where: str) -> dict[str, Any]:
    """An error as JSON; one that is not Noria's becomes a CustomLibraryError."""
    if not isinstance(error, NoriaError):
        error = CustomLibraryError(f"{type(error).__name__}: {error}", where=where)
    names = [kind.__name__ for kind in type(error).__mro__]
    known = _types()
    return {
        "type": next((name for name in names if name in known), "CustomLibraryError"),
        "found": error.found,
        "where": error.where,
        "expected": error.expected,
        "fix": error.fix,
    }


def error_from(given: Any) -> NoriaError:
    """What `error_json` described.

    Raises:
        Nonsense: it is no such description.
    """
    try:
        kind = _types()[given["type"]]
        where, expected = given["where"], given["expected"]
        if not str(given["found"]):
            raise Nonsense("an error without a text")
        return kind(
            str(given["found"]),
            where=None if where is None else str(where),
            expected=None if expected is None else str(expected),
            fix=[str(f) for f in given["fix"]],
        )
    except (KeyError, TypeError) as error:
        raise Nonsense(f"an error that cannot be read: {error}") from error


def notices_json(notices: list[Notice]) -> list[list[str | None]]:
    """Notices as lists of level, message, where."""
    return [[n.level, n.message, n.where] for n in notices]


def notices_from(given: Any) -> list[Notice]:
    """What `notices_json` made lists of.

    Raises:
        Nonsense: it is no such list.
    """
    try:
        return [
            Notice("warning" if level == "warning" else "info", str(text), where and str(where))
            for level, text, where in given
        ]
    except (TypeError, ValueError) as error:
        raise Nonsense(f"notices that cannot be read: {error}") from error


def put_arrays(arrays: Arrays, out: Writer) -> list[list[Any]]:
    """Write arrays; where and what they are."""
    return [[a.dtype.str, list(a.shape), out.add(a)] for a in arrays]


def arrays_in(given: Any, region: Region) -> Arrays:
    """Views of arrays that `put_arrays` wrote.

    Raises:
        Nonsense: they are not in the region, or of no plain type.
    """
    found: Arrays = []
    try:
        for dtype, shape, start in given:
            kind = np.dtype(str(dtype))
            if kind.kind not in "biuf":
                raise Nonsense(f"an array of {kind}")
            found.append(region.view(int(start), kind, [int(n) for n in shape]))
    except (TypeError, ValueError) as error:
        raise Nonsense(f"arrays that cannot be read: {error}") from error
    return found

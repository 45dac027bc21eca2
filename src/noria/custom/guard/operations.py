"""Operations of a worker beside calls of parsers; their type is `serve.Operation`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from noria._core.errors import CustomLibraryError
from noria.custom.guard.call_args import network_from
from noria.custom.guard.serve import GuardedMap, LibraryWorker
from noria.custom.opening import open_here

Arrays = list[npt.NDArray[Any]]
Answer = tuple[dict[str, Any], Arrays]


def load_library(worker: LibraryWorker, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Load the library in this process."""
    library = open_here(payload["path"], abi=payload["abi"], rotation=payload["rotation"])
    worker.library = library
    has_initializer = library.input_initializer() is not None
    return {
        "symbols": list(library.symbols()),
        "initializer": has_initializer,
        "unprotected": worker.unprotected,
    }, []


def open_parser(worker: LibraryWorker, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Get a parser of the library: its number, and its name in errors."""
    assert worker.library is not None
    kind, name = payload["kind"], payload["name"]
    parser = getattr(worker.library, f"{kind}_parser")(name)
    inner: Any = getattr(parser, "_parser", None)
    if hasattr(inner, "new_map"):
        inner.new_map = GuardedMap()
    worker.parsers.append((kind, parser, parser.where))
    return {"parser": len(worker.parsers) - 1, "where": parser.where}, []


def prepare(worker: LibraryWorker, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Prepare calls of one parser: its layers are views of the input region."""
    worker.prepare(payload, arrays)
    return {}, []


def initialize(worker: LibraryWorker, payload: dict[str, Any], arrays: Arrays) -> Answer:
    """Fill the inputs beside the picture; return the same arrays."""
    assert worker.library is not None
    function = worker.library.input_initializer()
    if function is None:
        raise CustomLibraryError(
            "the library fills no inputs any more", where=str(worker.library.path)
        )
    filled = dict(zip(payload["names"], arrays, strict=True))
    function(filled, network_from(payload["network"]), payload["max_batch"])
    return {}, list(filled.values())

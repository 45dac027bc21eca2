"""Optional packages, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from noria._core.errors import MissingExtraError


def import_extra(module: str, extra: str) -> Any:
    """The module of an optional package.

    Raises:
        MissingExtraError: the package is not installed; the error names `noria[extra]`.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the package is there, but broken
        raise MissingExtraError(
            f"{package} is not installed, and this needs it", fix=f"pip install 'noria[{extra}]'"
        ) from error

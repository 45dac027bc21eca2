"""Inputs beside the picture: filled once, before the first inference, by user code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import CustomLibraryError
from noria._core.user_module import describe
from noria.meta import NetworkInfo

INPUT_INITIALIZER = "NvDsInferInitializeInputLayers"
"""The name it has in C++ and in Python."""

INITIALIZER_SIGNATURE = f"def {INPUT_INITIALIZER}(layers, network, max_batch) -> bool | None"

InputInitializer = Callable[[dict[str, npt.NDArray[Any]], NetworkInfo, int], None]
"""(name -> array to fill, network, maximum batch) -> None.

The arrays are zero-filled, writable, C-contiguous, (max_batch, ...), one for every input but the
first, in binding order. Raises CustomLibraryError where the function fails. Source: spec D.7;
custom-library spec 2.3 (5).
"""


def checked_initializer(
    function: Callable[[dict[str, npt.NDArray[Any]], NetworkInfo, int], Any],
    where: str,
    folder: Path | None = None,
) -> InputInitializer:
    """Wrap a user's function so that its failure is an error, and its entries are filled.

    Arrays that it puts into the mapping instead of filling those in it are copied over.

    Args:
        function: as the user wrote it.
        where: file and function, for messages.
        folder: folder of the user's Python code; errors name the line in it that failed.
    """

    def initialize(
        layers: dict[str, npt.NDArray[Any]], network: NetworkInfo, max_batch: int
    ) -> None:
        passed = dict(layers)
        try:
            result = function(passed, network, max_batch)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit(0), which would look like success
            raise _failed(error, where, folder, layers) from error
        if result is not None and not isinstance(result, bool | np.bool_):
            raise CustomLibraryError(
                f"the function returned {type(result).__name__}",
                where=where,
                expected="True or nothing; False: the inputs cannot be filled",
            )
        if result is not None and not result:
            raise CustomLibraryError(
                "the function returned false: the inputs beside the picture are not filled",
                where=where,
                expected=f"values for {', '.join(layers)}",
            )
        _copy_replaced(passed, layers, where)

    return initialize


def _copy_replaced(passed: dict[str, Any], layers: dict[str, npt.NDArray[Any]], where: str) -> None:
    if unknown := [str(name) for name in passed if name not in layers]:
        raise CustomLibraryError(
            f"the function set {', '.join(unknown)}, which the network has no input for",
            where=where,
            expected=f"one of {', '.join(layers)}",
        )
    for name, array in layers.items():
        value = passed.get(name, array)
        if value is array:
            continue
        try:
            np.copyto(array, np.asarray(value), casting="same_kind")
        except (TypeError, ValueError) as error:
            raise CustomLibraryError(
                f"input {name} was set to something that does not fit: {error}",
                where=where,
                expected=f"{array.dtype} of shape {array.shape}",
                fix=f"fill the array that is there: layers[{name!r}][:] = …",
            ) from error


def _failed(
    error: BaseException, where: str, folder: Path | None, layers: dict[str, npt.NDArray[Any]]
) -> CustomLibraryError:
    if folder is None:  # C++: its errors are complete
        if isinstance(error, CustomLibraryError):
            return error
        return CustomLibraryError(f"{type(error).__name__}: {error}", where=where)
    found, line, trail = describe(error, folder)
    if isinstance(error, KeyError):
        trail = [*trail, f"the inputs beside the picture are: {', '.join(layers)}"]
    if isinstance(error, SystemExit):
        found = f"the function tried to end the program (exit code {error.code})"
    return CustomLibraryError(found, where=f"{line} ({where})" if line else where, fix=trail)

"""Calls of users' functions: exceptions become errors that name the user's line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, TypeVar

import numpy as np

from headrace._core.array_fault import array_fault
from headrace._core.errors import CustomLibraryError, HeadraceError, ParserError
from headrace._core.findings import Finding
from headrace._core.text import error_text
from headrace._core.types import Array
from headrace._core.user_module import describe, is_interrupt
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from headrace.meta import Layer, NetworkInfo


ParserKind = Literal["bbox", "instance", "classifier", "segmentation"]

P = TypeVar("P")  # type of the parser's third argument
R = TypeVar("R")  # type of its result


class Checked(ABC, Generic[P, R]):
    """A parser of a user's library, its results checked; called like the parser itself.

    Every call of a parser goes through here: detector, instance, classifier and segmentation
    parsers, in Python and C++, in this process and in a worker. One call runs the parser once.

    Attributes:
        where: file and function, as errors name it.
        notices: repairs of results; one entry per kind of repair, from the first frame that had it.
    """

    __slots__ = ("_folder", "_parser", "_warned", "notices", "where")

    wanted: ClassVar[type]
    nothing: ClassVar[str]

    def __init__(
        self,
        parser: Callable[[Mapping[str, Layer], NetworkInfo, P], object],
        where: str,
        folder: Path | None = None,
        notices: list[Finding] | None = None,
    ) -> None:
        self._parser = parser
        self._folder = folder
        self._warned: set[str] = set()
        self.where = where
        self.notices = [] if notices is None else notices

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where})"

    def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: P) -> R:
        """Parse and check one item.

        Raises:
            ParserError: the parser raised, or returned something that is no result.
        """
        try:
            returned = self._parser(layers, network, params)
        except BaseException as error:  # also sys.exit(0), which would look like success
            if is_interrupt(error):
                raise
            if self._folder is None and isinstance(error, ParserError):
                raise
            raise failed(error, self.where, self._folder, layers) from error
        return self.check(returned, params)

    @abstractmethod
    def check(self, returned: object, params: P) -> R:
        """Check and repair a parser's result; raises as a call does."""

    def warn_once(self, key: str, message: str) -> None:
        """Add a notice the first time that `key` comes up."""
        if key not in self._warned:
            self._warned.add(key)
            self.notices.append(Finding("parser-results", "warning", message, self.where))

    def refuse(
        self, returned: str, expected: str | None = None, fix: str | None = None
    ) -> NoReturn:
        """Raise a `ParserError` about the parser's result."""
        raise ParserError(
            f"the parser returned {returned}", where=self.where, expected=expected, fix=fix
        )

    def require_type(self, result: object) -> None:
        """Refuse a result of another type than `wanted`."""
        if isinstance(result, self.wanted):
            return
        name = f"headrace.{self.wanted.__name__}"
        if result is None:
            self.refuse("None", name, f"does every path end in a return? {self.nothing}")
        kind = type(result)
        type_name = kind.__qualname__
        if kind.__module__ not in ("builtins", self.wanted.__module__):
            type_name = f"{kind.__module__}.{type_name}"
        article = "an" if type_name[:1].lower() in "aeiou" else "a"
        names = [n for n in self.wanted.__annotations__ if n not in ("masks", "angles", "space")]
        fields = ", ".join(f"{n}=…" for n in names)
        self.refuse(f"{article} {type_name}", name, f"return {name}({fields})")


def failed(
    error: BaseException, where: str, folder: Path | None, layers: Mapping[str, object]
) -> ParserError:
    """Make the error for an exception out of a user's function.

    Args:
        error: the exception.
        where: file and function.
        folder: folder of the user's Python code; None for C++ and for code of headrace.
        layers: passed to the function; their names explain a KeyError.
    """
    if folder is None and isinstance(error, HeadraceError):
        return ParserError(error.finding, where=error.where or where, code=ParserError.code)
    if folder is None:
        return ParserError(error_text(error), where=where)
    message, line, trail = describe(error, folder)
    where = f"{line} ({where})" if line else where
    if isinstance(error, HeadraceError):
        return ParserError(error.finding.at(where), fix=trail, code=ParserError.code)
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        trail = [*trail, f"the network's outputs are: {', '.join(layers)}"]
    if isinstance(error, SystemExit):
        message = f"the parser tried to end the program (exit code {error.code})"
        return ParserError(message, where=where, fix=[*trail, "raise an error instead"])
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    text = f"the parser raised {message}"
    return ParserError(text, where=where, fix=trail, data={"exception": kind})


INPUT_INITIALIZER = "NvDsInferInitializeInputLayers"
"""The name it has in C++ and in Python."""

INITIALIZER_SIGNATURE = f"def {INPUT_INITIALIZER}(layers, network, max_batch) -> bool | None"

InputInitializer = Callable[[dict[str, Array], NetworkInfo, int], None]
"""(name -> array to fill, network, maximum batch) -> None.

The arrays are zero-filled, writable, C-contiguous, (max_batch, ...), one for every input but the
first, in binding order. Raises CustomLibraryError where the function fails. Source: spec D.7;
custom-library spec 2.3 (5).
"""


def checked_initializer(
    function: Callable[[dict[str, Array], NetworkInfo, int], Any],
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

    def initialize(layers: dict[str, Array], network: NetworkInfo, max_batch: int) -> None:
        passed = dict(layers)
        try:
            result = function(passed, network, max_batch)
        except BaseException as error:  # also sys.exit(0), which would look like success
            if is_interrupt(error):
                raise
            raise _failed(error, where, folder, layers) from error
        if result is not None and not isinstance(result, bool | np.bool_):
            raise CustomLibraryError(
                f"the function returned {type(result).__name__}",
                where=where,
                expected="True or nothing; False: the inputs cannot be filled",
            )
        if result is not None and not result:
            raise CustomLibraryError(
                "the function returned false: the inputs beside the image are not filled",
                where=where,
                expected=f"values for {', '.join(layers)}",
            )
        _copy_replaced(passed, layers, where)

    return initialize


def _copy_replaced(passed: dict[str, Any], layers: dict[str, Array], where: str) -> None:
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
        except (TypeError, ValueError, OverflowError) as error:
            fault = _fit_fault(value)
            raise CustomLibraryError(
                f"input {name} was set to something that does not fit: {fault}",
                where=where,
                expected=f"{array.dtype} of shape {array.shape}",
                fix=f"fill the array that is there: layers[{name!r}][:] = …",
            ) from error


def _failed(
    error: BaseException, where: str, folder: Path | None, layers: dict[str, Array]
) -> CustomLibraryError:
    if folder is None:  # C++: its errors are complete
        if isinstance(error, CustomLibraryError):
            return error
        return CustomLibraryError(error_text(error), where=where)
    message, line, trail = describe(error, folder)
    if isinstance(error, KeyError):
        trail = [*trail, f"the inputs beside the image are: {', '.join(layers)}"]
    if isinstance(error, SystemExit):
        message = f"the function tried to end the program (exit code {error.code})"
    return CustomLibraryError(message, where=f"{line} ({where})" if line else where, fix=trail)


def _fit_fault(value: Any) -> str:
    try:
        values = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return array_fault(value)
    if values.dtype.kind not in "fiub":
        return array_fault(value)
    return f"{values.dtype} of shape {values.shape}"

"""Calls of users' parsers: exceptions become errors that name the user's line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from noria._core.errors import NoriaError, ParserError
from noria._core.notices import Notice
from noria._core.user_module import describe

if TYPE_CHECKING:
    from noria.meta import Layer, NetworkInfo

P = TypeVar("P")  # type of the parser's third argument
R = TypeVar("R")  # type of its result


class Checked(Generic[P, R]):
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
        parser: Callable[[Mapping[str, Layer], NetworkInfo, P], Any],
        where: str,
        folder: Path | None = None,
    ) -> None:
        self._parser = parser
        self._folder = folder
        self._warned: set[str] = set()
        self.where = where
        self.notices: list[Notice] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where})"

    def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: P) -> R:
        """Parse and check one item.

        Raises:
            ParserError: the parser raised, or returned something that is no result.
        """
        try:
            returned = self._parser(layers, network, params)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit(0), which would look like success
            if self._folder is None and isinstance(error, ParserError):
                raise
            raise failed(error, self.where, self._folder, layers) from error
        return self.check(returned, params)

    def check(self, returned: Any, params: P) -> R:
        """Check and repair a parser's result; raises as a call does."""
        raise NotImplementedError

    def warn_once(self, key: str, message: str) -> None:
        """Add a notice the first time that `key` comes up."""
        if key not in self._warned:
            self._warned.add(key)
            self.notices.append(Notice("warning", message, where=self.where))

    def refuse(self, found: str, expected: str | None = None, fix: str | None = None) -> NoReturn:
        """Raise a `ParserError` about the parser's result."""
        raise ParserError(
            f"the parser returned {found}", where=self.where, expected=expected, fix=fix
        )

    def require_type(self, result: Any) -> None:
        """Refuse a result of another type than `wanted`."""
        if isinstance(result, self.wanted):
            return
        name = f"noria.{self.wanted.__name__}"
        if result is None:
            self.refuse("None", name, f"does every path end in a return? {self.nothing}")
        kind = type(result)
        found = kind.__qualname__
        if kind.__module__ not in ("builtins", self.wanted.__module__):
            found = f"{kind.__module__}.{found}"
        self.refuse(f"{_article(found)} {found}", name, f"return {name}({self._fields()})")

    def _fields(self) -> str:
        names = [n for n in self.wanted.__annotations__ if n not in ("masks", "angles", "space")]
        return ", ".join(f"{n}=…" for n in names)


def failed(
    error: BaseException, where: str, folder: Path | None, layers: Mapping[str, object]
) -> ParserError:
    """Make the error for an exception out of a user's function.

    Args:
        error: the exception.
        where: file and function.
        folder: folder of the user's Python code; None for C++ and for code of noria.
        layers: passed to the function; their names explain a KeyError.
    """
    if folder is None and isinstance(error, NoriaError):
        where = error.where or where
        return ParserError(error.found, where=where, expected=error.expected, fix=error.fix)
    if folder is None:
        return ParserError(f"{type(error).__name__}: {error}", where=where)
    found, line, trail = describe(error, folder)
    where = f"{line} ({where})" if line else where
    if isinstance(error, NoriaError):
        found = f"{error.where}: {error.found}" if error.where else error.found
        fix = [*error.fix, *trail]
        return ParserError(found, where=where, expected=error.expected, fix=fix)
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        trail = [*trail, f"the network's outputs are: {', '.join(layers)}"]
    if isinstance(error, SystemExit):
        found = f"the parser tried to end the program (exit code {error.code})"
        return ParserError(found, where=where, fix=[*trail, "raise an error instead"])
    return ParserError(f"the parser raised {found}", where=where, fix=trail)


def _article(name: str) -> str:
    return "an" if name[:1].lower() in "aeiou" else "a"

"""Calling user code: exceptions become errors that name the user's line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from noria import _native
from noria._core.errors import NoriaError, ParserError
from noria._core.notices import Notice
from noria._core.user_module import describe

if TYPE_CHECKING:
    from noria.meta import Layer, NetworkInfo

P = TypeVar("P")  # what the parser is given as its third argument
R = TypeVar("R")  # what it returns


class Checked(_native.QuickCaller, Generic[P, R]):
    """A parser whose results are sound, called like the parser itself.

    A call is `further`, unless something native (`set_quick`) can do it: no Python runs then, each
    line of which is read from memory anew after a parser went through a large tensor.

    Attributes:
        where: file and function, as errors name it.
        notices: what was repaired; one entry per kind of repair, from the first frame that had it.
    """

    __slots__ = ("_folder", "_parser", "_said", "notices", "where")

    wanted: ClassVar[type]
    nothing: ClassVar[str]

    def __init__(
        self,
        parser: Callable[[Mapping[str, Layer], NetworkInfo, P], R],
        where: str,
        folder: Path | None = None,
    ) -> None:
        self._parser = parser
        self._folder = folder
        self._said: set[str] = set()
        self.where = where
        self.notices: list[Notice] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where})"

    if TYPE_CHECKING:

        def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: P) -> R:
            """What `further` returns and raises."""

    def further(self, layers: Mapping[str, Layer], network: NetworkInfo, params: P) -> R:
        """Parse and check one item.

        Raises:
            ParserError: the parser raised, or returned something that is no result.
        """
        return self.check(self.told(self._parser, layers, network, params), params)

    def told(
        self,
        parser: Callable[..., Any],
        layers: Mapping[str, Layer],
        network: NetworkInfo,
        params: P,
    ) -> Any:
        """What a parser returns, its exceptions told as errors."""
        try:
            return parser(layers, network, params)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit(0), which would look like success
            raise failed(error, self.where, self._folder, layers) from error

    def check(self, returned: Any, params: P) -> R:
        """What a call makes of a parser's result; the same errors."""
        raise NotImplementedError

    def say_once(self, key: str, message: str) -> None:
        """A warning, the first time that `key` comes up."""
        if key not in self._said:
            self._said.add(key)
            self.notices.append(Notice("warning", message, where=self.where))

    def refuse(self, found: str, expected: str | None = None, fix: str | None = None) -> NoReturn:
        """Raise a `ParserError` about what the parser returned."""
        raise ParserError(
            f"the parser returned {found}", where=self.where, expected=expected, fix=fix
        )

    def require_type(self, result: Any) -> None:
        """Refuse a result that is not a `wanted`."""
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
    """The error for an exception out of a user's function.

    Args:
        where: file and function.
        folder: folder of the user's Python code; None: C++ or built-in, whose errors are complete.
        layers: what the function was given, to explain a KeyError.
    """
    if folder is None:
        if isinstance(error, ParserError):
            return error
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

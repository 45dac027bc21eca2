"""What comes back from a user's parser is checked before anything relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from noria.custom.user_code import describe
from noria.errors import NoriaError, ParserError
from noria.meta import BoxParser, DetectionParams, Detections, Layer, NetworkInfo, Space
from noria.notices import Notice

__all__ = ["MAX_OBJECTS", "CheckedParser", "checked"]

MAX_OBJECTS = 1_000_000
"""More boxes than this in one frame are refused: no head has as many candidates, but a parser that
reads past a tensor, or boxes decoded with the wrong stride, easily return more."""


class CheckedParser:
    """A parser whose results are sound: a `BoxParser` like any other.

    Attributes:
        where: file and function, as errors name it.
        notices: what was repaired; one entry per kind of repair, from the first frame that had it.
    """

    __slots__ = ("_folder", "_parser", "_said", "notices", "where")

    def __init__(self, parser: BoxParser, where: str, folder: Path | None = None) -> None:
        self._parser = parser
        self._folder = folder
        self._said: set[str] = set()
        self.where = where
        self.notices: list[Notice] = []

    def __repr__(self) -> str:
        return f"CheckedParser({self.where})"

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """Parse and check one frame.

        Returns:
            Detections in network space; all coordinates, scores and angles are finite, class ids
            are not negative. A class id above the configured ones is left to thresholding.

        Raises:
            ParserError: the parser raised, or returned something that is no detection result.
        """
        try:
            returned: Any = self._parser(layers, network, params)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit(0), which would look like success
            raise self._failed(error, layers) from error
        return self.check(returned)

    def check(self, returned: Any) -> Detections:
        """What `__call__` makes of a parser's result; the same errors."""
        result = self._require_detections(returned)
        if result.space is not Space.NETWORK:
            raise ParserError(
                f"the parser returned boxes in {result.space} space",
                where=self.where,
                expected="boxes in pixels of the network input (Space.NETWORK, the default)",
            )
        if not _well_formed(result):
            result = Detections(
                result.boxes, result.scores, result.class_ids, result.masks, result.angles
            )
        count = len(result.scores)
        if not count:
            return result
        if count > MAX_OBJECTS:
            raise too_many(count, self.where)
        if int(result.class_ids.min()) < 0:
            index = int(np.argmin(result.class_ids))
            raise ParserError(
                f"the parser returned class id {int(result.class_ids[index])} (box {index})",
                where=self.where,
                expected="class ids of 0 and above",
                fix="a background class must be left out by the parser",
            )
        finite = np.isfinite(result.boxes).all() and np.isfinite(result.scores).all()
        if result.angles is not None:
            finite = finite and np.isfinite(result.angles).all()
        return result if finite else self._without_broken(result)

    def _without_broken(self, result: Detections) -> Detections:
        keep = np.isfinite(result.boxes).all(axis=1) & np.isfinite(result.scores)
        if result.angles is not None:
            keep &= np.isfinite(result.angles)
        dropped = len(keep) - int(np.count_nonzero(keep))
        self._say_once(
            "nan",
            f"{dropped} of {len(keep)} boxes of a frame had NaN or infinite coordinates or scores "
            "and were removed; later frames are treated alike without a further word",
        )
        return result.select(keep)

    def _say_once(self, key: str, message: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self.notices.append(Notice("warning", message, where=self.where))

    def _require_detections(self, result: Any) -> Detections:
        if isinstance(result, Detections):
            return result
        fix = "return noria.Detections(boxes=…, scores=…, class_ids=…)"
        if result is None:
            raise ParserError(
                "the parser returned None",
                where=self.where,
                expected="noria.Detections",
                fix="does every path end in a return? without objects return Detections.empty()",
            )
        kind = type(result)
        name = kind.__qualname__
        if kind.__module__ not in ("builtins", "noria.meta.detections"):
            name = f"{kind.__module__}.{name}"
        raise ParserError(
            f"the parser returned {_article(name)} {name}",
            where=self.where,
            expected="noria.Detections",
            fix=fix,
        )

    def _failed(self, error: BaseException, layers: Mapping[str, Layer]) -> ParserError:
        if self._folder is None:  # C++ or built-in: its errors are complete
            if isinstance(error, ParserError):
                return error
            return ParserError(f"{type(error).__name__}: {error}", where=self.where)
        found, line, trail = describe(error, self._folder)
        where = f"{line} ({self.where})" if line else self.where
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


def checked(parser: BoxParser, where: str, *, folder: Path | None = None) -> CheckedParser:
    """Wrap a parser so that what it returns can be relied on.

    Refused with `ParserError`: an exception, a result that is not `Detections` in network space,
    a negative class id, more than `MAX_OBJECTS` boxes. Repaired, and said once in `.notices`:
    boxes with NaN or infinite coordinates, score or angle are removed.

    Args:
        where: file and function, for messages.
        folder: folder of the user's Python code; errors name the line in it that failed.
    """
    return CheckedParser(parser, where, folder)


def too_many(count: int, where: str) -> ParserError:
    """The error for an absurd number of boxes."""
    return ParserError(
        f"the parser returned {count:,} boxes for one frame",
        where=where,
        expected=f"at most {MAX_OBJECTS:,}",
        fix="skip candidates below params.per_class_threshold, or check the decoding loop's bounds",
    )


def _well_formed(result: Detections) -> bool:
    """Whether the arrays are still what construction made them: fields can be assigned later."""
    boxes, scores, ids = result.boxes, result.scores, result.class_ids
    return (
        isinstance(boxes, np.ndarray)
        and isinstance(scores, np.ndarray)
        and isinstance(ids, np.ndarray)
        and boxes.dtype == np.float32
        and scores.dtype == np.float32
        and ids.dtype == np.int32
        and scores.ndim == 1
        and boxes.shape == (len(scores), 4)
        and ids.shape == scores.shape
    )


def _article(name: str) -> str:
    return "an" if name[:1].lower() in "aeiou" else "a"

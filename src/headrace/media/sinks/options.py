"""Options of an output, behind the `?` of its name."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from urllib.parse import parse_qsl

from headrace._core.errors import MediaError


class SinkOptions:
    """Values by name; the last one counts where a name stands twice.

    Args:
        query: what stands behind the `?`, as `before=5&on=call`.
        where: the output, for errors.
        names: all that may be given.

    Raises:
        MediaError: another name is given.
    """

    def __init__(self, query: str, where: str, names: Sequence[str]) -> None:
        self._texts = dict(parse_qsl(query, keep_blank_values=True))
        self._where = where
        for name in self._texts:
            if name not in names:
                expected = ", ".join(names)
                raise MediaError(f"{name!r} is not an option", where=where, expected=expected)

    def text(self, name: str, default: str = "") -> str:
        """A value as it is given."""
        return self._texts.get(name, default)

    def names(self, name: str) -> list[str]:
        """A list with commas between."""
        return [part for part in self.text(name).split(",") if part]

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """One of some words.

        Raises:
            MediaError: it is none of them.
        """
        text = self.text(name, default)
        if text not in choices:
            raise self.unknown(name, ", ".join(choices))
        return text

    def number(
        self, name: str, default: float, most: float, unit: str, *, least: float = 0.0
    ) -> float:
        """A number.

        Raises:
            MediaError: it is none, or not from `least` to `most`.
        """
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise self._out_of_range(name, f"{unit} from {least:g} to {most:g}")
        return value

    def whole(self, name: str, default: int, most: int, unit: str) -> int:
        """A whole number.

        Raises:
            MediaError: it is none, or not from 0 to `most`.
        """
        value = self.number(name, default, most, unit)
        if value != int(value):
            raise self._out_of_range(name, f"a whole number of {unit} from 0 to {most}")
        return int(value)

    def unknown(self, name: str, expected: str) -> MediaError:
        """The error for a value that means nothing."""
        problem = f"{name}={self.text(name)} is unknown"
        return MediaError(problem, where=self._where, expected=expected)

    def _out_of_range(self, name: str, expected: str) -> MediaError:
        problem = f"{name}={self.text(name)} is out of range"
        return MediaError(problem, where=self._where, expected=expected)

"""Keys of the original's tracker files: the table `original_keys.toml`, and how a value is read."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

_TABLE = Path(__file__).with_name("original_keys.toml")

Acts = Literal["applied", "near", "so", "no"]

OLD_SECTION = "NvDCF"
"""The one section of files of generation 5."""
_LATE = ("MultiViewAssociator", "PoseEstimator", "Control", OLD_SECTION)
"""Sections in which a key without one is looked for last."""


@dataclass(frozen=True, slots=True)
class OriginalKey:
    """One key.

    Attributes:
        section, name: as files write them.
        default: the original's default, whose type is the key's.
        acts: `applied` as published; `near` where a rule is not published or done in another way;
            `so` where it asks for nothing that is not so anyway, or belongs to a key that is
            named; `no` where nothing acts on it.
        text: what it is for.
        how: of `near`, what differs.
        to: the value of the core that it sets; empty for none.
        low, high: limits of a number, both allowed.
        live: it may be changed while the tracker runs.
        unset: values of a key of `no` that ask for nothing.
    """

    section: str
    name: str
    default: Any
    acts: Acts
    text: str
    how: str = ""
    to: str = ""
    low: float = -math.inf
    high: float = math.inf
    live: bool = False
    unset: tuple[Any, ...] = ()

    @property
    def path(self) -> str:
        """Section and name."""
        return f"{self.section}.{self.name}"

    @property
    def expected(self) -> str:
        """The values that it may have."""
        if isinstance(self.default, bool):
            return "0 or 1"
        if isinstance(self.default, str):
            return "a text"
        if isinstance(self.default, list):
            return "a list of numbers"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        if math.isfinite(self.high):
            return f"{kind} from {self.low:g} to {self.high:g}"
        return f"{kind} of at least {self.low:g}" if math.isfinite(self.low) else kind

    def read(self, value: object) -> Any:
        """The value in the key's type.

        Raises:
            ValueError: it is none.
        """
        if isinstance(self.default, str):
            return "" if value is None else str(value)
        if isinstance(self.default, list):
            # one that nothing acts on may hold texts, as paths of camera models
            parts = value if isinstance(value, list) else str(value).replace(",", ";").split(";")
            return [_number(part) for part in parts] if self.to else parts
        if isinstance(self.default, bool):
            return _truth(value)
        number = _number(value)
        if not self.low <= number <= self.high:
            raise ValueError
        if isinstance(self.default, int):
            if number != int(number):
                raise ValueError
            return int(number)
        return number

    def asks_for_nothing(self, value: object) -> bool:
        """Whether a key that nothing acts on has a value that needs no notice."""
        return value in self.unset or (isinstance(value, list) and not any(value))


def _number(value: object) -> float:
    if isinstance(value, str | int | float):
        number = float(value)
        if math.isfinite(number):
            return number
    raise ValueError


def _truth(value: object) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return text == "true"
    return _number(value) != 0


@cache
def original_keys() -> Mapping[str, OriginalKey]:
    """All keys by `section.name`, in the order of the table."""
    table = tomllib.loads(_TABLE.read_text("utf-8"))
    keys = {}
    for section, rows in table.items():
        for name, row in rows.items():
            unset = tuple(row.pop("unset", ()))
            key = OriginalKey(section, name, unset=unset, **row)
            keys[key.path] = key
    return MappingProxyType(keys)


@cache
def _by_name() -> Mapping[str, tuple[OriginalKey, ...]]:
    named: dict[str, list[OriginalKey]] = {}
    for key in sorted(original_keys().values(), key=lambda key: key.section in _LATE):
        named.setdefault(key.name, []).append(key)
    # both of these sections have thresholds of one name; those of association are meant
    for some in named.values():
        some.sort(key=lambda key: key.section == "TrajectoryManagement")
    return {name: tuple(some) for name, some in named.items()}


def find_key(path: str) -> OriginalKey | None:
    """The key that `section.name`, or a name alone, stands for; None if there is none.

    Generations moved keys between sections: one that its section does not have is the same key
    in another, as long as the section itself is one.
    """
    keys = original_keys()
    if path in keys:
        return keys[path]
    section, _, name = path.rpartition(".")
    if section and section not in {key.section for key in keys.values()}:
        return None
    return next(iter(_by_name().get(name, ())), None)

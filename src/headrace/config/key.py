"""The description of one key: how it is read, its range, its users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from headrace._core.plain_record import PlainRecord
from headrace.config.enums import NamedValue
from headrace.config.values import INT_MAX, INT_MIN, Kind

_FLOAT_MAX = 3.4028234663852886e38


class Key(PlainRecord, frozen=True, kw_only=True):
    """One key of a config file.

    Attributes:
        name: as a file writes it.
        group: `property` or `class-attrs`.
        kind: how its text is read.
        default: the value when no file names it; None is "nothing".
        meaning: one line for people.
        enum: the named values, for numbered choices.
        choices: the allowed texts, for the few texts that are a choice.
        low, high: inclusive range of numbers, of each item for lists.
        counts: allowed numbers of items, for lists.
        since: first generation that reads it (`4.0.1`: all that were inspected).
        until: last generation that acts on it, if it is over; it stays accepted.
        types: network types that use it; empty: all.
        mode: `primary` or `secondary` when only one uses it.
        in_yaml: false when only the INI form knows it.
        loose: its YAML form reads a leading decimal number and ignores what follows.
        acts: Headrace acts on it today.
        acts_for: the only values it acts on so far, for choices; empty: all.
        reason: why it has nothing to act on here, to stand behind "NAME has no effect: ".
        legacy: what to write instead, for keys kept for old files.
        field: name in `ModelConfig` or `ClassAttrs`; None for legacy keys without one.
        extension: Headrace's own key, unknown to the original.
    """

    name: str
    group: str
    kind: Kind
    default: Any
    meaning: str
    enum: type[NamedValue] | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    counts: tuple[int, ...] = ()
    since: str = "4.0.1"
    until: str | None = None
    types: tuple[int, ...] = ()
    mode: str | None = None
    in_yaml: bool = True
    loose: bool = False
    acts: bool = False
    acts_for: tuple[int, ...] = ()
    reason: str | None = None
    legacy: str | None = None
    field: str | None = None
    extension: bool = False

    def expected(self) -> str:
        """The allowed values in words, to stand behind "expected"."""
        if self.enum is not None:
            return f"one of {self.enum.choices()}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.counts:
            numbers = " or ".join(map(str, self.counts))
            if len(self.counts) > 2:
                numbers = f"{self.counts[0]} to {self.counts[-1]}"
                if not any(count % 2 for count in self.counts):
                    numbers = "an even number of"
            what = "integers" if self.kind is Kind.INTS else "numbers"
            return f"{numbers} {what} with ; between them"
        if self.kind in (Kind.INT, Kind.INTS):
            low, high = self.low, self.high
            each = "an integer" if self.kind is Kind.INT else "integers with ; between them, each"
            if high is None:
                return f"{each}, {low} or more" if low is not None else each
            return f"{each} from {low} to {high}"
        if self.kind is Kind.FLOAT:
            if self.high is not None:
                return f"a number from {self.low:g} to {self.high:g}"
            return f"a number, {self.low:g} or more" if self.low is not None else "a finite number"
        return {Kind.FLAG: "0 or 1", Kind.INT_FLAG: "0 or 1"}.get(self.kind, f"a {self.kind.value}")

    def trouble(self, value: Any) -> str | None:
        """Describe the fault of a value of the right type, to stand behind "is not"; else None.

        `value` is a plain number, text or tuple, or the enum member.
        """
        items: Sequence[Any] = value if isinstance(value, tuple) else (value,)
        if self.enum is not None:
            return None if value in set(self.enum) else self.enum.noun()
        if self.choices and value is not None:
            return None if value in self.choices else "a known choice"
        if self.counts and value is not None and len(items) not in self.counts:
            return f"a list of {' or '.join(map(str, self.counts))}"
        for item in items:
            if isinstance(item, str | PurePath):
                if any(c < " " and c not in "\t\n\r" for c in str(item)):
                    return "printable: it holds a control character"
            elif isinstance(item, float) and not -_FLOAT_MAX <= item <= _FLOAT_MAX:
                return "a finite number"
            elif isinstance(item, int | float):
                low = -math.inf if self.low is None else self.low
                high = math.inf if self.high is None else self.high
                if isinstance(item, int):
                    low, high = max(low, INT_MIN), min(high, INT_MAX)
                if not low <= item <= high:
                    return "in range"
        return None


def key_row(group: str, name: str, kind: Kind, default: Any, meaning: str, **more: Any) -> Key:
    """Describe a key of a group, with the field of the same name; keys for old files have none."""
    more.setdefault("field", None if "legacy" in more else name.replace("-", "_"))
    return Key(name=name, group=group, kind=kind, default=default, meaning=meaning, **more)


def table(*keys: Key) -> dict[str, Key]:
    """Make a table of keys."""
    return {key.name: key for key in keys}

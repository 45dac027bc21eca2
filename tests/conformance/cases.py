"""Reading case files, and comparing what a case expects with what the product does."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_CASES = Path(__file__).with_name("cases.json")
SCHEMA = "nvinfer-conformance/1"


class UnknownShape(AssertionError):
    """A case of a known area says something that its runner does not understand."""


@dataclass(frozen=True)
class Case:
    id: str
    area: str
    given: dict[str, Any]
    expect: dict[str, Any]
    title: str = ""
    generation: str = "9.1"
    tolerance: float = 0.0


def case_file() -> Path:
    return Path(os.environ.get("HEADRACE_CONFORMANCE_CASES") or OWN_CASES)


def load_cases(path: Path) -> list[Case]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {content.get('schema')!r}, expected {SCHEMA!r}")
    known = dict.fromkeys(Case.__dataclass_fields__)
    return [
        Case(**{k: v for k, v in case.items() if k in known and v is not None})
        for case in content["cases"]
    ]


class Given(Mapping[str, Any]):
    """What a case gives; knows which keys were read, so that none is ignored in silence."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = {k.replace("-", "_"): v for k, v in values.items()}
        self._unread = set(self._values)
        self._where = where

    def __getitem__(self, key: str) -> Any:
        self._unread.discard(key)
        if key not in self._values:
            raise UnknownShape(f"{self._where} has no {key!r}; it has {sorted(self._values)}")
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self._values else default

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def ignore(self, *keys: str) -> None:
        """Keys that are only remarks, or follow from others."""
        self._unread.difference_update(keys)

    def done(self) -> None:
        if self._unread:
            raise UnknownShape(f"{self._where}: nobody reads {sorted(self._unread)}")


@dataclass(frozen=True)
class Judge:
    """An actual value that decides for itself whether an expectation in words is met."""

    accepts: Callable[[Any], bool]
    shown: str

    def __repr__(self) -> str:
        return self.shown


def compare(expected: Any, actual: Any, tolerance: float, where: str = "expect") -> None:
    """Assert that every expected value is there; actual mappings may hold more."""
    if isinstance(actual, Judge):
        assert actual.accepts(expected), f"{where}: expected {expected!r}, got {actual!r}"
    elif isinstance(expected, Mapping):
        assert isinstance(actual, Mapping), f"{where}: expected {expected!r}, got {actual!r}"
        unknown = sorted(set(expected) - set(actual))
        if unknown:
            raise UnknownShape(f"{where}: no value for {unknown}; there is {sorted(actual)}")
        for key, value in expected.items():
            compare(value, actual[key], tolerance, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(actual, (list, tuple)), f"{where}: expected a list, got {actual!r}"
        assert len(expected) == len(actual), f"{where}: expected {expected!r}, got {actual!r}"
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            compare(e, a, tolerance, f"{where}[{i}]")
    elif _is_number(expected) and _is_number(actual):
        same = expected == actual or (math.isnan(expected) and math.isnan(actual))
        assert same or abs(expected - actual) <= tolerance, (
            f"{where}: expected {expected!r}, got {actual!r} (tolerance {tolerance})"
        )
    else:
        assert expected == actual, f"{where}: expected {expected!r}, got {actual!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def starts(error: Exception | None) -> Judge:
    """Judges texts such as `fails: ...` and `ok` about starting with a configuration."""

    def accepts(expected: Any) -> bool:
        if isinstance(expected, bool):
            return expected == (error is None)
        text = str(expected).lower()
        refused = any(word in text for word in ("fail", "refuse", "reject", "error"))
        return refused == (error is not None)

    return Judge(accepts, "starts" if error is None else f"refused: {error}")

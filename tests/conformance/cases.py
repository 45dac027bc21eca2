"""Reading case files, and comparing what a case expects with what the product does."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headrace.errors import EngineError

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
    unread: tuple[str, ...] = ()
    """Keys beside `given` and `expect` that nothing reads."""


_OF_CASES = frozenset(("id", "area", "given", "expect", "title", "generation", "tolerance"))
_REMARKS = frozenset(("spec", "notes"))
_OF_FILES = frozenset(("schema", "reference_generation", "conventions", "count", "cases"))
_GENERATIONS = ("9.1", "6.2")


def case_file() -> Path:
    return Path(os.environ.get("HEADRACE_CONFORMANCE_CASES") or OWN_CASES)


def load_cases(path: Path) -> list[Case]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {content.get('schema')!r}, expected {SCHEMA!r}")
    if unread := sorted(content.keys() - _OF_FILES):
        raise UnknownShape(f"{path}: nobody reads {unread}")
    cases = [_case(values) for values in content["cases"]]
    if content.get("count", len(cases)) != len(cases):
        raise UnknownShape(f"{path}: count {content['count']}, and there are {len(cases)} cases")
    return cases


def _case(values: Mapping[str, Any]) -> Case:
    known = {k: v for k, v in values.items() if k in _OF_CASES and v is not None}
    return Case(**known, unread=tuple(sorted(values.keys() - _OF_CASES - _REMARKS)))


def check_form(case: Case) -> None:
    """Raise UnknownShape for what stands beside `given` and `expect` and nothing reads."""
    if case.unread:
        raise UnknownShape(f"{case.id}: nobody reads {list(case.unread)}")
    if case.generation not in _GENERATIONS:
        raise UnknownShape(f"{case.id}: generation {case.generation!r}, known: {_GENERATIONS}")


class Part(dict[str, Any]):
    """A mapping inside of what a case gives; one that is read as a whole counts as read."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        super().__init__({k: _watched(v, f"{where}.{k}") for k, v in values.items()})
        self._unread = set(values)
        self._where = where

    def __getitem__(self, key: str) -> Any:
        self._unread.discard(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._unread.discard(key)
        return super().get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        self._unread.discard(key)
        return super().pop(key, *default)

    def __contains__(self, key: object) -> bool:
        self._unread.discard(str(key))
        return super().__contains__(key)

    def _whole(name: str) -> Any:  # type: ignore[misc]
        def read(self: Part, *others: Any) -> Any:
            self._unread.clear()
            return getattr(dict, name)(self, *others)

        return read

    __iter__, keys, values, items, copy = map(
        _whole, ("__iter__", "keys", "values", "items", "copy")
    )
    __or__, __ror__, __eq__ = map(_whole, ("__or__", "__ror__", "__eq__"))
    __hash__ = None  # type: ignore[assignment]

    def unread(self) -> list[str]:
        """Keys that nothing has read, here and further inside."""
        here = [f"{self._where}.{key}" for key in sorted(self._unread)]
        return here + [key for value in dict.values(self) for key in _unread(value)]


def _watched(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return Part(value, where)
    if isinstance(value, list):
        return [_watched(item, f"{where}[{number}]") for number, item in enumerate(value)]
    return value


def _unread(value: Any) -> list[str]:
    if isinstance(value, Part):
        return value.unread()
    return [key for item in value for key in _unread(item)] if isinstance(value, list) else []


class Given(Mapping[str, Any]):
    """What a case gives; knows which keys were read, so that none is ignored in silence."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = {k.replace("-", "_"): _watched(v, f"{where}.{k}") for k, v in values.items()}
        self._unread = set(self._values)
        self._ignored: set[str] = set()
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
        self._ignored.update(keys)

    def _inside(self, name: str) -> list[str]:
        return [] if name in self._ignored else _unread(self._values[name])

    def done(self) -> None:
        inside = [key for name in self._values for key in self._inside(name)]
        if self._unread or inside:
            raise UnknownShape(f"{self._where}: nobody reads {sorted(self._unread) + inside}")


def parts(case: Case) -> list[Case] | None:
    """The cases that a case lists under `given.cases`, each over what it gives beside; or None.

    A part holds its values, or `given` and `expect` of its own. What the whole expects is a list
    with a value for each part, or `cases` with an expectation for each. Lists of bare values are
    read by the runner of their area.

    Raises:
        UnknownShape: the expectations are not one for each part.
    """
    listed = case.given.get("cases")
    if not isinstance(listed, list) or not all(isinstance(part, Mapping) for part in listed):
        return None
    for part in listed:
        if "given" in part and (unread := sorted(part.keys() - {"given", "expect"})):
            raise UnknownShape(f"{case.id} given.cases: nobody reads {unread}")
    shared = {key: value for key, value in case.given.items() if key != "cases"}
    expected = _of_parts(case, len(listed))
    return [
        replace(
            case,
            id=f"{case.id}[{number}]",
            given=shared | dict(part.get("given", _without(part, "expect"))),
            expect=own | dict(part.get("expect", {})),
        )
        for number, (part, own) in enumerate(zip(listed, expected, strict=True))
    ]


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _of_parts(case: Case, count: int) -> list[dict[str, Any]]:
    """What is expected of each part."""
    expect = case.expect
    listed = expect.get("cases")
    for key, values in expect.items():
        if not isinstance(values, list) or len(values) != count:
            raise UnknownShape(f"{case.id} expect.{key}: no value for each of {count} cases")
    if listed is not None:
        return [dict(part) for part in listed]
    return [{key: values[number] for key, values in expect.items()} for number in range(count)]


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


def posted(error: Exception | None) -> Judge:
    """Judges an element's error: whether there is one, words of it, or words and its domain."""
    text = f"{error:brief}" if isinstance(error, EngineError) else str(error or "")

    def accepts(expected: Any) -> bool:
        if isinstance(expected, Mapping):
            keys = {"prefix", "text", "message", "domain"}
            if set(expected) - keys:
                raise UnknownShape(f"an element's error has {sorted(set(expected) - keys)}")
            domain = expected.get("domain", domain_of(error))
            words = [v for k, v in expected.items() if k != "domain"]
            return domain == domain_of(error) and all(accepts(value) for value in words)
        if expected is None or isinstance(expected, bool):
            return bool(expected) == (error is not None)
        return error is not None and str(expected) in text

    return Judge(accepts, text or "no error")


def domain_of(error: Exception | None) -> str | None:
    """What GStreamer calls an error of this kind."""
    return "STREAM/FAILED" if isinstance(error, EngineError) else None


def starts(error: Exception | None) -> Judge:
    """Judges texts such as `fails: ...` and `ok` about starting with a configuration."""

    def accepts(expected: Any) -> bool:
        if isinstance(expected, bool):
            return expected == (error is None)
        text = str(expected).lower()
        refused = any(word in text for word in ("fail", "refuse", "reject", "error"))
        return refused == (error is not None)

    return Judge(accepts, "starts" if error is None else f"refused: {error}")

"""Values that know where they came from, and the base of types that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from noria._core.errors import ConfigError
from noria._core.text import quoted
from noria.config.document import report


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one value came from.

    Attributes:
        kind: `file`, `default` (no file or program set it) or `override` (set by a program).
        file, line: the config file as it was named, the line from 1; None unless kind is `file`.
        key: the key as written there; differs from the asked one for legacy keys (`enable-dbscan`).
        text: the value as written there.
    """

    kind: Literal["file", "default", "override"]
    file: Path | None = None
    line: int | None = None
    key: str | None = None
    text: str | None = None

    @property
    def where(self) -> str | None:
        """`file:line` for messages; None unless the value is from a file."""
        return str(self) if self.file else None

    def __str__(self) -> str:
        return f"{quoted(str(self.file), limit=None)}:{self.line}" if self.file else self.kind


DEFAULT = Origin("default")
OVERRIDE = Origin("override")


class EffectiveValue(NamedTuple):
    """One line of `noria show`: a key, its value as a config file would write it, its origin."""

    group: str
    key: str
    text: str
    origin: str


class Frozen(BaseModel):
    """Fields of checked values that know where they came from, and never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, defer_build=True)

    _origins: Mapping[str, Origin] = PrivateAttr(default_factory=dict)

    def __init__(self, **values: Any) -> None:
        """Make it from values.

        Raises:
            ConfigError: values are refused, or there are no such fields; all are reported.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = self._problems(error)
        else:
            return
        report(Path(type(self).__name__), problems)

    @classmethod
    def _problems(cls, error: ValidationError) -> list[ConfigError]:
        raise NotImplementedError

    def _origin_of(self, field: str) -> Origin:
        """Where the value of a field came from, named as field or as key."""
        name = field.replace("-", "_")
        if name not in type(self).model_fields:
            raise KeyError(field)
        return self._origins.get(name, DEFAULT)

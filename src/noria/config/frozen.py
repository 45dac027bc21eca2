"""What the configuration of a model and the parts of a pipeline have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from noria._core.errors import ConfigError
from noria.config.document import report
from noria.config.origin import DEFAULT, Origin


class Frozen(BaseModel):
    """Fields of checked values that know where they came from, and never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False, defer_build=True)

    _origins: Mapping[str, Origin] = PrivateAttr(default_factory=dict)

    def __init__(self, **values: Any) -> None:
        """Make it from values.

        Raises:
            ConfigError: a value is refused, or there is no such field; all of it is told at once.
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
        """Where the value of a field came from, named as field or as key.

        Raises:
            KeyError: there is no such field.
        """
        name = field.replace("-", "_")
        if name not in type(self).model_fields:
            raise KeyError(field)
        return self._origins.get(name, DEFAULT)

"""Optimisation profiles: which shapes an engine takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.plugins.types import Dims
from headrace.trt.types.reporting import Severity, report
from headrace.trt.types.strict import Strict

if TYPE_CHECKING:
    from headrace.trt.types.reporting import ILogger


@dataclass(frozen=True, slots=True)
class Range:
    """Least, best and greatest of a shape or of a shape tensor's values."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    @property
    def problem(self) -> str | None:
        """Why no shape is in it."""
        if not len(self.min) == len(self.opt) == len(self.max):
            return f"{self.min}, {self.opt} and {self.max} do not have as many axes"
        rows = zip(self.min, self.opt, self.max, strict=True)
        if any(not low <= best <= high for low, best, high in rows):
            return f"{self.min} ≤ {self.opt} ≤ {self.max} does not hold for each axis"
        return None

    def holds(self, shape: Sequence[int]) -> bool:
        """Whether a shape is in it."""
        return len(shape) == len(self.min) and all(
            low <= d <= high for low, d, high in zip(self.min, shape, self.max, strict=True)
        )


class IOptimizationProfile(Strict):
    """Made by `Builder.create_optimization_profile`. Source: tensorrt-api spec 3.3."""

    def __init__(self, logger: ILogger | None = None) -> None:
        self._logger = logger
        self._shapes: dict[str, Range] = {}
        self._values: dict[str, Range] = {}
        self._memory = 1.0

    def set_shape(
        self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]
    ) -> None:
        """The shapes of an input; fixed axes must be the network's."""
        self._shapes[str(input)] = Range(tuple(Dims(min)), tuple(Dims(opt)), tuple(Dims(max)))

    def get_shape(self, input: str) -> list[Dims]:
        """[min, opt, max]; empty if it is not set."""
        limits = self._shapes.get(input)
        if limits is None:
            report(self._logger, Severity.ERROR, f"the profile has no shapes of input {input!r}")
            return []
        return [Dims(limits.min), Dims(limits.opt), Dims(limits.max)]

    def set_shape_input(
        self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]
    ) -> None:
        """The values of an input that decides shapes.

        Raises:
            RuntimeError: there are not as many as before, or as in the other two.
        """
        parts = [tuple(int(v) for v in part) for part in (min, opt, max)]
        before = self._values.get(str(input))
        count = len(before.min if before else parts[0])
        for which, part in zip(("min", "opt", "max"), parts, strict=True):
            if len(part) != count:
                raise RuntimeError(
                    f"{which} input provided for shape tensor is inconsistent with other inputs."
                )
        self._values[str(input)] = Range(*parts)

    def get_shape_input(self, input: str) -> list[list[int]]:
        """[min, opt, max] of the values; empty if they are not set."""
        limits = self._values.get(input)
        return [] if limits is None else [list(limits.min), list(limits.opt), list(limits.max)]

    @property
    def extra_memory_target(self) -> float:
        """Share of the memory that profiles may take; recorded only."""
        return self._memory

    @extra_memory_target.setter
    def extra_memory_target(self, value: float) -> None:
        if not 0 <= float(value) <= 1:
            report(self._logger, Severity.ERROR, f"extra_memory_target={value} is not in 0 … 1")
            return
        self._memory = float(value)

    def set_extra_memory_target(self, value: float) -> bool:
        """Set `extra_memory_target`."""
        self.extra_memory_target = value
        return self._memory == value

    @property
    def _problem(self) -> str | None:
        for name, limits in (*self._shapes.items(), *self._values.items()):
            if limits.problem:
                return f"profile of input {name!r}: {limits.problem}"
        return None

    def __bool__(self) -> bool:
        return self._problem is None

    def __repr__(self) -> str:
        return f"IOptimizationProfile({', '.join(self._shapes)})"

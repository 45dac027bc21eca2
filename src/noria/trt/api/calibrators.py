"""Calibrators: applications subclass one to give batches and keep the table.

Source: tensorrt-api spec 3.6.
"""

from __future__ import annotations

from typing import Any

from noria.trt.api.enums import CalibrationAlgoType


class IInt8Calibrator:
    """Base of all; subclasses call its `__init__`."""

    algorithm: Any = CalibrationAlgoType["ENTROPY_CALIBRATION_2"]

    def __init__(self) -> None:
        """Subclasses call it first."""

    def get_batch_size(self) -> int:
        """Items of a batch."""
        raise NotImplementedError("get_batch_size")

    def get_batch(self, names: list[str]) -> list[int] | None:
        """Addresses of the inputs of a batch, in the order of `names`; None at the end."""
        raise NotImplementedError("get_batch")

    def read_calibration_cache(self) -> bytes | None:
        """The table of an earlier build, or None."""
        return None

    def write_calibration_cache(self, cache: bytes) -> None:
        """Keep the table."""

    def get_algorithm(self) -> Any:
        """How scales are found."""
        return self.algorithm


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Clips where least information is lost."""


class IInt8EntropyCalibrator(IInt8Calibrator):
    """The older entropy calibrator; here the same."""

    algorithm = CalibrationAlgoType["ENTROPY_CALIBRATION"]


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """Clips nothing."""

    algorithm = CalibrationAlgoType["MINMAX_CALIBRATION"]


class IInt8LegacyCalibrator(IInt8Calibrator):
    """Clips beyond a quantile."""

    algorithm = CalibrationAlgoType["LEGACY_CALIBRATION"]

    def get_quantile(self) -> float:
        """Share of the values that are kept, in 0 … 1."""
        return 0.9999

    def get_regression_cutoff(self) -> float:
        """Not used."""
        return 1.0

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Not asked."""
        return None

    def write_histogram_cache(self, ptr: int, length: int) -> None:
        """Not called."""

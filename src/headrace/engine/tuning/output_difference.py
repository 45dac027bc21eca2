"""Compare the outputs of two runtimes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace._core.types import Array

NOISE_DB = {"fp16": 30.0, "bf16": 15.0, "int8": 12.0, "best": 12.0}
"""Least signal to noise of a runtime that computes the same graph as the reference: what rounding
in FP16, or to other INT8 values now and then, explains."""


def difference(
    ours: Mapping[str, Array], reference: Mapping[str, Array]
) -> tuple[float, str | None]:
    """Measure how far outputs are from the reference.

    Returns:
        The greatest difference of a value, relative to the greatest value of that output; and a
        sentence if it is more than rounding explains: 1e-4 of the greatest value plus 1e-3 of the
        value itself, or for integers more than one value in a thousand.
    """
    worst = 0.0
    for name, expected in reference.items():
        got = ours.get(name)
        if got is None:
            return worst, f"output {name!r} is missing"
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return worst, (
                f"output {name!r} is {got.dtype} {got.shape}, not {expected.dtype} {expected.shape}"
            )
        if expected.size == 0:
            continue
        if expected.dtype.kind != "f":
            wrong = float(np.mean(got != expected))
            worst = max(worst, wrong)
            if wrong > 1e-3:
                return worst, f"output {name!r} differs in {wrong:.1%} of its values"
            continue
        a, b = got.astype(np.float64), expected.astype(np.float64)
        special = ~np.isfinite(b)
        if not np.array_equal(a[special], b[special], equal_nan=True):
            return worst, f"output {name!r} is finite where the reference is not, or the reverse"
        a, b = a[~special], b[~special]
        if a.size == 0:
            continue
        scale = float(np.abs(b).max())
        gap = np.abs(a - b)
        relative = float(gap.max()) / max(scale, 1e-12) if not np.isnan(gap).any() else float("inf")
        worst = max(worst, relative)
        if not (gap <= 1e-4 * scale + 1e-3 * np.abs(b)).all():
            return worst, f"output {name!r} is off by {relative:.2g} of its greatest value"
    return worst, None


def too_noisy(
    ours: Mapping[str, Array], reference: Mapping[str, Array], least_db: float
) -> str | None:
    """Name the fault of outputs in a lower precision; None if there is none.

    Shapes, types and what is finite must be the same; each output keeps `least_db` of signal to
    noise. Whole numbers (indices, classes) may differ: they follow from scores.
    """
    for name, expected in reference.items():
        got = ours.get(name)
        if got is None:
            return f"output {name!r} is missing"
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return (
                f"output {name!r} is {got.dtype} {got.shape}, not {expected.dtype} {expected.shape}"
            )
        if expected.dtype.kind != "f" or expected.size == 0:
            continue
        if not np.array_equal(np.isfinite(got), np.isfinite(expected)):
            return f"output {name!r} is finite where the reference is not, or the reverse"
        ratio = noise_db(got, expected)
        if ratio < least_db:
            return f"output {name!r} has {ratio:.0f} dB of signal to noise, not {least_db:g}"
    return None


def noise_db(got: Array, expected: Array) -> float:
    """Signal to noise of an output, by its variance; finite values only. At most 300."""
    finite = np.isfinite(expected) & np.isfinite(got)
    a, b = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    if a.size == 0:
        return 300.0
    noise = float(np.square(a - b).mean())
    signal = float(b.var()) or float(np.square(b).mean())
    if noise == 0:
        return 300.0
    return min(300.0, 10 * float(np.log10(max(signal, 1e-300) / noise)))

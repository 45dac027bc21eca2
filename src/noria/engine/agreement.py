"""Whether two runtimes give the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["difference"]


def difference(
    ours: Mapping[str, npt.NDArray[Any]], reference: Mapping[str, npt.NDArray[Any]]
) -> tuple[float, str | None]:
    """How far outputs are from the reference, and what is wrong with them, if anything is.

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

"""Inputs to try an engine with: noise of the right shapes, types and range; the same each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from noria.network.tensor_spec import TensorSpec


def sample_inputs(
    inputs: Sequence[TensorSpec],
    items: int,
    *,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> dict[str, npt.NDArray[Any]]:
    """Make one batch of noise.

    The first input is uniform in low … high, of integer types 0 … 255 as far as the type goes;
    further inputs 0 … 1, integers 1.

    Args:
        inputs: all axes fixed but the batch.
        items: the batch.
        low: least value of the first input.
        high: greatest value of the first input.
        seed: of the noise.
    """
    rng = np.random.default_rng(seed)
    feeds: dict[str, npt.NDArray[Any]] = {}
    for number, spec in enumerate(inputs):
        shape = [d if isinstance(d, int) else items for d in spec.shape]
        if spec.dtype.kind == "f":
            bounds = (low, high) if number == 0 else (0.0, 1.0)
            array = rng.random(shape, np.float32) * np.float32(bounds[1] - bounds[0])
            feeds[spec.name] = (array + np.float32(bounds[0])).astype(spec.dtype, copy=False)
        elif number == 0 and spec.dtype.kind in "iu":
            top = min(255, int(np.iinfo(spec.dtype).max))
            feeds[spec.name] = rng.integers(0, top, shape, dtype=spec.dtype, endpoint=True)
        else:
            feeds[spec.name] = np.ones(shape, spec.dtype)
    return feeds

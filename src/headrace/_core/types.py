"""Types that many files name, for annotations.

An element type is left open where a model, a file or the user decides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""An array of any dtype."""

DType: TypeAlias = np.dtype[Any]
"""Any dtype."""

Arrays: TypeAlias = Mapping[str, Array]
"""Arrays by the names of their tensors."""

ShapeLike: TypeAlias = int | Sequence[int]
"""A shape as NumPy takes it."""

Scalar: TypeAlias = bool | int | float | str
"""The value of a key, as config files hold it."""

Json: TypeAlias = "Scalar | list[Json] | dict[str, Json] | None"
"""A value of a JSON or YAML document."""

Message: TypeAlias = dict[str, Any]
"""A JSON object between processes, or of a file; its reader checks each entry."""

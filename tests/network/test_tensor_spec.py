"""How a tensor is named in messages."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.network.tensor_spec import TensorSpec


@pytest.mark.parametrize(
    ("axis", "shown"),
    [
        (4, "4"),
        (None, "?"),
        ("batch_size", "batch_size"),
        ("N", "N"),
        ("num_boxes", "num_boxes"),
        ("", "?"),
        ("?", "?"),
        ("unk__123", "?"),
        ("Concatoutput0_dim_2", "?"),
        ("floor(height/32 - 1/32) + 1", "?"),
        ("p2o.DynamicDimension.0", "?"),
    ],
)
def test_only_names_that_a_person_chose_are_shown(axis: int | str | None, shown: str) -> None:
    spec = TensorSpec("out", np.dtype(np.float32), ("n", axis))
    assert str(spec) == f"out float32[n, {shown}]"
    assert spec.shape == ("n", axis)

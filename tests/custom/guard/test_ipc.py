"""Memory shared with a worker: whatever offset the worker names, nothing outside is touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noria.custom.guard.ipc import ProtocolError, SharedRegion, new_memory

SIZE = 4096


@given(start=st.integers(-8, SIZE + 8), count=st.integers(0, SIZE + 8), item=st.sampled_from("BIQ"))
def test_views_lie_within_the_region_or_are_refused(start: int, count: int, item: str) -> None:
    region = SharedRegion(new_memory("test", SIZE))
    kind = np.dtype(item)
    fits = start >= 0 and start + count * kind.itemsize <= SIZE
    if fits:
        view = region.view(start, kind, (count,))
        assert view.shape == (count,)
        assert view.dtype == kind
    else:
        with pytest.raises(ProtocolError):
            region.view(start, kind, (count,))


@pytest.mark.parametrize(("start", "count"), [(1, SIZE), (SIZE, 1), (SIZE - 3, 4), (-1, 1)])
def test_bytes_past_the_end_are_refused(start: int, count: int) -> None:
    region = SharedRegion(new_memory("test", SIZE))
    with pytest.raises(ProtocolError):
        region.take(start, count)

"""The fixture `headrace_recording` for tests of parsers; pytest loads it by its entry point."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.infer.recordings import Recording


@pytest.fixture
def headrace_recording(
    request: pytest.FixtureRequest,
) -> Callable[[str | PathLike[str]], Recording]:
    """Load recordings of `headrace record`; relative paths start at the folder of the test's file.

        def test_parser(headrace_recording):
            for item in headrace_recording("street.safetensors"):
                found = parse(item.layers, item.network, item.params)
                headrace.assert_same_objects(found, item)

    The function raises MediaError if a file is damaged, or is no recording.
    """
    from headrace.infer.recordings import load_recording

    return lambda path: load_recording(request.path.parent / path)

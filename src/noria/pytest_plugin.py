"""The fixture `noria_recording` for tests of parsers; pytest loads it by its entry point."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from noria.infer.recording import Recording


@pytest.fixture
def noria_recording(request: pytest.FixtureRequest) -> Callable[[str | PathLike[str]], Recording]:
    """Load recordings of `noria record`; relative paths start at the folder of the test's file.

        def test_parser(noria_recording):
            for item in noria_recording("street.safetensors"):
                found = parse(item.layers, item.network, item.params)
                noria.assert_same_objects(found, item)

    The function raises MediaError if a file is damaged, or is no recording.
    """
    from noria.infer.recording import load_recording

    return lambda path: load_recording(request.path.parent / path)

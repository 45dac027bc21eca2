"""Shared fixtures. Real models and videos come from NORIA_TEST_DATA; tests skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with `models/`, `videos/`, `images/`; skips when there is none."""
    path = Path(os.environ.get("NORIA_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (path / "models").is_dir():
        pytest.skip("no test data: set NORIA_TEST_DATA")
    return path

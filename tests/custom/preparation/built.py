"""The library of nvdspreprocess of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.custom.built import library_of

SOURCE = Path(__file__).with_name("normalise.cpp")


def library(factory: pytest.TempPathFactory) -> Path:
    """It does as the standard one, or fails as its key `mode` says."""
    return library_of(factory, SOURCE)

"""The library of message payloads of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.custom.built import library_of

SOURCE = Path(__file__).with_name("payloads.cpp")


def library(factory: pytest.TempPathFactory) -> Path:
    """It makes rows of text, or fails as the name of its config says."""
    return library_of(factory, SOURCE)

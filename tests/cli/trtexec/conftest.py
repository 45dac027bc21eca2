"""Fixtures of other rooms that tests here use."""

from __future__ import annotations

from tests.engine.conftest import model_path

__all__ = ["model_path"]

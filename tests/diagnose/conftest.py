"""Fixtures of other rooms that tests here use."""

from __future__ import annotations

from tests.custom.conftest import compile_parser

__all__ = ["compile_parser"]

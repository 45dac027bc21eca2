"""Errors that Headrace raises on purpose: found, where, expected, fix."""

from __future__ import annotations

from headrace._core.errors import (
    ConfigError,
    CustomLibraryError,
    DetectionsError,
    EngineError,
    GeometryError,
    HeadraceError,
    MediaError,
    MissingExtraError,
    ModelError,
    ParserError,
    PluginError,
    StrictError,
)

__all__ = [
    "ConfigError",
    "CustomLibraryError",
    "DetectionsError",
    "EngineError",
    "GeometryError",
    "HeadraceError",
    "MediaError",
    "MissingExtraError",
    "ModelError",
    "ParserError",
    "PluginError",
    "StrictError",
]

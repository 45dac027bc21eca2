"""Errors that Noria raises on purpose: found, where, expected, fix."""

from __future__ import annotations

from noria._core.errors import (
    ConfigError,
    CustomLibraryError,
    DetectionsError,
    EngineError,
    GeometryError,
    MediaError,
    MissingExtraError,
    ModelError,
    NoriaError,
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
    "MediaError",
    "MissingExtraError",
    "ModelError",
    "NoriaError",
    "ParserError",
    "PluginError",
    "StrictError",
]

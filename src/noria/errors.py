"""Errors that Noria raises on purpose, each with what was found, where, and how to fix it."""

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

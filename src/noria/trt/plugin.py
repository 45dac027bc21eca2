"""`tensorrt.plugin`: plugins by decorators. See `noria.plugins.quick`."""

from __future__ import annotations

from noria.plugins import quick
from noria.plugins.quick import *  # noqa: F403 - the module under its other name

__all__ = list(quick.__all__)

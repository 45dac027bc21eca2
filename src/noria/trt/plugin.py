"""`tensorrt.plugin`: plugins by decorators. See `noria.plugins.decorators`."""

from __future__ import annotations

from noria.plugins import decorators as quick
from noria.plugins.decorators import *  # noqa: F403 - the module under its other name

__all__ = list(quick.__all__)

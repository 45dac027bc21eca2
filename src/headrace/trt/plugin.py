"""`tensorrt.plugin`: plugins by decorators. See `headrace.plugins.decorators`."""

from __future__ import annotations

from headrace.plugins import decorators as quick
from headrace.plugins.decorators import *  # noqa: F403 - the module under its other name

__all__ = list(quick.__all__)

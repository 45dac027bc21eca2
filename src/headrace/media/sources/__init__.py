"""Sources: where frames come from. Start at `base.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.media.sources import images as images
    from headrace.media.sources import stream as stream
else:  # a run opens one kind of source
    __getattr__, __dir__ = lazy(__name__, {}, modules=(".images", ".stream"))

__all__ = ["images", "stream"]

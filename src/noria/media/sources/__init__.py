"""Sources: where frames come from. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.lazy import lazy

if TYPE_CHECKING:
    from noria.media.sources.arrays import ArraySource
    from noria.media.sources.base import Source
    from noria.media.sources.images import ImageSource
    from noria.media.sources.opening import as_frame, open_source
    from noria.media.sources.reconnect import ReconnectPolicy
    from noria.media.sources.stream import StreamSource
    from noria.media.sources.video import VideoSource
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".arrays": "ArraySource",
            ".base": "Source",
            ".images": "ImageSource",
            ".opening": "as_frame open_source",
            ".reconnect": "ReconnectPolicy",
            ".stream": "StreamSource",
            ".video": "VideoSource",
        },
    )

__all__ = [
    "ArraySource",
    "ImageSource",
    "ReconnectPolicy",
    "Source",
    "StreamSource",
    "VideoSource",
    "as_frame",
    "open_source",
]

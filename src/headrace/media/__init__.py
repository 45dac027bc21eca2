"""Images in and out: frames, sources, sinks. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.media.frame import Frame
    from headrace.media.pixel_format import ColorSpace, PixelFormat
    from headrace.media.sinks.base import Sink
    from headrace.media.sinks.naming import expand_sink_path
    from headrace.media.sinks.opening import SINK_KINDS, check_sinks, open_sink
    from headrace.media.sources.arrays import ArraySource
    from headrace.media.sources.base import Source
    from headrace.media.sources.opening import as_frame, open_source
    from headrace.media.sources.reconnect import ReconnectPolicy
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".frame": "Frame",
            ".pixel_format": "ColorSpace PixelFormat",
            ".sinks.base": "Sink",
            ".sinks.naming": "expand_sink_path",
            ".sinks.opening": "SINK_KINDS check_sinks open_sink",
            ".sources.arrays": "ArraySource",
            ".sources.base": "Source",
            ".sources.opening": "as_frame open_source",
            ".sources.reconnect": "ReconnectPolicy",
        },
    )

__all__ = [
    "SINK_KINDS",
    "ArraySource",
    "ColorSpace",
    "Frame",
    "PixelFormat",
    "ReconnectPolicy",
    "Sink",
    "Source",
    "as_frame",
    "check_sinks",
    "expand_sink_path",
    "open_sink",
    "open_source",
]

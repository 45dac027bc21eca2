"""Pictures in and out: frames, sources, sinks."""

from noria.media.frame import ColorSpace, Frame, PixelFormat
from noria.media.sinks import SINK_KINDS, Sink, check_sinks, expand_sink_path, open_sink
from noria.media.sources import ArraySource, ReconnectPolicy, Source, as_frame, open_source

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

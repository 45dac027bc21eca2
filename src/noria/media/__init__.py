"""Pictures in and out: frames, sources, sinks."""

from noria.media.frame import ColorSpace, Frame, PixelFormat

__all__ = ["ColorSpace", "Frame", "PixelFormat"]

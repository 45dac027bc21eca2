"""The modules of GStreamer's bindings, for the elements: importing this initialises GStreamer."""

from __future__ import annotations

from headrace.gstreamer.pyds.loading import gstreamer

Gst = gstreamer()

import gi  # noqa: E402 - found by the line above
from gi.repository import GLib, GObject, GstBase, GstVideo  # noqa: E402

Element, Bin, BaseTransform = Gst.Element, Gst.Bin, GstBase.BaseTransform
BaseSink = GstBase.BaseSink
VERSION: tuple[int, ...] = gi.version_info

__all__ = [
    "VERSION",
    "BaseSink",
    "BaseTransform",
    "Bin",
    "Element",
    "GLib",
    "GObject",
    "Gst",
    "GstVideo",
]

"""The modules of GStreamer's bindings, for the elements: importing this initialises GStreamer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.gstreamer.pyds.loading import gstreamer

if TYPE_CHECKING:
    from gi.repository import Gst
else:
    Gst = gstreamer()

import gi
from gi.repository import GLib, GObject, GstBase, GstVideo

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

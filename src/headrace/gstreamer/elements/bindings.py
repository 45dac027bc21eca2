"""The modules of GStreamer's bindings, for the elements: importing this initialises GStreamer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.gstreamer.pyds.loading import gstreamer

if TYPE_CHECKING:
    from gi.repository import Gst
    from gi.repository.Gst import Bin, Element, GhostPad
    from gi.repository.GstBase import BaseSink, BaseTransform
else:
    Gst = gstreamer()

import gi
from gi.repository import GLib, GObject, GstBase, GstVideo

if not TYPE_CHECKING:
    Element, Bin, GhostPad = Gst.Element, Gst.Bin, Gst.GhostPad
    BaseTransform, BaseSink = GstBase.BaseTransform, GstBase.BaseSink
VERSION: tuple[int, ...] = gi.version_info

__all__ = [
    "VERSION",
    "BaseSink",
    "BaseTransform",
    "Bin",
    "Element",
    "GLib",
    "GObject",
    "GhostPad",
    "Gst",
    "GstVideo",
]

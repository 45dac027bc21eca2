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


def structure_of(holder: Gst.Caps | Gst.Event | Gst.Message, index: int = 0) -> Gst.Structure:
    """Return a copy of a structure of caps, an event or a message; None if that has none.

    Bindings of GStreamer 1.26 wrap the structure that the holder owns.
    """
    found = holder.get_structure(index) if isinstance(holder, Gst.Caps) else holder.get_structure()
    if hasattr(found, "__enter__"):
        with found as inner:
            return inner.copy() if inner is not None else None
    return found.copy() if found is not None else None


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
    "structure_of",
]

"""Events that applications send to elements while they run."""

from __future__ import annotations

import ctypes

from headrace.gstreamer.pyds.loading import gstreamer
from headrace.gstreamer.pyds.struct import function

STREAM_RESET, INTERVAL_UPDATE = "nv-stream-reset", "nv-infer-interval-update"
_DOWNSTREAM, _SERIALIZED, _STICKY, _MULTI = 2, 4, 8, 16
_SHIFT = 8
"""Bits of the flags in the number of an event's type: GST_EVENT_MAKE_TYPE."""


def gst_element_send_nvevent_new_stream_reset(address: int, source_id: int) -> bool:
    """Tell an element that a source begins anew; True if the element takes the event.

    Args:
        address: `hash(element)`.
        source_id: of the source.
    """
    flags = _DOWNSTREAM | _SERIALIZED | _STICKY | _MULTI
    return _send(address, 404, flags, f"{STREAM_RESET}, source-id=(uint){source_id}")


def gst_element_send_nvevent_interval_update(address: int, stream_id: str, interval: int) -> bool:
    """Set `interval` of an `nvinfer` that runs; True if the element takes the event.

    Args:
        address: `hash(element)`.
        stream_id: of a stream; the interval counts buffers of all of them.
        interval: buffers that it skips between two.
    """
    text = f'{INTERVAL_UPDATE}, stream_id=(string)"{stream_id}", interval=(uint){interval}'
    return _send(address, 407, _DOWNSTREAM | _SERIALIZED, text)


def _send(address: int, number: int, flags: int, text: str) -> bool:
    gstreamer()
    library = ctypes.CDLL("libgstreamer-1.0.so.0")
    pointer = ctypes.c_void_p
    structure = function(library.gst_structure_from_string, pointer, ctypes.c_char_p, pointer)
    make = function(library.gst_event_new_custom, pointer, ctypes.c_int, pointer)
    send = function(library.gst_element_send_event, ctypes.c_int, pointer, pointer)
    return bool(send(address, make(number << _SHIFT | flags, structure(text.encode(), None))))

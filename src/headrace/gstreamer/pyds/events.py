"""Events of the original: those that applications send to elements, and those of sources."""

from __future__ import annotations

import ctypes

from headrace.gstreamer.pyds.loading import gstreamer
from headrace.gstreamer.pyds.struct import function

__all__ = ["gst_element_send_nvevent_interval_update", "gst_element_send_nvevent_new_stream_reset"]

STREAM_RESET, INTERVAL_UPDATE = "nv-stream-reset", "nv-infer-interval-update"
TRACKER_UPDATE = "nv-tracker-config-update"
PAD_ADDED, PAD_DELETED, STREAM_EOS = "nv-pad-added", "nv-pad-deleted", "nv-stream-eos"
_NUMBERS = {PAD_ADDED: 400, PAD_DELETED: 401, STREAM_EOS: 402}
_DOWNSTREAM, _SERIALIZED, _STICKY, _MULTI = 2, 4, 8, 16
_POINTER = ctypes.c_void_p
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
    send = function(_library().gst_element_send_event, ctypes.c_int, _POINTER, _POINTER)
    return bool(send(address, _event(number, flags, text)))


def push_source_event(address: int, name: str, source_id: int) -> bool:
    """Push the event of a source that comes, goes or ends; True if the elements behind take it.

    Its name carries the source's number: of sticky events of one name the last alone stays.

    Args:
        address: `hash(pad)` of the multiplexer's output.
        name: `PAD_ADDED`, `PAD_DELETED` or `STREAM_EOS`.
        source_id: of the source.
    """
    text = f"{name}-{source_id}, source-id=(uint){source_id}"
    flags = _DOWNSTREAM | _SERIALIZED | _STICKY | _MULTI
    push = function(_library().gst_pad_push_event, ctypes.c_int, _POINTER, _POINTER)
    return bool(push(address, _event(_NUMBERS[name], flags, text)))


def _event(number: int, flags: int, text: str) -> int:
    library = _library()
    structure = function(library.gst_structure_from_string, _POINTER, ctypes.c_char_p, _POINTER)
    make = function(library.gst_event_new_custom, _POINTER, ctypes.c_int, _POINTER)
    event: int = make(number << _SHIFT | flags, structure(text.encode(), None))
    return event


def _library() -> ctypes.CDLL:
    gstreamer()
    return ctypes.CDLL("libgstreamer-1.0.so.0")

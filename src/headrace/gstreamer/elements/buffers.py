"""Buffers of batches: no pixels, but metadata, and the images for C code that maps them."""

from __future__ import annotations

from headrace.gstreamer.cmeta.images import add_images
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import NvDsBatchMeta


def batch_buffer(batch: NvDsBatchMeta, format: str) -> Gst.Buffer:
    """Make the buffer of a batch.

    Args:
        batch: its metadata and images.
        format: of the images, as the caps of the stream say; C code gets them so.
    """
    buffer = Gst.Buffer.new()
    add_images(hash(buffer), batch, format)
    bridge().attach(hash(buffer), batch)
    return buffer

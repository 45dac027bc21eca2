"""Bins of the original that hold one element behind a queue: the element under the bin's name."""

from __future__ import annotations

from headrace.gstreamer.elements.analytics import NvDsAnalytics
from headrace.gstreamer.elements.bins import Display
from headrace.gstreamer.elements.dewarper import NvDewarper
from headrace.gstreamer.elements.element import NVMM, SYSTEM, pad, through
from headrace.gstreamer.elements.inferserver import NvInferServer
from headrace.gstreamer.elements.properties import NO_EFFECT, Property
from headrace.gstreamer.elements.tiler import NvMultiStreamTiler
from headrace.gstreamer.elements.tracker import NvTracker


class NvInferServerBin(NvInferServer):
    """`nvinferserver`."""

    __gtype_name__ = "GstDsNvInferServerBin"
    ABOUT = ("NvInferServer Bin", "NvInferServer Plugin", "Runs a Triton model on batches")
    __gsttemplates__ = through(NVMM)


class NvTrackerBin(NvTracker):
    """`nvtracker`."""

    __gtype_name__ = "GstDsNvTrackerBin"
    ABOUT = ("NvTracker Bin", "Video/Tracker", "Follows objects")
    __gsttemplates__ = through(NVMM)


class NvTilerBin(NvMultiStreamTiler):
    """`nvmultistreamtiler`."""

    __gtype_name__ = "GstDsNvTilerBin"
    ABOUT = ("NvTiler Bin", "Filter/Editor/Video", "Puts sources on one image")
    __gsttemplates__ = through(NVMM)


class NvAnalyticsBin(NvDsAnalytics):
    """`nvdsanalytics`."""

    __gtype_name__ = "GstDsNvAnalyticsBin"
    ABOUT = ("NvAnalytics Bin", "Filter/Video", "Counts objects in regions and across lines")
    __gsttemplates__ = through(NVMM)


class NvDewarperBin(NvDewarper):
    """`nvdewarper`."""

    __gtype_name__ = "GstDsNvDewarperBin"
    ABOUT = ("NvDewarper Bin", "Filter/Video", "Dewarps images of wide lenses")
    __gsttemplates__ = through(NVMM)


class NvVideoRendererSinkBin(Display):
    """The display."""

    __gtype_name__ = "GstDsNvVideoRendererBin"
    ABOUT = ("NvVideoRenderer Bin", "Sink/Video", "Shows images, or counts them")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = Display.PROPERTIES | {
        "video-sink": Property("int", 0, "accepted; there is one kind of display"),
        **{
            name: Property("uint", 0, NO_EFFECT)
            for name in ("width", "height", "offset-x", "offset-y")
        },
    }

"""Registration of the elements in this process."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from headrace.gstreamer.hook import watch
from headrace.gstreamer.pyds.loading import gstreamer

SWITCH = "HEADRACE_GST"
"""`0` registers nothing."""
FRAME_BUFFER = Path("/dev/fb0")

# name -> (module, class, rank)
ELEMENTS = {
    "nvstreammux": ("streammux", "NvStreamMux", 0),
    "nvinfer": ("infer", "NvInfer", 0),
    "nvinferbin": ("infer", "NvInferBin", 0),
    "nvinferserver": ("inferserver", "NvInferServer", 0),
    "nvvideoconvert": ("convert", "NvVideoConvert", 0),
    "nvvidconv": ("convert", "NvVidConv", 0),
    "headracenvmmtag": ("convert", "NvmmTag", 0),
    "nvdsosd": ("osd", "NvDsOsd", 0),
    "nvosdbin": ("bins", "NvOsdBin", 0),
    "nvv4l2decoder": ("bins", "NvV4l2Decoder", 267),
    "nvv4l2h264enc": ("bins", "NvV4l2H264Enc", 0),
    "nvv4l2h265enc": ("bins", "NvV4l2H265Enc", 0),
    "nvjpegdec": ("bins", "NvJpegDec", 0),
    "nvjpegenc": ("bins", "NvJpegEnc", 0),
    "nvurisrcbin": ("sources", "NvUriSrcBin", 0),
    "nvmultiurisrcbin": ("sources", "NvMultiUriSrcBin", 0),
    "nveglglessink": ("bins", "NvEglGlesSink", 0),
    "nv3dsink": ("bins", "Nv3dSink", 0),
    "nvmultistreamtiler": ("tiler", "NvMultiStreamTiler", 0),
    "nvstreamdemux": ("demux", "NvStreamDemux", 0),
    "nvtracker": ("tracker", "NvTracker", 0),
    "nvdsanalytics": ("analytics", "NvDsAnalytics", 0),
    "nvdspostprocess": ("postprocess", "NvDsPostProcess", 0),
    "nvdspreprocess": ("preprocess", "NvDsPreProcess", 0),
    "nvdslogger": ("logger", "NvDsLogger", 0),
    "nvsegvisual": ("segvisual", "NvSegVisual", 0),
    "nvmsgconv": ("messages", "NvMsgConv", 0),
    "nvrtspoutsinkbin": ("rtsp_out", "NvRtspOutSinkBin", 0),
    "nvmsgbroker": ("broker", "NvMsgBroker", 0),
    "nvegltransform": ("passing", "NvEglTransform", 0),
    "nvoverlaysink": ("passing", "NvOverlaySink", 0),
    "nvof": ("passing", "NvOf", 0),
    "nvofvisual": ("passing", "NvOfVisual", 0),
    "nvdewarper": ("dewarper", "NvDewarper", 0),
    "nvdsvideotemplate": ("video_template", "NvDsVideoTemplate", 0),
    "nvdsmetamux": ("metamux", "NvDsMetaMux", 0),
    "nvcompositor": ("compositor", "NvCompositor", 0),
    "nvvideoencfilesinkbin": ("file_out", "NvVideoEncFileSinkBin", 0),
    "nvinferserverbin": ("named_bins", "NvInferServerBin", 0),
    "nvtrackerbin": ("named_bins", "NvTrackerBin", 0),
    "nvtilerbin": ("named_bins", "NvTilerBin", 0),
    "nvanalyticsbin": ("named_bins", "NvAnalyticsBin", 0),
    "nvdewarperbin": ("named_bins", "NvDewarperBin", 0),
    "nvvideorenderersinkbin": ("named_bins", "NvVideoRendererSinkBin", 0),
}


def factory(name: str) -> tuple[str, int, type]:
    """Return name, rank and class of an element, as GStreamer's loader of Python wants them."""
    from headrace.gstreamer.cmeta.images import serve_images
    from headrace.gstreamer.cmeta.tree import serve
    from headrace.gstreamer.elements import (
        analytics,
        bins,
        broker,
        c_calls,
        compositor,
        convert,
        demux,
        dewarper,
        file_out,
        infer,
        inferserver,
        logger,
        messages,
        metamux,
        named_bins,
        osd,
        passing,
        postprocess,
        preprocess,
        rtsp_out,
        segvisual,
        sources,
        streammux,
        tiler,
        tracker,
        video_template,
    )

    serve()
    serve_images()
    c_calls.serve_calls()
    modules = (
        analytics, bins, broker, compositor, convert, demux, dewarper, file_out, infer,
        inferserver, logger, messages, metamux, named_bins, osd, passing, postprocess, preprocess,
        rtsp_out, segvisual, sources, streammux, tiler, tracker, video_template,
    )  # fmt: skip
    by_name = {module.__name__.rpartition(".")[2]: module for module in modules}
    module, kind, rank = ELEMENTS[name]
    return name, rank, getattr(by_name[module], kind)


@cache
def register() -> None:
    """Register all elements, once.

    Raises:
        MissingExtraError: GStreamer or its bindings are not installed.
    """
    if os.environ.get(SWITCH) == "0":
        return
    gst = gstreamer()
    watch(gst)
    for name in ELEMENTS:
        label, rank, kind = factory(name)
        gst.Element.register(None, label, rank, kind)
    from headrace.gstreamer.elements.mpeg4 import stand_in

    stand_in()
    direct_fb = gst.ElementFactory.find("dfbvideosink")
    if direct_fb is not None and not FRAME_BUFFER.exists():
        direct_fb.set_rank(gst.Rank.NONE)  # autovideosink tries it, and the library crashes

"""Elements that stand for stock ones: decoders, encoders, displays."""

from __future__ import annotations

import ctypes
import os
from itertools import pairwise
from typing import ClassVar

from headrace.gstreamer.cmeta import native
from headrace.gstreamer.elements.bindings import Bin, GObject, Gst, GstVideo, structure_of
from headrace.gstreamer.elements.element import NVMM, SYSTEM, NvElement, pad, through, weakly
from headrace.gstreamer.elements.osd import PROPERTIES as OSD_PROPERTIES
from headrace.gstreamer.elements.properties import (
    COMMON,
    NO_EFFECT,
    UINT_MAX,
    Choices,
    Property,
    choice,
    unheeded,
)

_DECODERS = {
    "video/x-h264": "avdec_h264",
    "video/x-h265": "avdec_h265",
    "image/jpeg": "jpegdec",
    "video/x-vp8": "vp8dec",
    "video/x-vp9": "vp9dec",
    "video/x-av1": "av1dec",
    "video/mpeg": "avdec_mpeg4",
}
DECODER_MEMORY = ("memtype_device", "memtype_pinned", "memtype_unified")
SKIPPED = ("decode_all", "decode_non_ref", "decode_key")
_ALLOCATION = (
    "CaptureBufferDynamicAllocationModes",
    "cap_buf_dyn_alloc_disabled", "fw_cap_buf_dyn_alloc_enabled",
    "rw_cap_buf_dyn_alloc_enabled", "fw_rw_cap_buf_dyn_alloc_enabled",
)  # fmt: skip
_PRESETS = (
    "GstV4L2VideoEncHwPreset",
    "DisablePreset", "UltraFastPreset", "FastPreset", "MediumPreset", "SlowPreset",
)  # fmt: skip
_SPEEDS = ("ultrafast", "ultrafast", "fast", "medium", "slow")
_STREAMS = (
    "video/x-h264, stream-format=(string)byte-stream, alignment=(string)au",
    "video/x-h264, stream-format=(string)avc, alignment=(string)au",
    "video/x-h265, stream-format=(string)byte-stream, alignment=(string)au",
    "video/x-h265, stream-format=(string)hvc1, alignment=(string)au",
    "image/jpeg", "video/x-vp8", "video/x-vp9", "video/x-av1",
    "video/mpeg, mpegversion=(int)4, systemstream=(boolean)false",
)  # fmt: skip

_OF_DECODER = (
    "qos", "max-errors", "discard-corrupted-frames", "automatic-request-sync-points",
    "min-force-key-unit-interval",
)  # fmt: skip
_IO_MODES = {
    f"{side}-io-mode": Property(
        "enum", 0, "accepted; buffers are made as needed",
        choices=Choices(
            f"GstNvV4l2{side.title()}IOMode",
            ((0, "auto"), (1, "rw"), (2, "mmap"), (3, "userptr"), (4, "dmabuf"),
             (5, "dmabuf-import")),
        ),
    )
    for side in ("output", "capture")
}  # fmt: skip


class PartsBin(NvElement, Bin):
    """A bin with ghost pads of its templates."""

    def part(self, factory: str, **values: object) -> Gst.Element:
        """Make an element and add it."""
        element = Gst.ElementFactory.make(factory)
        if element is None:
            raise RuntimeError(f"GStreamer has no element {factory}")
        for name, value in values.items():
            element.set_property(name.replace("_", "-"), value)
        self.add(element)
        return element

    def ghost(self, template: str, target: Gst.Pad, name: str = "") -> Gst.GhostPad:
        """Give the bin a pad that leads to one of a part, of the template's name by default."""
        ghost_pad = Gst.GhostPad.new_from_template(
            name or template, target, self.template(template)
        )
        ghost_pad.set_active(True)
        for kind in (Gst.EventType.STREAM_START, Gst.EventType.CAPS):
            if (event := target.get_sticky_event(kind, 0)) is not None:
                ghost_pad.store_sticky_event(event)  # handlers of pad-added ask for its caps
        self.add_pad(ghost_pad)
        return ghost_pad


class NvV4l2Decoder(PartsBin):
    """Decodes H.264, H.265, JPEG, VP8, VP9, AV1 and MPEG-4 with FFmpeg's decoders."""

    __gtype_name__ = "Gstnvv4l2decoder"
    ABOUT = ("NVIDIA v4l2 video decoder", "Codec/Decoder/Video", "Decodes on the CPU")
    __gsttemplates__ = (pad("sink", "sink", "always", *_STREAMS), pad("src", "src", "always", NVMM))
    PROPERTIES = {"gpu-id": COMMON["gpu-id"]} | {
        "qos": Property("bool", True, "leave frames out that would come too late"),
        "max-errors": Property("int", -1, "faults in a row that are an error; -1: none", -1),
        "discard-corrupted-frames": Property("bool", False, "drop what is decoded with faults"),
        "automatic-request-sync-points": Property("bool", False, "ask for a key frame at a fault"),
        "min-force-key-unit-interval": Property("uint64", 0, "ns between two of these at least"),
        "num-extra-surfaces": Property("uint", 0, "accepted; buffers are made as needed", 0, 24),
        "cudadec-memtype": choice(
            0, "accepted; images lie in main memory", "CudaDecMemType", *DECODER_MEMORY
        ),
        "drop-frame-interval": Property("uint", 0, "keep every Nth frame; 0: all", 0, 30),
        "skip-frames": choice(0, NO_EFFECT, "SkipFrame", *SKIPPED),
        "enable-max-performance": Property("bool", False, "accepted; the processor decodes"),
        "low-latency-mode": Property("bool", False, "accepted; no frame is held back"),
        "mjpeg": Property("bool", False, "accepted; the caps of the stream tell it"),
        "capture-buffer-dynamic-allocation": choice(
            0, "accepted; buffers are made as needed", *_ALLOCATION
        ),
        "bufapi-version": Property("bool", False, "accepted; buffers have one form"),
        **_IO_MODES,
        "disable-dpb": Property("bool", False, "accepted; no frame is held back"),
        "enable-full-frame": Property("bool", False, "accepted; a parser stands ahead"),
        **unheeded(
            "bool", False,
            "enable-frame-type-reporting", "enable-error-check", "extract-sei-type5-data",
        ),
        **unheeded("str", None, "sei-uuid"),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._decoder: Gst.Element | None = None
        self._dropping, self._decoded = False, 0
        self._entry = self.part("identity", silent=True)
        # Streams of ten bits or with more colour become what networks read.
        self._convert = self.part("videoconvert")
        self._tag = tag = self.part("headracenvmmtag")
        self._convert.link(tag)
        self.ghost("sink", self._entry.get_static_pad("sink"))
        self.ghost("src", tag.get_static_pad("src"))
        native.call("headrace_keep_writable", ctypes.c_void_p)(hash(tag.get_static_pad("src")))
        self._entry.get_static_pad("sink").add_probe(
            Gst.PadProbeType.EVENT_DOWNSTREAM, weakly(self._choose, Gst.PadProbeReturn.OK)
        )
        self.setup()

    def changed(self, name: str) -> None:
        """Leave frames out once that is asked for; else no frame comes through Python here."""
        if name in _OF_DECODER and self._decoder is not None:
            self._decoder.set_property(name, self.values[name])
        if name == "drop-frame-interval" and self.values[name] > 1 and not self._dropping:
            self._dropping = True
            drop = weakly(self._drop, Gst.PadProbeReturn.OK)
            self._convert.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, drop)

    def _drop(self, sink: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        self._decoded += 1
        left_out = (self._decoded - 1) % max(1, self.values["drop-frame-interval"])
        return Gst.PadProbeReturn.DROP if left_out else Gst.PadProbeReturn.OK

    def _choose(self, sink: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        """Put the decoder in when the caps of the stream are known."""
        event = info.get_event()
        if event.type == Gst.EventType.CAPS and self._decoder is None:
            structure = structure_of(event.parse_caps())
            name = structure.get_name()
            self._tag.set_property("untagged", not structure.has_field("colorimetry"))
            factory = _DECODERS.get(name)
            if factory is None or Gst.ElementFactory.find(factory) is None:
                self.post_error(RuntimeError(f"no decoder for {name}"))
                return Gst.PadProbeReturn.DROP
            self._decoder = self.part(factory)
            if factory.startswith("avdec"):
                self._decoder.set_property("max-threads", 1)
            for key in self.assigned.intersection(_OF_DECODER):
                self._decoder.set_property(key, self.values[key])
            self._entry.link(self._decoder)
            self._decoder.link(self._convert)
            self._decoder.sync_state_with_parent()
        return Gst.PadProbeReturn.OK


class _Encoder(PartsBin):
    """Encodes images with a stock encoder.

    Attributes:
        PARTS: the encoder and the parser behind it.
    """

    PARTS: tuple[str, str]
    __gsignals__: ClassVar = {
        "force-IDR": (GObject.SignalFlags.RUN_LAST | GObject.SignalFlags.ACTION, None, ())
    }

    def do_force_IDR(self) -> None:  # noqa: N802 - the signal's name
        """Make the next frame a key frame."""
        event = GstVideo.video_event_new_upstream_force_key_unit(Gst.CLOCK_TIME_NONE, True, 0)
        self._encoder.get_static_pad("src").send_event(event)

    def __init__(self) -> None:
        super().__init__()
        encoder, parser = self.PARTS
        values = {"tune": "zerolatency", "speed_preset": "ultrafast", "key_int_max": 30}
        convert = self.part("nvvideoconvert")
        system = self.part("capsfilter", caps=Gst.Caps.from_string("video/x-raw, format=I420"))
        self._encoder = self.part(encoder, **values)
        parse = self.part(parser, config_interval=-1)
        convert.link(system)
        system.link(self._encoder)
        self._encoder.link(parse)
        self.ghost("sink", convert.get_static_pad("sink"))
        self.ghost("src", parse.get_static_pad("src"))
        self.setup()
        self._encoder.set_property("bitrate", self.values["bitrate"] // 1000)

    def changed(self, name: str) -> None:
        """Pass on the properties that the stock encoder has too."""
        if name == "bitrate":
            self._encoder.set_property(name, max(1, self.values[name] // 1000))
        elif name == "preset-level":
            self._encoder.set_property("speed-preset", _SPEEDS[self.values[name]])
        elif name == "iframeinterval":
            self._encoder.set_property("key-int-max", self.values[name])


_TUNING = Choices(
    "GstV4L2VideoEncTuningInfoPreset",
    (
        (1, "HighQualityPreset"), (2, "LowLatencyPreset"), (3, "UltraLowLatencyPreset"),
        (4, "LosslessPreset"),
    ),
)  # fmt: skip
_ENCODER = {"gpu-id": COMMON["gpu-id"]} | {
    "bitrate": Property("uint", 4_000_000, "bits per second"),
    "preset-level": choice(1, "speed against size", *_PRESETS),
    "iframeinterval": Property("uint", 30, "frames from one key frame to the next"),
    "idrinterval": Property("uint", 256, NO_EFFECT),
    "control-rate": choice(
        1,
        NO_EFFECT,
        "GstV4l2VideoEncRateControlType",
        "variable_bitrate",
        "constant_bitrate",
        "constantQP",
    ),
    "insert-sps-pps": Property("bool", False, "accepted; they always are"),
    "preset-id": Property("uint", 1, NO_EFFECT, 1, 7),
    **_IO_MODES,
    **unheeded("bool", False, "qos"),
    **unheeded("uint64", 0, "min-force-key-unit-interval"),
    "tuning-info-id": Property("enum", 2, NO_EFFECT, choices=_TUNING),
    "ratecontrol-enable": Property("bool", True, NO_EFFECT),
    **unheeded(
        "bool",
        False,
        "insert-vui",
        "insert-aud",
        "EnableTwopassCBR",
        "EnableMVBufferMeta",
        "bit-packetization",
        "MeasureEncoderLatency",
        "enable-lossless",
        "extended-colorformat",
        "temporalaq",
        "copy-timestamp",
    ),
    **unheeded("uint", UINT_MAX, "quant-i-frames", "quant-p-frames", "quant-b-frames"),
    **unheeded("uint", 0, "peak-bitrate", "maxbitrate", "SliceIntraRefreshInterval", "cq", "aq"),
    **unheeded("uint64", 0, "slice-header-spacing"),
    **unheeded("str", None, "constqp", "initqp", "minqp", "maxqp"),
    "num-Ref-Frames": Property("uint", 1, NO_EFFECT, 0, 8),
    "num-B-Frames": Property("uint", 0, NO_EFFECT, 0, 2),
    "qp-range": Property("str", None, NO_EFFECT),
    "vbv-size": Property("uint", 4_000_000, NO_EFFECT),
    "maxperf-enable": Property("bool", False, "accepted; the processor encodes"),
    "bufapi-version": Property("bool", False, "accepted; buffers have one form"),
}


_H264_PROFILES = Choices(
    "GstV4l2VideoEncProfileType", ((0, "Baseline"), (2, "Main"), (4, "High"), (7, "High444"))
)


class NvV4l2H264Enc(_Encoder):
    """Encodes H.264 with x264."""

    __gtype_name__ = "Gstnvv4l2h264enc"
    ABOUT = ("H.264 encoder", "Codec/Encoder/Video", "Encodes on the CPU")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM),
        pad("src", "src", "always", "video/x-h264, stream-format=(string)byte-stream"),
    )
    PROPERTIES = _ENCODER | {
        "profile": Property("enum", 0, NO_EFFECT, choices=_H264_PROFILES),
        "poc-type": Property("uint", 0, NO_EFFECT, 0, 2),
        "disable-cabac": Property("bool", False, NO_EFFECT),
    }
    PARTS = ("x264enc", "h264parse")


class NvV4l2H265Enc(_Encoder):
    """Encodes H.265 with x265."""

    __gtype_name__ = "Gstnvv4l2h265enc"
    ABOUT = ("H.265 encoder", "Codec/Encoder/Video", "Encodes on the CPU")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM),
        pad("src", "src", "always", "video/x-h265, stream-format=(string)byte-stream"),
    )
    PROPERTIES = _ENCODER | {
        "profile": choice(0, NO_EFFECT, "GstV4L2VideoEncProfileType", "Main", "Main10")
    }
    PARTS = ("x265enc", "h265parse")


class NvJpegDec(NvV4l2Decoder):
    """Decodes JPEG."""

    __gtype_name__ = "Gstnvjpegdec"
    ABOUT = ("JPEG decoder", "Codec/Decoder/Image", "Decodes on the CPU")
    __gsttemplates__ = (
        pad("sink", "sink", "always", "image/jpeg"),
        pad("src", "src", "always", NVMM),
    )


class NvJpegEnc(PartsBin):
    """Encodes JPEG."""

    __gtype_name__ = "Gstnvjpegenc"
    ABOUT = ("JPEG encoder", "Codec/Encoder/Image", "Encodes on the CPU")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM), pad("src", "src", "always", "image/jpeg")
    )  # fmt: skip
    PROPERTIES = {
        "gpu-id": COMMON["gpu-id"],
        "quality": Property("int", 85, "of the images", 0, 100),
        **unheeded("uint", 0, "encoded-size"),
        "needs-pool": Property("bool", False, "accepted; buffers are made as needed"),
    }

    def __init__(self) -> None:
        super().__init__()
        convert = self.part("nvvideoconvert")
        system = self.part("capsfilter", caps=Gst.Caps.from_string("video/x-raw, format=I420"))
        self._encoder = self.part("jpegenc")
        convert.link(system)
        system.link(self._encoder)
        self.ghost("sink", convert.get_static_pad("sink"))
        self.ghost("src", self._encoder.get_static_pad("src"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass the quality on."""
        if name == "quality":
            self._encoder.set_property(name, self.values[name])


DISPLAY = "HEADRACE_GST_DISPLAY"
"""`none` shows nothing, `window` a window, a path ending in `.mp4` records what would be shown."""


_OF_SINK = (
    "sync", "async", "qos", "max-lateness", "ts-offset", "render-delay", "throttle-time",
    "enable-last-sample", "processing-deadline",
)  # fmt: skip


class Display(PartsBin):
    """Shows images where there is a screen, and counts them where there is none."""

    PROPERTIES = {"gpu-id": COMMON["gpu-id"]} | {
        "sync": Property("bool", True, "show each image at its time"),
        "qos": Property("bool", True, "drop images that come too late"),
        "async": Property("bool", True, "wait for the first image before PLAYING"),
        "max-lateness": Property("int64", -1, "ns after which an image is late; -1: never", -1),
        "ts-offset": Property("int64", 0, "ns by which images are shown later"),
        "render-delay": Property("uint64", 0, "ns that showing takes"),
        "throttle-time": Property("uint64", 0, "ns from one image to the next at least"),
        "enable-last-sample": Property("bool", True, "keep the last image"),
        "processing-deadline": Property("uint64", 20_000_000, "ns that the elements before take"),
        **unheeded("uint", 0, "window-x", "window-y", "window-width", "window-height"),
    }

    def __init__(self) -> None:
        super().__init__()
        wish = os.environ.get(DISPLAY, "")
        screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if wish.endswith(".mp4"):
            first = self.part("nvvideoconvert")
            chain = [
                first,
                self.part("capsfilter", caps=Gst.Caps.from_string("video/x-raw, format=I420")),
                self.part("x264enc", tune="zerolatency", speed_preset="superfast"),
                self.part("h264parse"), self.part("mp4mux"),
                self.part("filesink", location=wish, **{"async": False}),
            ]  # fmt: skip
        elif wish != "none" and (wish == "window" or screen):
            first = self.part("nvvideoconvert")
            chain = [first, self.part("videoconvert"), self.part("autovideosink")]
        else:
            first = self.part("fakesink", sync=True, qos=False)
            chain = [first]
        for one, other in pairwise(chain):
            one.link(other)
        self._last = chain[-1]
        self.ghost("sink", first.get_static_pad("sink"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass on the properties that the real sink has too."""
        if name in _OF_SINK and self._last.find_property(name) is not None:
            self._last.set_property(name, self.values[name])


class NvEglGlesSink(Display):
    """The display of machines with a graphics card."""

    __gtype_name__ = "GstEglGlesSink"
    ABOUT = ("Display", "Sink/Video", "Shows images, or counts them")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = Display.PROPERTIES | {
        "create-window": Property("bool", True, "accepted; the display decides"),
        **unheeded("bool", True, "force-aspect-ratio"),
        **unheeded("uint", 0, "profile"),
        **unheeded("uint", 1, "rows", "columns"),
    }


class Nv3dSink(Display):
    """The display of embedded machines."""

    __gtype_name__ = "GstNv3dSink"
    ABOUT = ("Display", "Sink/Video", "Shows images, or counts them")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)


class NvOsdBin(PartsBin):
    """Draws objects and figures, on images of any format."""

    __gtype_name__ = "GstNvOsdBin"
    ABOUT = ("NvOsd Bin", "Filter/Editor/Video", "Draws objects and figures")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = OSD_PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        convert = self.part("nvvideoconvert")
        self._osd = self.part("nvdsosd")
        convert.link(self._osd)
        self.ghost("sink", convert.get_static_pad("sink"))
        self.ghost("src", self._osd.get_static_pad("src"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass the property on."""
        self._osd.set_property(name, self.values[name])

"""Sources by address: nvurisrcbin and, with a multiplexer behind several, nvmultiurisrcbin."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from headrace._core.errors import ConfigError, HeadraceError, MediaError
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace.config.paths import safe_uri
from headrace.gstreamer.elements.bindings import GObject, Gst
from headrace.gstreamer.elements.bins import DECODER_MEMORY, SKIPPED, PartsBin
from headrace.gstreamer.elements.convert import is_nvmm
from headrace.gstreamer.elements.element import NVMM, pad, reported, weakly
from headrace.gstreamer.elements.properties import (
    COMMON,
    NO_EFFECT,
    Choices,
    Property,
    choice,
    unheeded,
)
from headrace.gstreamer.elements.raw_output import address_of
from headrace.gstreamer.elements.reconnect import Patience, Reconnector
from headrace.gstreamer.elements.recorder import Done, PacketRecorder, RecordingInfo
from headrace.gstreamer.elements.streammux import PROPERTIES as MUX_PROPERTIES
from headrace.gstreamer.pyds.struct import capsule_of

_OF_RTSP = {"latency": "latency", "udp-buffer-size": "udp-buffer-size"}
_OF_RTSP |= {"select-rtp-protocol": "protocols"}
_OF_RTSP |= {"drop-on-latency": "drop-on-latency", "buffer-mode": "buffer-mode"}

_RECORDED = ("SmartRecordMode", "smart-rec-mode-av", "smart-rec-mode-video", "smart-rec-mode-audio")
_MODES = ("GstNvMultiUriSrcBinModeType2", "video-only", "audio-only")
_PROTOCOLS = Choices(
    "RtpProtocol",
    (
        (0, "rtp-unknown"), (1, "rtp-udp"), (2, "rtp-udp-mcast"), (4, "rtp-tcp"),
        (7, "rtp-udp-udpmcast-tcp"), (10, "rtp-http"), (20, "rtp-tls"),
    ),
)  # fmt: skip
_PARSERS = ("h264parse", "h265parse")
_ACTION = GObject.SignalFlags.RUN_LAST | GObject.SignalFlags.ACTION
_POINTER = GObject.TYPE_POINTER
_FLAGS = {10: 0x10, 20: 0x20}  # numbers of the original -> flags of rtspsrc
URI_PROPERTIES = {"gpu-id": COMMON["gpu-id"]} | {
    "uri": Property("str", None, "address of the video or the camera"),
    "source-id": Property("int", -1, NO_EFFECT, -1),
    "type": choice(0, "accepted; the address tells it", "GstNvSourceType", "auto", "uri", "rtsp"),
    "num-extra-surfaces": Property("uint", 1, "accepted; buffers are made as needed"),
    "cudadec-memtype": choice(
        0, "accepted; images lie in main memory", "GstNvUriSrcBinCudaDecMemType", *DECODER_MEMORY
    ),
    "drop-frame-interval": Property("uint", 0, "keep every Nth frame; 0: all", 0, 30),
    "dec-skip-frames": choice(0, NO_EFFECT, "SkipFrames", *SKIPPED),
    "file-loop": Property("bool", False, "start again at the end of the video"),
    "disable-audio": Property("bool", True, NO_EFFECT),
    "disable-passthrough": Property("bool", False, "accepted; images are the same either way"),
    "latency": Property("uint", 100, "of RTSP, in milliseconds"),
    "drop-on-latency": Property("bool", True, "RTSP drops what comes too late"),
    "select-rtp-protocol": Property(
        "enum", 7, "of RTSP: 4 is TCP alone, 7 any", choices=_PROTOCOLS
    ),
    "udp-buffer-size": Property("uint", 524288, "of RTSP, in bytes"),
    "rtsp-reconnect-interval": Property(
        "uint", 0, "seconds without an image of RTSP before it is opened again; 0: never"
    ),
    "init-rtsp-reconnect-interval": Property(
        "uint", 0, "the same after an error before the first image"
    ),
    "rtsp-reconnect-attempts": Property(
        "int", -1, "attempts that may fail one after the other; -1: any number"
    ),
    "buffer-mode": choice(
        3, "of RTSP", "BufferMode", "unknown", "slave", "buffer", "auto", "synced"
    ),
    "smart-record": choice(
        0,
        "record at the signal start-sr; nothing is read from a broker",
        "SmartRecordType",
        "smart-rec-disable",
        "smart-rec-cloud",
        "smart-rec-multi",
    ),
    "smart-rec-dir-path": Property("str", None, "folder of recordings; the working one without"),
    "smart-rec-file-prefix": Property("str", "Smart_Record", "first part of their names"),
    "smart-rec-cache": Property("uint", 20, "seconds before a start that are kept"),
    "smart-rec-video-cache": Property("uint", 20, "the same, as older releases call it"),
    "smart-rec-container": choice(
        0, "of recordings", "SmartRecordContainerType", "smart-rec-mp4", "smart-rec-mkv"
    ),
    "smart-rec-mode": choice(0, NO_EFFECT, *_RECORDED)._replace(idle=(1,)),
    "smart-rec-default-duration": Property("uint", 20, "seconds of a recording that names none"),
    "smart-rec-status": Property("bool", False, "True while it records"),
    "extract-sei-type5-data": Property("bool", False, NO_EFFECT),
    "sei-uuid": Property("str", None, NO_EFFECT),
    "low-latency-mode": Property("bool", False, "accepted; no frame is held back"),
    "leaky": choice(0, NO_EFFECT, "Leaky", "no-leak", "upstream-leak", "downstream-leak"),
    "max-size-buffers": Property("uint", 200, NO_EFFECT),
    **unheeded("bool", False, "ipc-buffer-timestamp-copy"),
    **unheeded("str", None, "ipc-socket-path"),
    "ipc-connection-attempts": Property("int", -1, NO_EFFECT, -1),
    **unheeded("uint64", 1_000_000, "ipc-connection-interval"),
    "simulate-fps-interval-ms": Property("uint", 0, NO_EFFECT, 0, 1000),
}


class _Recorded(ctypes.Structure):
    """NvDsSRRecordingInfo of C. Source: gst-nvdssr.h."""

    _fields_ = (
        ("ctx", ctypes.c_void_p), ("sessionId", ctypes.c_uint32), ("filename", ctypes.c_char_p),
        ("dirpath", ctypes.c_char_p), ("duration", ctypes.c_uint64),
        ("containerType", ctypes.c_int), ("width", ctypes.c_uint), ("height", ctypes.c_uint),
        ("containsVideo", ctypes.c_int), ("channels", ctypes.c_uint),
        ("samplingRate", ctypes.c_uint), ("containsAudio", ctypes.c_int),
    )  # fmt: skip


class NvUriSrcBin(PartsBin):
    """Opens and decodes the images of an address; the pad comes when they are known.

    Signals: `start-sr` (address for the number, seconds before, seconds after, user data) and
    `stop-sr` (number) are actions; `sr-done` hands a NvDsSRRecordingInfo and the user data over.
    """

    __gtype_name__ = "GstNvUriSrcBin"
    ABOUT = ("NvUriSrc Bin", "Source/Video", "Decodes an address")
    __gsttemplates__ = (pad("vsrc_%u", "src", "sometimes", NVMM),)
    PROPERTIES = URI_PROPERTIES
    __gsignals__: ClassVar = {
        "start-sr": (_ACTION, None, (_POINTER, GObject.TYPE_UINT, GObject.TYPE_UINT, _POINTER)),
        "stop-sr": (_ACTION, None, (GObject.TYPE_UINT,)),
        "sr-done": (GObject.SignalFlags.RUN_LAST, None, (_POINTER, _POINTER)),
    }

    def __init__(self) -> None:
        super().__init__()
        self._recorder: PacketRecorder | None = None
        self._offset_ns = self._end_ns = 0
        self._again = False
        self._reconnector: Reconnector | None = None
        self._pad: Gst.Pad | None = None
        only = Gst.Caps.from_string("video/x-raw(ANY)")
        self._decode = self.part("uridecodebin", caps=only, expose_all_streams=False)
        self._decode.connect("pad-added", weakly(self._found))
        self._decode.connect("source-setup", weakly(self._prepare))
        self._decode.connect("element-added", weakly(self._inside))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass the address on."""
        if name == "uri":
            self._decode.set_property("uri", self.values[name])

    def _prepare(self, decode: Gst.Element, source: Gst.Element) -> None:
        if source.find_property("protocols") is not None:  # rtspsrc
            for own, other in _OF_RTSP.items():
                value = self.values[own]
                if own == "select-rtp-protocol":
                    value = _FLAGS.get(value, value)
                Gst.util_set_object_arg(source, other, str(value).lower())

    def _inside(self, owner: Gst.Bin, element: Gst.Element) -> None:
        """Reach the decoder, which a bin inside of a bin makes."""
        if isinstance(element, Gst.Bin):
            element.connect("element-added", weakly(self._inside))
        keep = self.values["drop-frame-interval"]
        factory = element.get_factory()
        if self._recorder and factory is not None and factory.get_name() in _PARSERS:
            source = element.get_static_pad("src")
            source.add_probe(Gst.PadProbeType.BUFFER, weakly(self._record, Gst.PadProbeReturn.OK))
        if keep > 1 and factory is not None and factory.get_name() == "nvv4l2decoder":
            element.set_property("drop-frame-interval", keep)

    def _found(self, decode: Gst.Element, source: Gst.Element) -> None:
        if not is_nvmm(source.get_current_caps() or source.query_caps(None)):
            convert = self.part("nvvideoconvert")
            tag = self.part("capsfilter", caps=Gst.Caps.from_string(NVMM))
            convert.link(tag)
            for part in (convert, tag):
                part.sync_state_with_parent()
            source.link(convert.get_static_pad("sink"))
            source = tag.get_static_pad("src")
        if self.values["file-loop"]:
            kinds = Gst.PadProbeType.EVENT_DOWNSTREAM | Gst.PadProbeType.EVENT_FLUSH
            loop = weakly(self._loop, Gst.PadProbeReturn.OK)
            source.add_probe(kinds | Gst.PadProbeType.BUFFER, loop)
        if self._pad is not None and self._reconnector is not None:  # opened again
            self._pad.set_target(source)
            return
        self._pad = self.ghost("vsrc_%u", source, f"vsrc_{len(self.srcpads)}")
        if self._reconnector is not None:
            kinds = Gst.PadProbeType.EVENT_DOWNSTREAM | Gst.PadProbeType.BUFFER
            self._pad.add_probe(kinds, weakly(self._watch, Gst.PadProbeReturn.OK))

    # ---- recording

    def _record(self, source: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        caps = source.get_current_caps()
        if self._recorder is not None and caps is not None:
            self._recorder.packet(info.get_buffer(), caps)
        return Gst.PadProbeReturn.OK

    def _open_recorder(self) -> PacketRecorder | None:
        values = self.values
        if not values["smart-record"]:
            return None
        older = "smart-rec-video-cache"
        cache = older if older in self.assigned else "smart-rec-cache"
        return PacketRecorder(
            Path(values["smart-rec-dir-path"] or "."), values["smart-rec-file-prefix"],
            "mkv" if values["smart-rec-container"] else "mp4", values[cache],
            values["smart-rec-default-duration"], weakly(self._not_recorded),
        )  # fmt: skip

    def do_get_property(self, spec: GObject.ParamSpec) -> Any:
        """Return the value of a property."""
        if spec.name == "smart-rec-status":
            return self._recorder is not None and self._recorder.is_recording
        return super().do_get_property(spec)

    def _not_recorded(self, error: BaseException) -> None:
        self.post_warning(error_text(error))

    def record(self, start_s: int, duration_s: int, done: Done) -> int:
        """Begin a recording, and return its number; see `PacketRecorder.start`.

        Raises:
            MediaError: `smart-record` is off, or nothing can be recorded yet.
        """
        if self._recorder is None:
            raise MediaError(
                "the source keeps nothing to record", where=self.get_name(),
                fix="set smart-record to 2 (smart-rec-multi) before it starts",
            )  # fmt: skip
        return self._recorder.start(start_s, duration_s, done)

    def stop_recording(self, number: int) -> bool:
        """End a recording; False if there is none of that number."""
        return self._recorder is not None and self._recorder.stop(number)

    def do_start_sr(self, address: Any, start_s: int, duration_s: int, user_data: Any) -> None:
        """Begin a recording; its number is written to the address."""
        try:
            number = self.record(start_s, duration_s, partial(self._recorded, user_data))
        except HeadraceError as error:
            self._not_recorded(error)
            return
        if place := address_of(address):
            ctypes.c_uint32.from_address(place).value = number

    def do_stop_sr(self, number: int) -> None:
        """End a recording."""
        if not self.stop_recording(number):
            self.post_warning(f"stop-sr: there is no recording {number}")

    def _recorded(self, user_data: Any, info: RecordingInfo) -> None:
        """Tell the application, in the thread that wrote the file."""
        told = _Recorded(
            None, info.session_id, info.file_name.encode(), info.file_directory.encode(),
            info.duration, int(info.container == "mkv"), info.width, info.height, 1, 0, 0, 0,
        )  # fmt: skip
        self.emit("sr-done", capsule_of(ctypes.addressof(told)), user_data)

    # ---- reconnecting

    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Watch an RTSP source between READY and PAUSED, if it is to be opened again; record."""
        if change == Gst.StateChange.READY_TO_PAUSED:
            self._recorder = self._open_recorder()
        if change == Gst.StateChange.READY_TO_PAUSED and (patience := self._patience()):
            reopen, give_up = weakly(self._reopen), weakly(self._give_up)
            self._reconnector = Reconnector(patience, reopen, give_up)
        elif change == Gst.StateChange.PAUSED_TO_READY and self._reconnector is not None:
            self._reconnector.close()
        done = Gst.Bin.do_change_state(self, change)
        if change == Gst.StateChange.PAUSED_TO_READY:
            self._reconnector = None
            if self._recorder is not None:
                self._recorder.close()
                self._recorder = None
        return done

    def _patience(self) -> Patience | None:
        interval_s = self.values["rtsp-reconnect-interval"]
        first_s = self.values["init-rtsp-reconnect-interval"]
        if not (interval_s or first_s) or not str(self.values["uri"]).startswith("rtsp"):
            return None
        attempts = self.values["rtsp-reconnect-attempts"]
        return Patience(interval_s, first_s, attempts or -1)  # 0 is -1 in the original, too

    def do_handle_message(self, message: Gst.Message) -> None:
        """Keep an error of the source back if it is opened again."""
        watch = None if self.disposed else self._reconnector
        if watch is not None and message.type == Gst.MessageType.ERROR:  # noqa: SIM102 - for mypy
            if watch.problem(message.parse_error()[0].message):
                return
        Gst.Bin.do_handle_message(self, message)

    def _watch(self, ghost: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        watch = self._reconnector
        if watch is None:
            return Gst.PadProbeReturn.OK
        if info.type & Gst.PadProbeType.BUFFER:
            watch.image()
        elif info.get_event().type == Gst.EventType.EOS and watch.problem("the stream ended"):
            return Gst.PadProbeReturn.DROP
        return Gst.PadProbeReturn.OK

    def _reopen(self, problem: str) -> None:
        self.post_warning(f"{safe_uri(self.values['uri'])}: {problem}: it is opened again")
        self._decode.set_state(Gst.State.NULL)
        self._decode.sync_state_with_parent()
        # An error amid the pipeline's start leaves the bin behind. Not from this thread: who stops
        # the bin waits for it.
        self.call_async(Gst.Element.sync_state_with_parent)

    def _give_up(self, problem: str) -> None:
        attempts = self.values["rtsp-reconnect-attempts"]
        text = f"{safe_uri(self.values['uri'])}: {problem}, after {attempts} attempts"
        if self._pad is None:
            self.post_error(MediaError(text, where=self.get_name()))
            return
        self.post_warning(text)
        peer = self._pad.get_peer()
        if peer is not None:  # past the pad, which takes no second end of a stream
            peer.send_event(Gst.Event.new_eos())

    def _loop(self, source: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        """Turn the end into a jump to the start; times go on, and elements behind see no jump."""
        if info.type & Gst.PadProbeType.BUFFER:
            buffer = info.get_buffer()
            if buffer.pts != Gst.CLOCK_TIME_NONE:
                if self._again:
                    self._again, self._offset_ns = False, self._end_ns - buffer.pts
                buffer.pts += self._offset_ns
                length = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else 0
                self._end_ns = buffer.pts + length
            return Gst.PadProbeReturn.OK
        kind = info.get_event().type
        if kind == Gst.EventType.EOS:
            self._again = True
            # The thread that brings the event cannot wait for itself.
            restart = partial(self._restart, source)
            start_thread(restart, name="headrace-file-loop", failed=self.post_error)
            return Gst.PadProbeReturn.DROP
        if kind in (Gst.EventType.FLUSH_START, Gst.EventType.FLUSH_STOP):
            return Gst.PadProbeReturn.DROP
        return Gst.PadProbeReturn.OK

    def _restart(self, source: Gst.Element) -> None:
        seek = Gst.Event.new_seek(
            1.0, Gst.Format.TIME, Gst.SeekFlags.FLUSH, Gst.SeekType.SET, 0, Gst.SeekType.NONE, 0
        )
        if not source.send_event(seek) and self.get_state(0).state >= Gst.State.PAUSED:
            self.post_error(RuntimeError(f"{self.values['uri']} cannot start again: file-loop"))


_OF_MUX = {name: row for name, row in MUX_PROPERTIES.items() if name not in COMMON}
_OF_MUX |= {"interpolation-method": MUX_PROPERTIES["interpolation-method"]}
del _OF_MUX["batch-size"]


class NvMultiUriSrcBin(PartsBin):
    """Opens several addresses and batches their frames; sources do not change while it runs."""

    __gtype_name__ = "GstNvMultiUriSrcBin"
    ABOUT = ("NvMultiUriSrc Bin", "Source/Video", "Batches several addresses")
    __gsttemplates__ = (pad("src", "src", "always", NVMM),)
    PROPERTIES = (URI_PROPERTIES | _OF_MUX) | {
        "uri-list": Property("str", "", "addresses, with commas between"),
        "sensor-id-list": Property("str", "", "of the sources, for messages on the bus"),
        "sensor-name-list": Property("str", "", "of the sources, for messages on the bus"),
        "max-batch-size": Property("uint", 30, "most frames of a batch; 0: the addresses"),
        "port": Property("str", "9000", NO_EFFECT, idle=("0",)),
        "ip-address": Property("str", "localhost", NO_EFFECT),
        "mode": choice(0, NO_EFFECT, *_MODES),
        **unheeded(
            "bool",
            False,
            "extract-sei-type5-data-dec",
            "sensorID-padID-mapping",
            "enable-error-propagation",
        ),
        **unheeded("str", None, "proto-lib", "conn-str", "topic"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._mux = self.part("nvstreammux")
        self._sources: list[Gst.Element] = []
        self.ghost("src", self._mux.get_static_pad("src"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass properties of the multiplexer on."""
        if name in _OF_MUX and not _OF_MUX[name].is_ignored:
            self._mux.set_property(name, self.values[name])

    @reported(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, change: Gst.StateChange) -> Gst.StateChangeReturn:
        """Make the sources before the first start."""
        if change == Gst.StateChange.NULL_TO_READY and not self._sources:
            self._open()
        return Gst.Bin.do_change_state(self, change)

    def _open(self) -> None:
        addresses = [uri.strip() for uri in self.values["uri-list"].split(",") if uri.strip()]
        if not addresses:
            raise ConfigError(
                "uri-list is empty",
                where=self.get_name(),
                expected="addresses, with commas between",
            )
        self._mux.set_property("batch-size", self.values["max-batch-size"] or len(addresses) or 1)
        passed = set(URI_PROPERTIES) & self.assigned - {"uri"}
        ids, names = (self._listed(key) for key in ("sensor-id-list", "sensor-name-list"))
        for number, uri in enumerate(addresses):
            source = self.part("nvurisrcbin", uri=uri, **{n: self.values[n] for n in passed})
            sink = self._mux.request_pad_simple(f"sink_{number}")
            source.connect("pad-added", lambda _, found, sink=sink: found.link(sink))
            self._sources.append(source)
            added = Gst.Structure.new_empty("stream-add")
            added.set_value("source-id", number)
            added.set_value("uri", uri)
            added.set_value("sensor-id", ids[number] if number < len(ids) else "")
            added.set_value("sensor-name", names[number] if number < len(names) else "")
            self.post_message(Gst.Message.new_element(self, added))

    def source_of(self, sensor_id: str) -> Gst.Element | None:
        """Return the source of a sensor; None if there is none."""
        ids = self._listed("sensor-id-list")
        number = ids.index(sensor_id) if sensor_id in ids else len(self._sources)
        return self._sources[number] if number < len(self._sources) else None

    def _listed(self, name: str) -> list[str]:
        return [text.strip() for text in self.values[name].split(",")]

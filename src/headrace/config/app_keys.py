"""The groups and keys of deepstream-app configs: those that apply, and why the others do not.

Facts: the public documentation and sources of the reference application, 4.0 to 9.1.
"""

# ruff: noqa: E501 (a table: one key per line)

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace._core.findings import Level
from headrace.config.key import Key, key_row, table
from headrace.config.pipeline_keys import COLOR, OVERRIDES
from headrace.config.values import Kind

SECRET_KEYS = frozenset(("uri", "list", "msg-broker-conn-str", "conn-str"))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something has no effect; a warning when results or outputs differ by it."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class AppGroup:
    """One kind of group.

    Attributes:
        name: as in messages, `sourceN` for numbered ones.
        pattern: what its names look like.
        keys: what is applied, by name.
        numbered: what more is applied, the names as a pattern.
        unused: what is known and not applied, by name, with the reason.
        reason: why the whole group is not applied.
        switched: the group is off unless it has `enable=1`.
    """

    name: str
    pattern: re.Pattern[str]
    keys: dict[str, Key] = field(default_factory=dict)
    numbered: tuple[re.Pattern[str], Key] | None = None
    unused: dict[str, Reason] = field(default_factory=dict)
    reason: Reason | None = None
    switched: bool = True

    def key(self, name: str) -> Key | None:
        """The applied key of this name."""
        if self.numbered is not None and self.numbered[0].fullmatch(name):
            return self.numbered[1]
        return self.keys.get(name)


HARDWARE = Reason("info", "memory kinds, GPUs and hardware units are not chosen here")
SPEED = Reason("info", "speeds are always measured and reported")
TRANSPORT = Reason("info", "buffers of the transport are chosen by themselves")
CLOCK = Reason("info", "frames keep the times of their stream")
CAMERA = Reason("warning", "the camera's own settings are used")
RECORD = Reason("warning", "nothing is recorded on events; -o clip:DIR records around them")
DECODE = Reason("warning", "every frame is decoded")
SEI = Reason("warning", "data inside the video stream is not read")
AUDIO = Reason("warning", "there is no audio")
DUMPS = Reason("warning", "trackers write no files")
REST = Reason("warning", "sources cannot be added while running")
MUX = Reason("info", "frames keep their own size, and boxes are in pixels of their own frame")
PADDING = Reason("warning", "frames keep their own size, there is nothing to pad")
SYNC = Reason("warning", "sources are not synchronised with each other")
CLOCKS = Reason("info", "no clock is drawn")
BOXES = Reason("info", "trackers work on boxes, not on pixels")
RESET = Reason("warning", "tracking ids are never reset and never reused")
REID = Reason("warning", "trackers use no tensors of other models")
ENCODER = Reason("info", "video is written as H.264 of constant quality")
PACE = Reason("info", "frames are written as they come, not at the pace of playing")
BROKER = Reason("warning", "messages are events of Headrace's own, and none are received")
CONVERTER = Reason("info", "messages are made of the objects of every N-th frame")
RAW = Reason(
    "warning", "raw outputs are dumped by the key raw-output-file-write of the model's own file"
)
TRITON = Reason("warning", "only models of nvinfer are run")
IDENTITY = Reason("info", "it names nothing here")


def _unused(*rows: tuple[Reason, str]) -> dict[str, Reason]:
    return {name: reason for reason, names in rows for name in names.split()}


_INT, _ON, _TEXT, _PATH = Kind.INT, Kind.INT_FLAG, Kind.STRING, Kind.PATH
_key = partial(key_row, "app", default=None, meaning="")
ENABLE = _key("enable", _ON)
_KIND = "nvbuf-memory-type compute-hw"
_GPU = f"gpu-id {_KIND}"


def _group(name: str, pattern: str, **more: Any) -> AppGroup:
    return AppGroup(name, re.compile(pattern), **more)


_APPLICATION = _group(
    "application", "application", switched=False,
    keys=table(_key("gie-kitti-output-dir", _PATH), _key("kitti-track-output-dir", _PATH), _key("global-gpu-id", _INT, low=0)),
    unused=_unused((SPEED, "enable-perf-measurement perf-measurement-interval-sec"),
                   (DUMPS, "reid-track-output-dir terminated-track-output-dir shadow-track-output-dir")),
)  # fmt: skip
_TILER = _group(
    "tiled-display", "tiled-display",
    keys=table(ENABLE, _key("rows", _INT, low=0, high=64), _key("columns", _INT, low=0, high=64),
               _key("width", _INT, low=16, high=16384), _key("height", _INT, low=16, high=16384), _key("square-seq-grid", _ON)),
    unused=_unused((HARDWARE, f"{_GPU} buffer-pool-size")),
)  # fmt: skip
SOURCE_KEYS = table(
    ENABLE, _key("type", _INT), _key("uri", _TEXT), _key("num-sources", _INT),
    _key("latency", _INT, low=0, field="latency_ms"), _key("drop-frame-interval", _INT, low=0),
    _key("camera-id", _INT, low=0), _key("camera-v4l2-dev-node", _INT, low=0),
    _key("rtsp-reconnect-interval-sec", _INT, low=0, high=86400, field="reconnect_interval_s"),
    _key("rtsp-reconnect-attempts", _INT, low=-1, field="reconnect_attempts"),
    _key("select-rtp-protocol", _INT, low=0), _key("file-loop", _ON, field="loop"), _key("live-source", _ON, field="live"),
    _key("gpu-id", _INT, low=0),
)  # fmt: skip
_SOURCE_UNUSED = _unused(
    (HARDWARE, f"{_KIND} num-decode-surfaces num-extra-surfaces cudadec-memtype low-latency-decode copy-hw"),
    (TRANSPORT, "udp-buffer-size buffer-mode leaky max-size-buffers drop-on-latency init-rtsp-reconnect-interval-sec set-rtp-protocol"),
    (CAMERA, "camera-width camera-height camera-fps-n camera-fps-d video-format"),
    (RECORD, "smart-record smart-rec-dir-path smart-rec-file-prefix smart-rec-video-cache smart-rec-cache smart-rec-container "
             "smart-rec-start-time smart-rec-default-duration smart-rec-duration smart-rec-interval"),
    (DECODE, "intra-decode-enable dec-skip-frames"), (SEI, "extract-sei-type5-data sei-uuid"), (AUDIO, "alsa-device"),
    (PACE, "simulate-fps-interval-ms"), (IDENTITY, "source-id sensorID-padID-mapping camera-csi-sensor-id"),
)  # fmt: skip
_SOURCE = _group("sourceN", r"source[0-9]+", keys=SOURCE_KEYS, unused=_SOURCE_UNUSED)
_SOURCE_ALL = _group("source-attr-all", "source-attr-all", keys=SOURCE_KEYS, unused=_SOURCE_UNUSED)
_SOURCE_CSV = _group("source", "source", switched=False, keys=table(_key("csv-file-path", _PATH)))
_SOURCE_LIST = _group(
    "source-list", "source-list", switched=False,
    keys=table(_key("list", Kind.STRINGS), _key("num-source-bins", _INT, low=0), _key("sensor-id-list", Kind.STRINGS),
               _key("sensor-name-list", Kind.STRINGS), _key("sgie-batch-size", _INT, low=0, high=1024)),
    unused=_unused((REST, "use-nvmultiurisrcbin http-ip http-port max-batch-size"), (SEI, "extract-sei-type5-data sei-uuid"),
                   (HARDWARE, "low-latency-mode"), (IDENTITY, "stream-name-display"),
                   (BROKER, "dummy-payload custom-ts-to-rfc batched-sensor-name enable-error-propagation proto-lib conn-str topic")),
)  # fmt: skip
_STREAMMUX = _group(
    "streammux", "streammux", switched=False,
    keys=table(_key("batch-size", _INT, low=0, high=1024), _key("batched-push-timeout", _INT, low=-1), _key("live-source", _ON)),
    unused=_unused((HARDWARE, f"{_GPU} buffer-pool-size num-surfaces-per-frame cache-buffer cache-buffer-timeout"),
                   (MUX, "width height"), (PADDING, "enable-padding"), (SYNC, "sync-inputs sync-inputs-ntp max-latency sort-batch align-first-buffer failsafe-flush-count"),
                   (CLOCK, "attach-sys-ts-as-ntp frame-duration frame-num-reset-on-stream-reset frame-num-reset-on-eos async-process drop-pipeline-eos"),
                   (SEI, "extract-sei-type5-data extract-sei-sim-time drop-backward-sei"),
                   (Reason("warning", "the new muxer's own file is not read"), "config-file-path")),
)  # fmt: skip
_GIE_KEYS = table(
    ENABLE, _key("config-file", _PATH, field="config"), _key("plugin-type", _INT), _key("input-tensor-meta", _ON),
    *(OVERRIDES[name] for name in ("gie-unique-id", "batch-size", "interval", "gpu-id", "operate-on-gie-id",
                                   "operate-on-class-ids", "model-engine-file", "labelfile-path")),
)  # fmt: skip
_GIE_UNUSED = _unused(
    (HARDWARE, "nvbuf-memory-type"), (RAW, "infer-raw-output-dir"),
    (AUDIO, "audio-transform audio-framesize audio-hopsize audio-input-rate"),
    (TRITON, "model-variant device min-crop-size verbose backend triton-url triton-model"),
)  # fmt: skip
_COLORS = (re.compile(r"bbox-(border|bg)-color([0-9]{0,6})"), _key("bbox-border-color", **COLOR))
_PRIMARY = _group(
    "primary-gie", "primary-gie", keys=_GIE_KEYS, numbered=_COLORS, unused=_GIE_UNUSED
)
_SECONDARY = _group(
    "secondary-gieN", r"secondary-gie[0-9]*", keys=_GIE_KEYS, numbered=_COLORS, unused=_GIE_UNUSED
)
_TRACKER = _group(
    "tracker", "tracker",
    keys=table(ENABLE, _key("ll-lib-file", _TEXT), _key("ll-config-file", _TEXT), _key("operate-on-class-ids", Kind.INTS, low=0),
               _key("display-tracking-id", _ON)),
    unused=_unused((HARDWARE, f"{_GPU} tracker-surface-type tracking-surface-type user-meta-pool-size sub-batches sub-batch-err-recovery-trial-cnt enable-batch-process"),
                   (BOXES, "tracker-width tracker-height enable-past-frame"), (RESET, "tracking-id-reset-mode"),
                   (REID, "input-tensor-meta tensor-meta-gie-id"),
                   (Reason("warning", "a tracker's settings are those of ll-config-file"), "tracker-algorithm iou-threshold")),
)  # fmt: skip
_ANALYTICS = _group(
    "nvds-analytics", "nvds-analytics", keys=table(ENABLE, _key("config-file", _PATH)), unused=_unused((IDENTITY, "unique-id")),
)  # fmt: skip
_OSD = _group(
    "osd", "osd",
    keys=table(ENABLE, _key("border-width", _INT, low=0, high=255), _key("text-size", _INT, low=1, high=255), _key("text-color", **COLOR),
               _key("text-bg-color", **COLOR), _key("font", _TEXT), _key("display-text", _ON, field="show_text"),
               _key("display-bbox", _ON, field="show_boxes"), _key("display-mask", _ON, field="show_masks"), _key("show-clock", _ON)),
    unused=_unused((HARDWARE, f"{_GPU} process-mode hw-blend-color-attr border-color num-out-buffers"),
                   (CLOCKS, "clock-x-offset clock-y-offset clock-text-size clock-color")),
)  # fmt: skip
_SINK = _group(
    "sinkN", r"sink[0-9]+",
    keys=table(ENABLE, _key("type", _INT), _key("output-file", _TEXT), _key("source-id", _INT, low=0), _key("link-to-demux", _ON),
               _key("codec", _INT), _key("container", _INT), _key("msg-conv-config", _PATH), _key("msg-conv-payload-type", _INT, low=0),
               _key("msg-conv-frame-interval", _INT, low=0), _key("msg-broker-proto-lib", _TEXT), _key("msg-broker-conn-str", _TEXT),
               _key("topic", _TEXT), _key("msg-broker-config", _PATH), _key("disable-msgconv", _ON)),
    unused=_unused((HARDWARE, f"{_GPU} enc-type output-io-mode copy-meta conn-id plane-id set-mode color-range overlay-id offset-x offset-y"),
                   (ENCODER, "bitrate profile iframeinterval sw-preset width height"), (PACE, "sync qos"),
                   (SPEED, "nvdslogger show-fps show-latency"), (TRANSPORT, "rtsp-port udp-port udp-buffer-size display-id"),
                   (CONVERTER, "msg-conv-msg2p-lib msg-conv-comp-id debug-payload-dir multiple-payloads msg-conv-msg2p-new-api "
                               "msg-conv-dummy-payload msg-conv-embedding-filter msg-broker-comp-id new-api sleep-time")),
)  # fmt: skip
_TESTS = _group(
    "tests", "tests", switched=False, keys=table(_key("file-loop", _ON, field="loop")),
    unused=_unused((Reason("info", "the pipeline is not set up again while it runs"), "pipeline-recreate-sec")),
)  # fmt: skip


def _not_run(name: str, pattern: str, why: str, level: Level = "warning") -> AppGroup:
    return _group(name, pattern, reason=Reason(level, why))


APP_GROUPS: tuple[AppGroup, ...] = (
    _APPLICATION, _TILER, _SOURCE_LIST, _SOURCE_ALL, _SOURCE_CSV, _SOURCE, _STREAMMUX, _PRIMARY, _SECONDARY, _TRACKER, _ANALYTICS, _OSD, _SINK, _TESTS,
    _not_run("pre-process", r"(primary-)?pre-process[0-9]*|secondary-pre-process[0-9]*", "regions are not prepared apart: models scale whole frames or objects"),
    _not_run("img-save", r"img-save", "objects are not saved as images; a sink images:FOLDER saves whole frames"),
    _not_run("message-converter", r"message-converter", "outputs of type 6 make their own messages"),
    _not_run("message-consumerN", r"message-consumer[0-9]*", "messages are sent, none are received"),
    _not_run("dewarperN", r"dewarper[0-9]*", "frames are not dewarped"),
    _not_run("ds-example", r"ds-example", "it is an element of its own; write a probe instead"),
    _not_run("segvisual", r"segvisual", "class maps are drawn without it", "info"),
    _not_run("audio-N", r"audio-(transform|classifier)", "there is no audio"),
    _not_run("text-embedder", r"text-embedder", "only models of nvinfer are run"),
    _not_run("visionencoder", r"visionencoder", "only models of nvinfer are run"),
    _not_run("replay", r"replay", "detections are not read from files"),
)  # fmt: skip


def group_of(name: str) -> AppGroup | None:
    """Return the kind of a group by its name; None if it is unknown."""
    return next((group for group in APP_GROUPS if group.pattern.fullmatch(name)), None)

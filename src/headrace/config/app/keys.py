"""The groups and keys of deepstream-app configs: those that apply, and why the others do not.

Facts: the public documentation and sources of the reference application, 4.0 to 9.1.
"""

# ruff: noqa: E501 (a table: one key per line)

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from headrace._core.findings import Level
from headrace.config.app import reasons as why
from headrace.config.app.reasons import Reason, unused
from headrace.config.key import Key, key_row, table
from headrace.config.pipeline_keys import COLOR, OVERRIDES
from headrace.config.values import Kind

SECRET_KEYS = frozenset(("uri", "list", "msg-broker-conn-str", "conn-str"))


KeyState = Literal["applied", "approximated", "named"]


@dataclass(frozen=True, slots=True)
class AppGroup:
    """One kind of group.

    Attributes:
        name: as in messages, `sourceN` for numbered ones.
        pattern: what its names look like.
        keys: what is applied, by name.
        numbered: what more is applied, the names as a pattern.
        unused: what is known and not applied, by name, with the reason.
        near: in words, what of the applied keys is not as in the original, by name.
        reason: why the whole group is not applied.
        switched: the group is off unless it has `enable=1`.
    """

    name: str
    pattern: re.Pattern[str]
    keys: dict[str, Key] = field(default_factory=dict)
    numbered: tuple[re.Pattern[str], Key] | None = None
    unused: dict[str, Reason] = field(default_factory=dict)
    near: dict[str, str] = field(default_factory=dict)
    reason: Reason | None = None
    switched: bool = True

    def key(self, name: str) -> Key | None:
        """The applied key of this name."""
        if self.numbered is not None and self.numbered[0].fullmatch(name):
            return self.numbered[1]
        return self.keys.get(name)

    def states(self) -> dict[str, KeyState]:
        """The fate of every key that the group knows, by name."""
        states: dict[str, KeyState] = {}
        for name in self.keys:
            states[name] = "approximated" if name in self.near else "applied"
            if self.reason is not None:
                states[name] = "named"
        if self.numbered == _COLORS:
            states |= dict.fromkeys(NUMBERED_KEYS, "applied")
        named: dict[str, KeyState] = dict.fromkeys(self.unused, "named")
        return states | named


MOST_SURFACES = 4
"""Views of the dewarper for each image, at most."""
NUMBERED_KEYS = ("bbox-border-color", "bbox-bg-color")
"""Keys that may end in the number of a class, without it."""

_INT, _ON, _TEXT, _PATH = Kind.INT, Kind.INT_FLAG, Kind.STRING, Kind.PATH
_key = partial(key_row, "app", default=None, meaning="")
ENABLE = _key("enable", _ON)
_KIND = "nvbuf-memory-type cuda-memory-type compute-hw"
_GPU = f"gpu-id {_KIND}"


def _group(name: str, pattern: str, **more: Any) -> AppGroup:
    return AppGroup(name, re.compile(pattern), **more)


_APPLICATION = _group(
    "application", "application", switched=False,
    keys=table(_key("gie-kitti-output-dir", _PATH), _key("kitti-track-output-dir", _PATH), _key("global-gpu-id", _INT, low=0),
               _key("enable-perf-measurement", _ON), _key("perf-measurement-interval-sec", _INT, low=0, high=86400)),
    unused=unused(                   (why.DUMPS, "reid-track-output-dir terminated-track-output-dir shadow-track-output-dir")),
)  # fmt: skip
_TILER = _group(
    "tiled-display", "tiled-display",
    keys=table(_key("enable", _INT), _key("rows", _INT, low=0, high=64), _key("columns", _INT, low=0, high=64),
               _key("width", _INT, low=16, high=16384), _key("height", _INT, low=16, high=16384), _key("square-seq-grid", _ON)),
    unused=unused((why.HARDWARE, f"{_GPU} buffer-pool-size")),
)  # fmt: skip
REST_SOURCE_KEYS = (
    "set-rtp-protocol",
    "init-rtsp-reconnect-interval-sec",
    "simulate-fps-interval-ms",
    "sensorID-padID-mapping",
)
"""Keys of a source that count with `use-nvmultiurisrcbin=1` alone."""
SOURCE_KEYS = table(
    ENABLE, _key("type", _INT), _key("uri", _TEXT), _key("num-sources", _INT),
    _key("latency", _INT, low=0, field="latency_ms"), _key("drop-frame-interval", _INT, low=0),
    _key("camera-v4l2-dev-node", _INT, low=0),
    _key("rtsp-reconnect-interval-sec", _INT, low=0, high=86400, field="reconnect_interval_s"),
    _key("rtsp-reconnect-attempts", _INT, low=-1, field="reconnect_attempts"),
    _key("select-rtp-protocol", _INT, low=0), _key("file-loop", _ON, field="loop"), _key("live-source", _ON, field="live"),
    _key("gpu-id", _INT, low=0), _key("camera-id", _INT, low=0), _key("smart-record", _INT, low=0), _key("smart-rec-dir-path", _PATH),
    _key("smart-rec-file-prefix", _TEXT), _key("smart-rec-container", _INT, low=0, high=1),
    _key("intra-decode-enable", _ON, field="key_frames_only"), _key("low-latency-decode", _ON, field="low_delay"),
    _key("udp-buffer-size", _INT, low=0), _key("camera-width", _INT, low=0, high=16384), _key("camera-height", _INT, low=0, high=16384),
    _key("camera-fps-n", _INT, low=0), _key("camera-fps-d", _INT, low=0), _key("video-format", _TEXT),
    *(_key(name, _INT, low=0) for name in REST_SOURCE_KEYS),
    *(_key(f"smart-rec-{name}", _INT, low=0, high=86400) for name in ("cache", "video-cache", "start-time", "default-duration", "duration", "interval")),
)  # fmt: skip
_NEAR = {
    "camera-id": "it names files of recordings alone; sinks name sources by their order",
    "video-format": "cameras are asked for it; frames of files and streams keep their own",
}
_SOURCE_UNUSED = unused(
    (why.HARDWARE, f"{_KIND} num-decode-surfaces num-extra-surfaces cudadec-memtype copy-hw"),
    (why.TRANSPORT, "buffer-mode leaky max-size-buffers drop-on-latency"),
    (why.DECODE, "dec-skip-frames"), (why.SEI, "extract-sei-type5-data sei-uuid"), (why.AUDIO, "alsa-device"),
    (why.IDENTITY, "source-id camera-csi-sensor-id"),
)  # fmt: skip
_SOURCE = _group("sourceN", r"source[0-9]+", keys=SOURCE_KEYS, unused=_SOURCE_UNUSED, near=_NEAR)
_LISTED = (
    "type",
    "uri",
    "num-sources",
    "camera-v4l2-dev-node",
    "camera-id",
)  # what a list says of each source
_SOURCE_ALL = _group(
    "source-attr-all", "source-attr-all", keys={name: key for name, key in SOURCE_KEYS.items() if name not in _LISTED},
    unused=_SOURCE_UNUSED | dict.fromkeys(_LISTED, why.LISTED), near=_NEAR,
)  # fmt: skip
_SOURCE_CSV = _group("source", "source", switched=False, keys=table(_key("csv-file-path", _PATH)))
_SOURCE_LIST = _group(
    "source-list", "source-list", switched=False,
    keys=table(_key("list", Kind.STRINGS), _key("num-source-bins", _INT, low=0), _key("sensor-id-list", Kind.STRINGS),
               _key("sensor-name-list", Kind.STRINGS), _key("sgie-batch-size", _INT, low=0, high=1024),
               _key("use-nvmultiurisrcbin", _ON), _key("low-latency-mode", _ON), _key("stream-name-display", _ON),
               _key("http-ip", _TEXT), _key("http-port", _INT, low=0, high=65535), _key("max-batch-size", _INT, low=0, high=1024),
               _key("enable-error-propagation", _ON), _key("proto-lib", _TEXT), _key("conn-str", _TEXT), _key("topic", _TEXT),
               _key("dummy-payload", _ON), _key("custom-ts-to-rfc", _ON)),
    unused=unused((why.SEI, "extract-sei-type5-data sei-uuid"),
                   (why.IDENTITY, "batched-sensor-name")),
)  # fmt: skip
_SURFACES = "each further surface is a source behind all others"
_STREAMMUX = _group(
    "streammux", "streammux", switched=False,
    keys=table(_key("batch-size", _INT, low=0, high=1024), _key("batched-push-timeout", _INT, low=-1), _key("live-source", _ON),
               _key("width", _INT, low=0, high=16384), _key("height", _INT, low=0, high=16384), _key("enable-padding", _ON),
               _key("drop-pipeline-eos", _ON), _key("sync-inputs", _ON), _key("max-latency", _INT, low=0), _key("frame-num-reset-on-stream-reset", _ON),
               _key("num-surfaces-per-frame", _INT, low=0, high=MOST_SURFACES)),
    unused=unused((why.HARDWARE, f"{_GPU} buffer-pool-size cache-buffer cache-buffer-timeout"),
                   (why.SYNC, "sync-inputs-ntp sort-batch align-first-buffer failsafe-flush-count"),
                   (why.CLOCK, "attach-sys-ts-as-ntp attach-sys-ts frame-duration frame-num-reset-on-eos async-process"),
                   (why.SEI, "extract-sei-type5-data extract-sei-sim-time drop-backward-sei"),
                   (why.NEW_MUX, "config-file config-file-path"), (why.NOTHING_THERE, "interpolation-method")),
    near={"num-surfaces-per-frame": "of dewarped sources: " + _SURFACES},
)  # fmt: skip
_GIE_KEYS = table(
    ENABLE, _key("infer-raw-output-dir", _PATH), _key("config-file", _PATH, field="config"), _key("plugin-type", _INT), _key("input-tensor-meta", _ON),
    *(OVERRIDES[name] for name in ("gie-unique-id", "batch-size", "interval", "gpu-id", "operate-on-gie-id",
                                   "operate-on-class-ids", "model-engine-file")),
)  # fmt: skip
_GIE_UNUSED = unused(
    (why.HARDWARE, "nvbuf-memory-type"), (why.LABELS, "labelfile-path"),
    (why.AUDIO, "audio-transform audio-framesize audio-hopsize audio-input-rate"),
    (why.ENCODERS, "model-variant device min-crop-size verbose backend triton-url triton-model"),
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
               _key("display-tracking-id", _ON), _key("tracker-width", _INT, low=0, high=16384), _key("tracker-height", _INT, low=0, high=16384)),
    unused=unused((why.HARDWARE, f"{_GPU} tracker-surface-type tracking-surface-type user-meta-pool-size sub-batches sub-batch-err-recovery-trial-cnt enable-batch-process"),
                   (why.PAST, "enable-past-frame"), (why.RESET, "tracking-id-reset-mode"),
                   (why.REID, "input-tensor-meta tensor-meta-gie-id"),
                   (why.OLD_TRACKER, "tracker-algorithm iou-threshold")),
)  # fmt: skip
_ANALYTICS = _group(
    "nvds-analytics", "nvds-analytics", keys=table(ENABLE, _key("config-file", _PATH)), unused=unused((why.IDENTITY, "unique-id")),
)  # fmt: skip
_OSD = _group(
    "osd", "osd",
    keys=table(ENABLE, _key("border-width", _INT, low=0, high=255), _key("text-size", _INT, low=1, high=255), _key("text-color", **COLOR),
               _key("text-bg-color", **COLOR), _key("font", _TEXT), _key("display-text", _ON, field="show_text"),
               _key("display-bbox", _ON, field="show_boxes"), _key("display-mask", _ON, field="show_masks"), _key("show-clock", _ON),
               _key("clock-x-offset", _INT, low=0, high=16384, field="clock_x"), _key("clock-y-offset", _INT, low=0, high=16384, field="clock_y"),
               _key("clock-text-size", _INT, low=1, high=255, field="clock_size"), _key("clock-color", **COLOR)),
    unused=unused((why.HARDWARE, f"{_GPU} process-mode hw-blend-color-attr border-color num-out-buffers")),
)  # fmt: skip
_CONVERTED = table(
    _key("msg-conv-comp-id", _INT, low=0),
    _key("msg-conv-dummy-payload", _ON),
    _key("debug-payload-dir", _PATH),
)
_NEAR_CONVERTED = {
    "debug-payload-dir": "every message lies there in a file, with a name of Headrace's own"
}
_SINK = _group(
    "sinkN", r"sink[0-9]+",
    keys=table(ENABLE, _key("type", _INT), _key("output-file", _TEXT), _key("source-id", _INT, low=0), _key("link-to-demux", _ON),
               _key("codec", _INT), _key("container", _INT), _key("bitrate", _INT, low=0), _key("profile", _INT), _key("iframeinterval", _INT, low=0), _key("sw-preset", _INT, low=0), _key("rtsp-port", _INT, low=1, high=65535), _key("msg-conv-config", _PATH), _key("msg-conv-payload-type", _INT, low=0),
               _key("msg-conv-frame-interval", _INT, low=0), _key("msg-conv-msg2p-new-api", _ON), _key("msg-conv-msg2p-lib", _PATH), _key("msg-broker-proto-lib", _TEXT), _key("msg-broker-conn-str", _TEXT),
               _key("topic", _TEXT), _key("msg-broker-config", _PATH), _key("disable-msgconv", _ON),
               _key("msg-broker-comp-id", _INT, low=0), _key("sleep-time", _INT, low=0, high=60_000), *_CONVERTED.values()),
    unused=unused((why.HARDWARE, f"{_GPU} enc-type output-io-mode copy-meta conn-id plane-id set-mode color-range overlay-id display-id offset-x offset-y"),
                   (why.WINDOW, "width height"), (why.PACE, "sync qos"),
                   (why.SPEED, "nvdslogger show-fps show-latency"), (why.RTSP_FEED, "udp-port udp-buffer-size"),
                   (why.CONVERTER, "multiple-payloads msg-conv-embedding-filter new-api")),
    near=_NEAR_CONVERTED,
)  # fmt: skip
_PREPARED = table(ENABLE, _key("config-file", _PATH))
_PREPARE = _group(
    "pre-process", r"(primary-)?pre-process[0-9]*", keys=_PREPARED,
    unused=unused((why.OF_OBJECTS, "operate-on-gie-id")),
)  # fmt: skip
_PREPARE_OBJECTS = _group(
    "secondary-pre-processN", r"secondary-pre-process[0-9]*",
    keys=_PREPARED | table(_key("operate-on-gie-id", _INT, low=-1)),
)  # fmt: skip
_CONVERTER = _group(
    "message-converter", "message-converter",
    keys=table(ENABLE, _key("msg-conv-config", _PATH), _key("msg-conv-payload-type", _INT, low=0),
               _key("msg-conv-frame-interval", _INT, low=0), _key("msg-conv-msg2p-new-api", _ON), _key("msg-conv-msg2p-lib", _PATH), *_CONVERTED.values()),
    unused=unused((why.CONVERTER, "msg-conv-embedding-filter multiple-payloads")),
    near=_NEAR_CONVERTED,
)  # fmt: skip
_IMAGES = _group(
    "img-save", "img-save",
    keys=table(ENABLE, _key("output-folder-path", _TEXT), _key("save-img-full-frame", _ON), _key("save-img-cropped-obj", _ON),
               _key("frame-to-skip-rules-path", _TEXT), _key("second-to-skip-interval", Kind.FLOAT, low=0, high=1e9),
               _key("min-confidence", Kind.FLOAT, low=0, high=1), _key("max-confidence", Kind.FLOAT, low=0, high=1),
               _key("min-box-width", _INT, low=0, high=1_000_000), _key("min-box-height", _INT, low=0, high=1_000_000)),
    unused=unused((why.HARDWARE, "gpu-id")),
    near={"output-folder-path": "images, crops, labels and tables lie there as in the original, the names of files are Headrace's own; "
                                "deepstream-app and test5 read the group and save nothing, the transfer-learning application does"},
)  # fmt: skip
_CONSUMER = _group(
    "message-consumerN", r"message-consumer[0-9]*",
    keys=table(ENABLE, _key("proto-lib", _TEXT), _key("conn-str", _TEXT), _key("config-file", _PATH), _key("subscribe-topic-list", Kind.STRINGS),
               _key("sensor-list-file", _PATH)),
)  # fmt: skip
_DEWARPER = _group(
    "dewarperN", r"dewarper[0-9]*",
    keys=table(ENABLE, _key("config-file", _PATH), _key("num-surfaces-per-frame", _INT, low=0, high=MOST_SURFACES),
               _key("num-batch-buffers", _INT, low=1, high=MOST_SURFACES)),
    unused=unused((why.HARDWARE, "gpu-id nvbuf-memory-type num-output-buffers num-out-buffers"), (why.SURFACE_SOURCE, "source-id")),
    near=dict.fromkeys(("num-surfaces-per-frame", "num-batch-buffers"), _SURFACES),
)  # fmt: skip
_TESTS = _group(
    "tests", "tests", switched=False, keys=table(_key("file-loop", _ON, field="loop")),
    unused=unused((why.RECREATE, "pipeline-recreate-sec")),
)  # fmt: skip


def _not_run(
    name: str, pattern: str, reason: str, names: str, level: Level = "warning"
) -> AppGroup:
    unused_keys = unused((Reason(level, reason), names))
    return _group(
        name, pattern, keys=table(ENABLE), unused=unused_keys, reason=Reason(level, reason)
    )


_MODELS_ELSE = "only models of nvinfer are run"
APP_GROUPS: tuple[AppGroup, ...] = (
    _APPLICATION, _TILER, _SOURCE_LIST, _SOURCE_ALL, _SOURCE_CSV, _SOURCE, _STREAMMUX, _PRIMARY, _SECONDARY, _TRACKER, _ANALYTICS, _OSD, _SINK, _TESTS, _PREPARE, _PREPARE_OBJECTS, _CONVERTER, _IMAGES,
    _CONSUMER,
    _DEWARPER,
    _not_run("ds-example", r"ds-example", "it is an element of its own; write a probe instead",
             "processing-width processing-height full-frame unique-id gpu-id blur-objects batch-size nvbuf-memory-type"),
    _not_run("segvisual", r"segvisual", "class maps are drawn without it", "width height batch-size gpu-id nvbuf-memory-type", "info"),
    _not_run("audio-N", r"audio-(transform|classifier)", "there is no audio", ""),
    _not_run("text-embedder", r"text-embedder", _MODELS_ELSE, "model-name onnx-model-path tokenizer-dir"),
    _not_run("visionencoder", r"visionencoder", _MODELS_ELSE,
             "model-variant batch-size device min-crop-size verbose gpu-id backend triton-url triton-model skip-interval embedding-classes "
             "onnx-model tensorrt-engine query-only smart-infer cache-refresh-interval cache-max-size ofa-predict ofa-motion-threshold "
             "ofa-high-motion-threshold"),
    _not_run("replay", r"replay", "detections are not read from files",
             "label-dir file-names max-frame-nums label-width label-height interval"),
)  # fmt: skip


def group_of(name: str) -> AppGroup | None:
    """Return the kind of a group by its name; None if it is unknown."""
    return next((group for group in APP_GROUPS if group.pattern.fullmatch(name)), None)

"""The grammar of a Headrace pipeline file: its sections, their keys, and the values of each.

One table for the reader, the checks of specs made by programs, the JSON schema, the dump and the
documentation.
"""

# ruff: noqa: E501 (a table: one key per line)

from __future__ import annotations

from typing import Any

from headrace._core.plain_record import PlainRecord
from headrace.config.key import Key, key_row, table
from headrace.config.keys import PROPERTY_ROWS
from headrace.config.values import INT_MAX, Kind, Values

MAX_ITEMS = 1024  # sources, models or sinks of one pipeline; the muxer's largest batch
SINK_KINDS: dict[str, str] = {
    "video": "H.264 video (.mp4, .m4v, .mov, .mkv)",
    "images": "a folder of JPEG images (DIR/), one image or a pattern (.jpg, .png, %06d.png)",
    "jsonl": "JSON Lines, one object per frame (.jsonl, .ndjson; jsonl:- is standard output)",
    "coco": "COCO JSON (.json)",
    "kitti": "KITTI text, one file per frame (kitti:DIR)",
    "kitti-track": "KITTI tracking text, one file per source (kitti-track:DIR)",
    "kitti-primary": "boxes of the primary models before the tracker, as deepstream-app dumps them "
    "(kitti-primary:DIR)",
    "kitti-objects": "all objects with their track ids, as deepstream-app dumps them "
    "(kitti-objects:DIR)",
    "dota": "DOTA text, the four corners of each object, one file per frame (dota:DIR, DIR.dota)",
    "masks": "class maps of segmentation as PNG images (masks:DIR)",
    "parquet": "Parquet table, one row per object (.parquet)",
    "arrow": "Arrow table, one row per object (.arrow, .feather)",
    "messages": "messages (mqtt://, kafka://, redis://, amqp://HOST/TOPIC, webhook+https://HOST)",
    "publish": "a live stream (rtsp://HOST/PATH to an RTSP server, rtsp-server://HOST:PORT/PATH from "
    "one of its own, udp://HOST:PORT as MPEG-TS)",
    "hls": "HTTP Live Streaming, H.264 in segments (.m3u8)",
    "clip": "video around events, as it came, without encoding (clip:DIR?before=5&after=10)",
    "object-images": "frames with objects, and the objects, as JPEG for training "
    "(object-images:DIR?every=10&crops=1)",
    "smart-record": "recordings in the form of the original, by a timer or on call "
    "(smart-record:DIR?interval=10)",
    "fake": "nothing is written",
}
"""Kinds of output; `fake` is for pipeline files alone."""

MESSAGE_SCHEMES = (
    "mqtt", "mqtts", "webhook+http", "webhook+https", "kafka", "redis", "rediss", "amqp", "amqps",
    "events+file",
)  # fmt: skip
"""Schemes of outputs of the kind `messages`."""
PRESETS = (
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    "placebo",
)  # fmt: skip
"""Speeds of video encoders, in the order of the numbers of x264, from 1."""
RECEIVED_SCHEMES = ("mqtt", "mqtts", "kafka", "redis", "rediss", "amqp", "amqps")
"""Schemes of consumers."""
STREAM_SCHEMES = ("rtsp", "rtsps", "udp", "rtsp-server")
"""Schemes of outputs of the kind `publish`."""


class Section(PlainRecord, frozen=True):
    """One part of a pipeline file.

    Attributes:
        name: its key at the top of the file.
        noun: one item of it, for messages.
        keys: by name.
        short: the key that a plain text instead of a mapping sets.
        short_says: what that text may be, for messages.
        many: a list of items instead of one.
        required: the key an item must have.
    """

    name: str
    noun: str
    keys: dict[str, Key]
    short: str | None
    short_says: str
    many: bool = False
    required: str | None = None


def _key(name: str, kind: Kind, meaning: str, default: Any = None, **more: Any) -> Key:
    return key_row("pipeline", name, kind, default, meaning, **more)


_INT, _FLOAT, _FLAG, _STRING = Kind.INT, Kind.FLOAT, Kind.FLAG, Kind.STRING
COLOR: Values = {"kind": Kind.FLOATS, "counts": (4,), "low": 0, "high": 1}

# Keys of a model's own file that the pipeline may set; the same meaning, kind and range as there.
_OVERRIDDEN = (
    "gie-unique-id",
    "process-mode",
    "batch-size",
    "interval",
    "gpu-id",
    "operate-on-gie-id",
    "operate-on-class-ids",
    "model-engine-file",
    "labelfile-path",
    "input-tensor-from-meta",
)
OVERRIDES: dict[str, Key] = {key.name: key for key in PROPERTY_ROWS if key.name in _OVERRIDDEN}
COLORS = {"border-colors": "border_color", "bg-colors": "bg_color"}

SOURCE = Section(
    "sources",
    "a source",
    table(
        _key("uri", _STRING, "file, pattern, folder, URL or `camera:N`; relative to this file"),
        _key("name", _STRING, "name in outputs and reports"),
        _key("repeat", _INT, "how many times the source is opened side by side", 1, low=1, high=MAX_ITEMS),
        _key("loop", _FLAG, "start over when a file ends, without end", False),
        _key("live", _FLAG, "drop frames that are late; without it, streams and cameras do"),
        _key("fps", _FLOAT, "rate of images, and of video without times", low=1e-3, high=1e4),
        _key("drop-frame-interval", _INT, "only every n-th frame is used; 0 and 1: all", 0, low=0, high=INT_MAX),
        _key("latency-ms", _INT, "how long packets of an RTSP stream are waited for", low=0, high=INT_MAX),
        _key("rtp-protocol", _STRING, "transport of RTSP", choices=("tcp", "udp")),
        _key("reconnect-interval-s", _FLOAT, "first wait before a lost stream is opened again; 0: never", low=0, high=86400),
        _key("reconnect-attempts", _INT, "attempts before a lost stream counts as failed; -1: without end", low=-1, high=INT_MAX),
        _key("playlist-reach", _STRING, "what an HLS playlist or a redirecting server may open: its own host or the files beside it; public addresses, too (the default); anything", choices=("same", "public", "any")),
        _key("camera-id", _INT, "number by which sinks name the source", low=0, high=INT_MAX),
        _key("gpu-id", _INT, "number of the GPU that decodes it, where models run on GPUs; the first model's without it", low=0, high=INT_MAX),
        _key("key-frames-only", _FLAG, "decode key frames alone", False),
        _key("low-delay", _FLAG, "the decoder waits for no later images; for streams of I and P frames alone", False),
        _key("pace-ms", _FLOAT, "milliseconds from one frame to the next at least; 0: each as soon as it is decoded", 0.0, low=0, high=1e6),
        _key("udp-buffer-size", _INT, "bytes that the kernel keeps of a stream that comes by UDP", low=0, high=INT_MAX),
        _key("start-interval-s", _FLOAT, "wait for a stream that is not there yet, with so long between two attempts", low=0, high=86400),
        _key("renumber", _FLAG, "frame numbers of a stream begin at 0 when it comes back after a loss", False),
        _key("camera-size", Kind.INTS, "width and height asked of a camera, in pixels", low=1, high=16384, counts=(2,)),
        _key("camera-fps", _FLOAT, "frame rate asked of a camera", low=1e-3, high=1e4),
        _key("camera-format", _STRING, "pixel format asked of a camera, by FFmpeg's name"),
        _key("dewarper", Kind.PATH, "a config file of nvdewarper: frames are the view of one of its surfaces; relative to this file"),
        _key("surface", _INT, "which surface of `dewarper`, by its place in that file; several are sources of their own", 0, low=0, high=3),
    ),
    short="uri",
    short_says="a path or URL",
    many=True,
    required="uri",
)  # fmt: skip
MODEL = Section(
    "models",
    "a model",
    table(
        _key("config", Kind.PATH, "the model's nvinfer config file; relative to this file"),
        *OVERRIDES.values(),
        _key(
            "preprocess",
            Kind.PATH,
            "a config file of nvdspreprocess, whose tensors are made right before this model; it and those behind it take them with `input-tensor-from-meta`",
        ),
        _key(
            "preprocess-gie-id",
            _INT,
            "the model whose objects it cuts out, over the file's",
            low=-1,
            high=INT_MAX,
        ),
        _key(
            "raw-output-dir",
            Kind.PATH,
            "a folder for every output of the model: a file for each layer and run of the engine",
        ),
        _key("border-colors", Kind.STRINGS, "colour of boxes by class number, or of `all`"),
        _key("bg-colors", Kind.STRINGS, "fill of boxes by class number, or of `all`"),
    ),
    short="config",
    short_says="the path of an nvinfer config file",
    many=True,
    required="config",
)
TRACKER = Section(
    "tracker",
    "a tracker",
    table(
        _key("name", _STRING, "which tracker: `iou`, …"),
        _key("config", Kind.PATH, "a tracker's YAML file instead of a name; relative to this file"),
        _key("settings", Kind.STRINGS, "the tracker's own settings by name, also over those of its file"),
        _key("operate-on-gie-id", Kind.INTS, "models whose objects are tracked; without it, all", low=0),
        _key("operate-on-class-ids", Kind.INTS, "classes that are tracked; without it, all", low=0),
    ),
    short="name",
    short_says="a tracker's name, or the path of its YAML file",
)  # fmt: skip
TILER = Section(
    "tiler",
    "a tiler",
    table(
        _key("rows", _INT, "rows of the grid; without it, chosen for the number of sources", low=1, high=64),
        _key("columns", _INT, "columns of the grid", low=1, high=64),
        _key("width", _INT, "width of the whole image", 1280, low=16, high=16384),
        _key("height", _INT, "height of the whole image", 720, low=16, high=16384),
        _key("captions", _FLAG, "write the name of each source below its image", True),
    ),
    short="rows",
    short_says="a grid, rows x columns: 2x2",
)  # fmt: skip
OSD = Section(
    "osd",
    "the drawing",
    table(
        _key("show", _FLAG, "draw anything at all", True),
        _key("show-boxes", _FLAG, "draw boxes", True),
        _key("show-text", _FLAG, "draw labels", True),
        _key("show-masks", _FLAG, "draw masks", True),
        _key("show-ids", _FLAG, "tracking ids in labels", True),
        _key("show-confidence", _FLAG, "confidences in labels", True),
        _key("border-width", _INT, "line width in pixels; without it, by the image's height", low=0, high=255),
        _key("text-size", _INT, "text height in points; without it, by the image's height", low=1, high=255),
        _key("text-color", meaning="r, g, b, a of labels, each 0 to 1", **COLOR),
        _key("text-bg-color", meaning="r, g, b, a behind labels", **COLOR),
        _key("font", _STRING, "font family of labels"),
        _key("show-names", _FLAG, "write the name of each source into its images", False),
        _key("show-clock", _FLAG, "write date and time", False),
        _key("clock-x", _INT, "left edge of the clock in pixels", 0, low=0, high=16384),
        _key("clock-y", _INT, "upper edge of the clock in pixels", 0, low=0, high=16384),
        _key("clock-size", _INT, "height of the clock in points; without it, 12", low=1, high=255),
        _key("clock-color", meaning="r, g, b, a of the clock; without it, red", **COLOR),
    ),
    short="show",
    short_says="on or off",
)  # fmt: skip
SINK = Section(
    "sinks",
    "a sink",
    table(
        _key("kind", _STRING, "what is written; without it, the path's ending says it", choices=tuple(SINK_KINDS)),
        _key("path", _STRING, "where; relative to this file"),
        _key("uri", _STRING, "where messages (without user and password) or a stream go: a URL in the place of `path`"),
        _key("codec", _STRING, "of a video; without it, `h264`", choices=("h264", "h265", "mpeg4")),
        _key("container", _STRING, "of a video; without it, the path's ending says it", choices=("mp4", "matroska")),
        _key("bitrate", _INT, "of a video, in bits per second; without it, quality is constant", low=1, high=INT_MAX),
        _key("key-frame-interval", _INT, "frames of a video from one key frame to the next; without it, 2 s of them", low=1, high=INT_MAX),
        _key("profile", _STRING, "of the codec", choices=("baseline", "main", "high")),
        _key("preset", _STRING, "speed of the encoder against size", choices=PRESETS),
        _key("source", _INT, "only this source: its `camera-id`, or its index among the sources", low=0, high=INT_MAX),
    ),
    short="path",
    short_says="a path, or kind:path",
    many=True,
)  # fmt: skip

CONSUMER = Section(
    "consumers",
    "a consumer",
    table(
        _key("uri", _STRING, "the broker (without user and password) and its topics, whose messages start and stop recordings: mqtt://HOST/TOPIC,TOPIC; kafka, redis and amqp likewise"),
        _key("adaptor", Kind.PATH, "`[message-broker]` of the original's adaptor; relative to this file"),
        _key("sensors", Kind.PATH, "a file with the `id` of each `[sensorN]`, N the source; without it ids are numbers of sources"),
    ),
    short="uri",
    short_says="a URL",
    many=True,
    required="uri",
)  # fmt: skip

TOP_KEYS: dict[str, Key] = table(
    _key("analytics", Kind.PATH, "config file of nvdsanalytics: regions and lines to count at; relative to this file"),
    _key("keep-open", _FLAG, "go on without sources; more are added while it runs", False),
    _key("end-when-over", _FLAG, "with keep-open: end when the last source is over, all the same", False),
    _key("rest", _STRING, "HOST:PORT at which headrace run is driven over HTTP, as headrace serve is"),
    _key("errors-to", _STRING, "a broker (without user and password) that gets a message of each source that fails or is lost: mqtt://HOST/TOPIC"),
    _key("append", _FLAG, "empty no output of an earlier run: go on, or take the next number; with keep-open, always", False),
    _key("batch-size", _INT, "largest batch; without it, the number of sources", low=1, high=MAX_ITEMS),
    _key("frame-size", Kind.INTS, "width and height in pixels that every frame is scaled to before the models; without it, frames keep their size", low=2, high=16384, counts=(2,)),
    _key("frame-padding", _FLAG, "keep the aspect ratio, with black on the right or below; without it, frames are stretched", False),
    _key("rates-interval-s", _FLOAT, "seconds between two lines of frames per second, printed while it runs; 0: none", 0.0, low=0, high=86400),
    _key("sync-inputs", _FLAG, "a batch holds frames of the same time alone: times of files, and times of arrival of streams", False),
    _key("sync-wait-ms", _FLOAT, "with sync-inputs: how much longer than batch-timeout-ms frames of streams are waited for", 0.0, low=0, high=1e6),
    _key("batch-timeout-ms", _FLOAT, "how long a batch waits to fill up; -1: until it is full", 40.0, low=-1, high=1e9),
)  # fmt: skip
SECTIONS: dict[str, Section] = {
    s.name: s for s in (SOURCE, MODEL, TRACKER, TILER, OSD, SINK, CONSUMER)
}
PIPELINE_SECTIONS: tuple[str, ...] = (*SECTIONS, *TOP_KEYS)

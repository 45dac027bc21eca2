"""Pipelines as a chain of operations: `Flow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from headrace._core.errors import ConfigError
from headrace.gstreamer.servicemaker.buffers import (
    BufferProvider,
    BufferRetriever,
    Feeder,
    Receiver,
)
from headrace.gstreamer.servicemaker.description import SensorInfo, SourceConfig
from headrace.gstreamer.servicemaker.pipeline import Pipeline
from headrace.gstreamer.servicemaker.probes import Probe

if TYPE_CHECKING:
    from headrace.gstreamer.elements.bindings import Gst


_SIZE = {"width": 1920, "height": 1080}
_TILES = {"width": 1280, "height": 720}
_MUX_TIMEOUT_US = 33_000
_CONTAINERS = {".mp4": "mp4mux", ".mkv": "matroskamux", ".mov": "qtmux", ".h264": "", ".h265": ""}


class RenderMode(Enum):
    """Where images go."""

    DISPLAY = "display"
    DISCARD = "discard"
    STREAM = "stream"


@dataclass
class RecordConfig:
    """Settings of smart recording: `Pipeline.start_recording` writes files of a source's packets.

    Attributes:
        recording_type: `local`; `cloud` would wait for commands of a broker, and is refused.
        rec_cache: seconds before a start that are kept.
        rec_container: 0 MP4, 1 Matroska.
        rec_dir_path: folder of the files.
        rec_mode: accepted; video alone is recorded.
    """

    recording_type: str = "local"
    proto_lib: str | None = None
    conn_str: str | None = None
    msgconv_config_file: str | None = None
    proto_config_file: str | None = None
    topic_list: str | None = None
    rec_cache: int = 20
    rec_container: int = 0
    rec_dir_path: str = "."
    rec_mode: int = 0

    def properties(self) -> dict[str, object]:
        """Return the properties of sources.

        Raises:
            ConfigError: the type is not `local`.
        """
        if self.recording_type != "local":
            raise ConfigError(
                f"recordings of the type {self.recording_type!r} are not available",
                expected="local: the application starts them with Pipeline.start_recording",
            )
        return {
            "smart-record": 2, "smart-rec-cache": self.rec_cache,
            "smart-rec-container": self.rec_container, "smart-rec-mode": self.rec_mode,
            "smart-rec-dir-path": self.rec_dir_path,
        }  # fmt: skip


@dataclass
class SmartRecordConfig:
    """Settings of recordings that a broker's commands start, under the name of release 8."""

    proto_lib: str
    conn_str: str
    msgconv_config_file: str
    proto_config_file: str
    topic_list: str
    smart_rec_cache: int = 20
    smart_rec_container: int = 0
    smart_rec_dir_path: str = "."
    smart_rec_mode: int = 0

    def properties(self) -> dict[str, object]:
        """Refuse: no broker's commands are read.

        Raises:
            ConfigError: always.
        """
        return RecordConfig("cloud").properties()


class Flow:
    """Operations on the streams of a pipeline; each gives the flow behind it.

    Keyword arguments are properties of the operation's element, with `_` for `-`. An operation
    continues the flow that it is called on, too; behind `fork` each one starts a branch.

    Args:
        pipeline: that gets the elements.
        streams: names of elements that the flow starts from.
        parent: the flow before it.
    """

    def __init__(
        self, pipeline: Pipeline, streams: Sequence[str] = (), parent: Flow | None = None
    ) -> None:
        self._pipeline, self._streams, self._parent = pipeline, list(streams), parent
        self._batched: bool = parent._batched if parent else bool(streams)
        self._sources: int = parent._sources if parent else 1
        self._forked = False

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self._pipeline

    def _name(self, operation: str, part: str) -> str:
        number = 0
        while (name := f"{operation}-{part}-{number}") in self._pipeline:
            number += 1
        return name

    def _behind(self, streams: Sequence[str], *, batched: bool | None = None) -> Flow:
        flow = Flow(self._pipeline, streams, self)
        flow._batched = self._batched if batched is None else batched
        if not self._forked:
            self._streams, self._batched = list(streams), flow._batched
        return flow

    def _chain(self, operation: str, stream: str, *parts: tuple[str, Mapping[str, object]]) -> str:
        """Add elements in a row behind one; returns the last."""
        if self._forked:
            parts = (("queue", {}), *parts)
        for kind, properties in parts:
            name = self._name(operation, kind)
            self._pipeline.add(kind, name, properties)
            self._pipeline.link(stream, name)
            stream = name
        return stream

    def _one(self, operation: str) -> str:
        """The batched stream, multiplexed first if it is not."""
        if not self._streams:
            raise ConfigError(
                f"{operation} has no stream to work on",
                fix="batch_capture, capture or inject first",
            )
        if not self._batched:
            self.batch()
        return self._streams[0]

    def _step(self, operation: str, kind: str, **properties: object) -> Flow:
        return self._behind([self._chain(operation, self._one(operation), (kind, properties))])

    def batch_capture(
        self,
        inputs: str | Path | Sequence[str],
        record_config: RecordConfig | SmartRecordConfig | None = None,
        **options: object,
    ) -> Flow:
        """Open sources and batch their frames.

        Args:
            inputs: addresses or paths of videos; or the path of a YAML list of sources.
            record_config: lets `Pipeline.start_recording` record the sources.
            options: properties of the multiplexer and of the sources.

        Raises:
            ConfigError: a file cannot be read, an option is unknown, or a broker is to start
                recordings.
        """
        recording = {} if record_config is None else record_config.properties()
        config = SourceConfig("nvurisrcbin")
        if isinstance(inputs, str | Path):
            config.load(inputs)
        else:
            config.sensor_list = [SensorInfo(uri=_address(one)) for one in inputs]
        properties = _hyphened(options)
        if config.source_type == "nvmultiurisrcbin":
            sensors = config.sensor_list
            listed = {
                "uri-list": ",".join(one.uri for one in sensors),
                "sensor-id-list": ",".join(one.sensor_id for one in sensors),
                "sensor-name-list": ",".join(one.sensor_name for one in sensors),
            }
            name = self._name("batch_capture", "source")
            self._pipeline.add(
                config.source_type, name, config.source_properties | recording | listed | properties
            )
            for sensor in sensors:
                self._pipeline.name_sensor(sensor.sensor_id, name)
            self._sources = len(config.sensor_list)
            return self._behind([name], batched=True)
        mux = self._mux(
            "batch_capture", len(config.sensor_list), config.source_properties | properties
        )
        base = self._name("batch_capture", "source")
        for number, sensor in enumerate(config.sensor_list):
            name = f"{base}_{number}"
            self._pipeline.add(config.source_type, name, {"uri": sensor.uri} | recording)
            self._pipeline.name_sensor(sensor.sensor_id or name, name)
            self._pipeline[name].set_known(config.source_properties | properties)
            self._pipeline.link((name, mux), ("", "sink_%u"))
        return self._behind([mux], batched=True)

    def _mux(self, operation: str, count: int, properties: Mapping[str, object]) -> str:
        self._sources = count
        name = self._name(operation, "mux")
        defaults = _SIZE | {"batch-size": count, "batched-push-timeout": _MUX_TIMEOUT_US}
        self._pipeline.add("nvstreammux", name, defaults)
        self._pipeline[name].set_known(properties)
        return name

    def capture(self, inputs: Sequence[str], **options: object) -> Flow:
        """Open sources, a stream each."""
        names = []
        for one in inputs:
            names.append(self._name("capture", "source"))
            properties = {"uri": _address(one)} | _hyphened(options)
            self._pipeline.add("nvurisrcbin", names[-1], properties)
        return self._behind(names, batched=False)

    def inject(self, providers: Sequence[BufferProvider]) -> Flow:
        """Take images that the application makes, a stream for each provider."""
        names = []
        for provider in providers:
            memory = "(memory:NVMM)" if provider.device == "gpu" else ""
            caps = (
                f"video/x-raw{memory}, format={provider.format}, width={provider.width}, "
                f"height={provider.height}, framerate={provider.framerate}/1"
            )
            source = self._name("inject", "appsrc")
            self._pipeline.add("appsrc", source, {"caps": caps, "do-timestamp": True})
            self._pipeline.attach(source, Feeder(f"{source}-feeder", provider))
            nvmm = {"caps": "video/x-raw(memory:NVMM), format=NV12"}
            names.append(
                self._chain("inject", source, ("nvvideoconvert", {}), ("capsfilter", nvmm))
            )
        return self._behind(names, batched=False)

    def decode(self) -> Flow:
        """Decode streams that `inject` or another element gives as H.264, H.265 or JPEG."""
        names = [self._chain("decode", one, ("nvv4l2decoder", {})) for one in self._streams]
        return self._behind(names, batched=False)

    def batch(self, **options: object) -> Flow:
        """Batch the frames of all streams."""
        mux = self._mux("batch", len(self._streams), _hyphened(options))
        for stream in self._streams:
            self._pipeline.link((stream, mux), ("", "sink_%u"))
        return self._behind([mux], batched=True)

    def preprocess(self, config: str | Path, **options: object) -> Flow:
        """Prepare tensors with `nvdspreprocess`."""
        properties = {"config-file": str(config)} | _hyphened(options)
        return self._step("preprocess", "nvdspreprocess", **properties)

    def infer(self, config: str | Path, with_triton: bool = False, **options: object) -> Flow:
        """Run a model with `nvinfer`, or `nvinferserver` if `with_triton`."""
        properties = {"config-file-path": str(config)} | _hyphened(options)
        return self._step("infer", "nvinferserver" if with_triton else "nvinfer", **properties)

    def track(self, **options: object) -> Flow:
        """Follow objects with `nvtracker`."""
        return self._step("track", "nvtracker", **_hyphened(options))

    def analyze(self, config: str | Path, **options: object) -> Flow:
        """Count with `nvdsanalytics`."""
        properties = {"config-file": str(config)} | _hyphened(options)
        return self._step("analyze", "nvdsanalytics", **properties)

    def attach(
        self,
        what: Probe | str,
        name: str = "",
        tips: str = "",
        properties: Mapping[str, object] | None = None,
    ) -> Flow:
        """Attach a probe or a named operator to the last element; see `Pipeline.attach`."""
        for stream in self._streams:
            self._pipeline.attach(stream, what, name, tips, properties)
        return self._behind(self._streams)

    def fork(self) -> Flow:
        """Split the stream: each operation on the flow that comes back starts a branch."""
        flow = self._behind([self._chain("fork", self._one("fork"), ("tee", {}))])
        flow._forked = True
        return flow

    def publish(
        self,
        msg_broker_proto_lib: str,
        msg_broker_conn_str: str,
        topic: str,
        msg_conv_config: str | Path,
        **options: object,
    ) -> Flow:
        """Send events to a broker with `nvmsgconv` and `nvmsgbroker`."""
        broker: dict[str, object] = {
            "proto-lib": msg_broker_proto_lib,
            "conn-str": msg_broker_conn_str,
        }
        broker |= {"topic": topic} | _hyphened(options)
        parts = ("nvmsgconv", {"config": str(msg_conv_config)}), ("nvmsgbroker", broker)
        return self._behind([self._chain("publish", self._one("publish"), *parts)])

    def _tiled(self, options: dict[str, object]) -> list[tuple[str, Mapping[str, object]]]:
        """One image of the batch: tiles where there are several sources."""
        size = {key: options.pop(key) for key in _TILES if key in options}
        if self._sources < 2 and not size:
            return []
        return [("nvmultistreamtiler", _TILES | size)]

    def render(
        self, mode: RenderMode = RenderMode.DISPLAY, enable_osd: bool = True, **options: object
    ) -> Flow:
        """Show the images, or drop them.

        Args:
            mode: a display, nothing, or an RTSP server: `rtsp_port` (8554) and
                `rtsp_mount_point` (`/ds-test`).
            enable_osd: draw objects and figures first.
            options: `width` and `height` of the tiles; properties of the sink.

        Raises:
            ConfigError: an option is unknown.
        """
        stream, properties = self._one("render"), _hyphened(options)
        parts = self._tiled(properties)
        if enable_osd:
            parts.append(("nvosdbin", {}))
        if mode is RenderMode.STREAM:
            parts.append(("nvrtspoutsinkbin", properties))
        else:
            sink = "nveglglessink" if mode is RenderMode.DISPLAY else "fakesink"
            known = {"async-handling": "async"}
            parts.append((sink, {known.get(key, key): value for key, value in properties.items()}))
        return self._behind([self._chain("render", stream, *parts)])

    def encode(
        self,
        dest: str | Path,
        profile: object = None,
        use_sw_codec: object = True,
        **options: object,
    ) -> Flow:
        """Write a video; the ending of its name chooses the container.

        Args:
            dest: path, or address of a file: `.mp4`, `.mkv`, `.mov`, or bare `.h264`, `.h265`.
            profile: accepted.
            use_sw_codec: accepted; the processor encodes.
            options: `width` and `height` of the tiles; properties of the encoder.

        Raises:
            ConfigError: the ending is unknown, or an option.
        """
        text = str(dest)
        path = Path(unquote(urlsplit(text).path) if text.startswith("file:") else text)
        container = _CONTAINERS.get(path.suffix.lower())
        if container is None:
            raise ConfigError(
                f"a video cannot be written to {path.name!r}", expected=", ".join(_CONTAINERS)
            )
        stream, properties = self._one("encode"), _hyphened(options)
        codec = "h265" if path.suffix.lower() == ".h265" else "h264"
        parts = [
            *self._tiled(properties),
            ("nvvideoconvert", {}), (f"nvv4l2{codec}enc", properties), (f"{codec}parse", {}),
            *([(container, {})] if container else []),
            ("filesink", {"location": str(path)}),
        ]  # fmt: skip
        return self._behind([self._chain("encode", stream, *parts)])

    def retrieve(self, retriever: BufferRetriever, **options: object) -> Flow:
        """Hand the images to the application, as RGB."""
        rgb = {"caps": "video/x-raw(memory:NVMM), format=RGB"}
        sink = {"emit-signals": True, "sync": False} | _hyphened(options)
        name = self._chain(
            "retrieve", self._one("retrieve"),
            ("nvvideoconvert", {}), ("capsfilter", rgb), ("appsink", sink),
        )  # fmt: skip
        self._pipeline.attach(name, Receiver(f"{name}-receiver", retriever))
        return self._behind([name])

    def __call__(self, on_message: Callable[[Gst.Message], None] | None = None) -> None:
        """Start the pipeline and wait for its end; see `Pipeline.wait`."""
        self._pipeline.start(on_message).wait()


def _hyphened(options: Mapping[str, object]) -> dict[str, object]:
    return {key.replace("_", "-"): value for key, value in options.items()}


def _address(text: str | Path) -> str:
    """A path as an address; an address stays."""
    return str(text) if "://" in str(text) else Path(text).resolve().as_uri()

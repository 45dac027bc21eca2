"""One `nvinfer`: scale, infer, parse, threshold and cluster, attach."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria.errors import EngineError, GeometryError, ParserError
from noria.infer.attach import Attacher, Generation
from noria.infer.checks import label_notices, require_primary_detector, skipped_files
from noria.infer.cluster import Clusterer
from noria.infer.geometry import ScaleTransform
from noria.infer.labels import Labels, load_labels
from noria.infer.parser_choice import ParserChoice, choose_bbox_parser, require_grid_outputs
from noria.infer.parsers import parse_coverage_bbox
from noria.infer.preprocess import Preprocessor
from noria.media.frame import Frame
from noria.meta import DetectionParams, Detections, FrameMeta, Layer, NetworkInfo
from noria.notices import Notice, note_once

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.engine.session import Session

__all__ = ["Inferencer", "Prepared", "StageTimes", "usable_cores"]


_MAX_PARSE_ERRORS = 5  # different ones that are told; a message may hold a value of each frame


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class StageTimes:
    """Seconds spent in each stage so far; the engine's own time is `infer_s`."""

    preprocess_s: float = 0.0
    infer_s: float = 0.0
    parse_s: float = 0.0
    cluster_s: float = 0.0
    attach_s: float = 0.0


@dataclass(slots=True)
class Prepared:
    """Frames of one engine batch with their network input, ready to run."""

    frames: Sequence[Frame]
    tensor: npt.NDArray[np.float32]
    transforms: list[ScaleTransform | None] = field(default_factory=list)


class Inferencer:
    """Runs one detector config on frames and returns their metadata.

    `prepare`, `run` and `finish` are the stages of `infer`. Calls of `prepare` must not overlap
    each other, nor those of `finish`; different stages of different batches may, and `submit` runs
    up to `streams` batches at once. No thread is started before the first `submit`.

    Attributes:
        config: the model configuration.
        network: size of the network input in pixels.
        labels: names of the classes.
        parser: where the parser comes from.
        streams: batches that `submit` runs at once.
        engine_path: the saved engine that runs; None if it could not be saved.
        times: seconds per stage.
    """

    def __init__(
        self,
        config: ModelConfig,
        session: Session,
        *,
        network: NetworkInfo,
        parser: ParserChoice,
        preprocessor: Preprocessor,
        labels: Sequence[str] = (),
        generation: Generation = "9.1",
        notices: Sequence[Notice] = (),
        streams: int = 1,
        engine_path: Path | None = None,
    ) -> None:
        self.config = config
        self.session = session
        self.network = network
        self.parser = parser
        self._notices: list[Notice] = [*notices, *parser.notices]
        self.labels = tuple(labels)
        self.times = StageTimes()
        self.streams = streams
        self.engine_path = engine_path
        self._workers: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self.failed_frames = 0
        self._preprocessor = preprocessor
        self._input = session.inputs[0].name
        self._nhwc = config.network_input_order.name == "NHWC"
        self._clusterer = Clusterer(config)
        self._attacher = Attacher(config, labels, generation=generation)
        per_class = config.per_class
        self._params = DetectionParams(
            config.num_detected_classes,
            np.array([c.pre_cluster_threshold for c in per_class], np.float32),
            np.array([c.post_cluster_threshold for c in per_class], np.float32),
            self.labels,
        )
        self._buffers = 0
        self._unjudged = True
        self._parse_errors: set[str] = set()

    @classmethod
    def from_config(
        cls,
        config: ModelConfig | str | Path,
        *,
        threads: int | None = None,
        streams: int = 1,
        abi: str | None = None,
        rebuild: bool = False,
        generation: Generation = "9.1",
    ) -> Inferencer:
        """Build or load the engine of a config and get everything ready.

        Args:
            config: a loaded config, or the path of an INI or YAML nvinfer config.
            threads: CPU threads of the engine; None is one per core.
            streams: batches that `submit` runs at once, sharing the threads. Two batches on one
                thread each finish sooner than one after the other on two.
            abi: box layout of a C++ parser, `auto`, `24` or `28` bytes; None takes the config's.
            rebuild: build the engine even if a valid one is saved.
            generation: `9.1` or `6.2`, whose rules for boxes outside the frame apply.

        Raises:
            ConfigError, ModelError, EngineError, CustomLibraryError: whatever is wrong, before
                the first frame.
        """
        from noria.config import ModelConfig
        from noria.engine import load_or_build, network_dims

        cfg = config if isinstance(config, ModelConfig) else ModelConfig.load(config)
        require_primary_detector(cfg)
        cfg.check_files(skip=skipped_files(cfg))
        labels = load_labels(cfg.labelfile_path) if cfg.labelfile_path else Labels(())
        notices = [*cfg.notices, *labels.notices]
        if cfg.labelfile_path:
            notices += label_notices(cfg, len(labels))
        choice = choose_bbox_parser(cfg, abi=abi)
        if streams > 1:
            threads = max(1, (threads or usable_cores()) // streams)
        plan = load_or_build(cfg, threads=threads, rebuild=rebuild)
        session = plan.open_session(threads=threads)
        channels, height, width = network_dims(session.inputs[0], cfg)
        if choice.parser is parse_coverage_bbox:
            require_grid_outputs(cfg, session.outputs)
        preprocessor = Preprocessor.from_config(cfg, width, height, channels)
        return cls(
            cfg,
            session,
            network=NetworkInfo(width, height, channels),
            parser=choice,
            preprocessor=preprocessor,
            labels=labels.detector,
            generation=generation,
            notices=[*notices, *plan.decisions, *preprocessor.notices],
            streams=streams,
            engine_path=plan.path,
        )

    @property
    def notices(self) -> list[Notice]:
        """Everything decided so far, the custom library's and its parser's decisions included."""
        library = self.parser.library
        late = [] if library is None else library.decisions
        return [*self._notices, *late, *getattr(self.parser.parser, "notices", ())]

    def process(self, frames: Sequence[Frame]) -> list[FrameMeta]:
        """One muxed buffer: `interval` counts it, `batch-size` splits it. Source: spec D.1, D.2."""
        if not self.next_buffer_is_inferred():
            return [self.skip(f) for f in frames]
        metas: list[FrameMeta] = []
        step = self.config.batch_size
        for start in range(0, len(frames), step):
            metas += self.infer(frames[start : start + step])
        return metas

    def next_buffer_is_inferred(self) -> bool:
        """Advance the interval counter: True for the first buffer and every (interval+1)-th."""
        infer = self._buffers % (self.config.interval + 1) == 0
        self._buffers += 1
        return infer

    def infer(self, frames: Sequence[Frame]) -> list[FrameMeta]:
        """Infer at most `batch-size` frames, whatever `interval` says."""
        prepared = self.prepare(frames)
        return self.finish(prepared, self.run(prepared))

    def skip(self, frame: Frame) -> FrameMeta:
        """The metadata of a frame that is not inferred."""
        return _meta(frame)

    def prepare(self, frames: Sequence[Frame]) -> Prepared:
        """Scale frames into a network input tensor of their number."""
        start = perf_counter()
        net = self.network
        item = (
            (net.height, net.width, net.channels)
            if self._nhwc
            else (net.channels, net.height, net.width)
        )
        try:
            tensor = np.empty((len(frames), *item), np.float32)
        except MemoryError as error:
            raise EngineError(
                f"there is no memory for {len(frames)} input(s) of {net.width}x{net.height} pixels",
                where=str(self.config.path),
                fix="a smaller infer-dims or batch-size needs less",
            ) from error
        prepared = Prepared(frames, tensor)
        for row, frame in zip(prepared.tensor, frames, strict=True):
            try:
                prepared.transforms.append(self._preprocessor(frame, row))
            except GeometryError as error:
                row.fill(0)
                prepared.transforms.append(None)
                text = f"{error.found}: nothing is inferred on such frames"
                note_once(self._notices, "warning", text)
        self.times.preprocess_s += perf_counter() - start
        return prepared

    def run(self, prepared: Prepared) -> dict[str, npt.NDArray[Any]]:
        """Run the engine on one prepared batch. May be called from several threads at once."""
        start = perf_counter()
        outputs = self.session.run({self._input: prepared.tensor})
        with self._lock:
            self.times.infer_s += perf_counter() - start
        return outputs

    def submit(self, prepared: Prepared) -> Future[dict[str, npt.NDArray[Any]]]:
        """`run` in one of `streams` threads, without waiting."""
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self.streams, thread_name_prefix="noria-engine")
        return self._workers.submit(self.run, prepared)

    def finish(self, prepared: Prepared, outputs: dict[str, npt.NDArray[Any]]) -> list[FrameMeta]:
        """Parse, cluster and attach: the metadata of each frame, in order."""
        metas = []
        for i, (frame, transform) in enumerate(
            zip(prepared.frames, prepared.transforms, strict=True)
        ):
            meta = _meta(frame)
            metas.append(meta)
            if transform is None:
                continue
            t0 = perf_counter()
            layers = {
                name: Layer(name, data[i] if data.ndim > 1 else data[i : i + 1])
                for name, data in outputs.items()
            }
            detections = self._parse(layers, frame)
            t1 = perf_counter()
            kept = self._clusterer(detections).detections
            t2 = perf_counter()
            self._attacher(kept, transform, meta)
            t3 = perf_counter()
            self.times.parse_s += t1 - t0
            self.times.cluster_s += t2 - t1
            self.times.attach_s += t3 - t2
        return metas

    def _parse(self, layers: dict[str, Layer], frame: Frame) -> Detections:
        """A parser that fails costs this frame its objects, never the stream. Source: spec D.6."""
        try:
            found = self.parser.parser(layers, self.network, self._params)
            if self._unjudged and len(found):
                self._judge_scale(found)
            return found
        except ParserError as error:
            self.failed_frames += 1
            if len(self._parse_errors) < _MAX_PARSE_ERRORS and str(error) not in self._parse_errors:
                self._parse_errors.add(str(error))
                text = f"{error}\n  first in frame {frame.frame} of {frame.source}"
                text += "; frames whose outputs cannot be parsed have no objects"
                note_once(self._notices, "warning", text)
            return Detections.empty()

    def _judge_scale(self, found: Detections) -> None:
        """Say once if the first boxes a parser finds look like 0..1 instead of network pixels."""
        self._unjudged = False
        if self.network.width > 8 and float(np.abs(found.boxes).max()) <= 1.5:
            text = f"all boxes lie within {found.boxes.min():.3g} and {found.boxes.max():.3g}"
            text += f": parsers return pixels of the {self.network.width}x{self.network.height}"
            text += " network input, so multiply boxes in 0..1 by its size"
            note_once(self._notices, "warning", text, self.parser.source)

    def close(self) -> None:
        """Release the engine; batches under way finish first."""
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
            self._workers = None
        self.session.close()

    def __enter__(self) -> Inferencer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        net = self.network
        return (
            f"Inferencer({self.config.path.name}, {net.width}x{net.height}x{net.channels}, "
            f"batch {self.config.batch_size}, parser {self.parser.source})"
        )


def _meta(frame: Frame) -> FrameMeta:
    return FrameMeta(
        frame.source, frame.source_id, frame.frame, frame.pts_ns, frame.width, frame.height
    )

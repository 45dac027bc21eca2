"""Set-ups tried on the frames at hand, in memory: the engine runs once for each distinct input."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.config.profile import with_profile
from headrace.engine.device import CPU, choose_device
from headrace.engine.session import Session
from headrace.infer.inferencer import Inferencer
from headrace.infer.loaded_model import Model
from headrace.infer.losses import InferenceLosses
from headrace.infer.model import load_or_build
from headrace.infer.parsers.head import per_item
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.meta import Layer, NetworkInfo
from headrace.meta.layers import layers_of

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config import ModelConfig
    from headrace.engine.backends import Runner
    from headrace.engine.backends.protocol import DLPackTensor
    from headrace.engine.plan import Plan
    from headrace.infer.parsers.head import LayerLike
    from headrace.meta import FrameMeta
    from headrace.network.tensor_spec import TensorSpec

_Key = tuple[tuple[str, str, tuple[int, ...], str], ...]

_MOST_BYTES = 1 << 29
"""Of outputs that are kept; the oldest go first."""

_NOT_THE_ENGINES = frozenset((
    "gie_unique_id", "process_mode", "interval", "network_type", "profile", "model_color_format",
    "net_scale_factor", "offsets", "mean_file", "maintain_aspect_ratio", "symmetric_padding",
    "scaling_filter", "scaling_compute_hw", "input_tensor_from_meta", "labelfile_path",
    "num_detected_classes", "parse_bbox_func_name", "parse_bbox_instance_mask_func_name",
    "parse_classifier_func_name", "parse_segmentation_func_name", "cluster_mode",
    "filter_out_class_ids", "crop_objects_to_roi_boundary", "rotated_boxes", "mask_content",
    "keypoint_skeleton", "output_instance_mask", "classifier_threshold", "classifier_async_mode",
    "classifier_type", "segmentation_threshold", "segmentation_output_order", "operate_on_gie_id",
    "operate_on_class_ids", "input_object_min_width", "input_object_min_height",
    "input_object_max_width", "input_object_max_height", "secondary_reinfer_interval",
    "output_tensor_meta", "stabilize_buffer_count", "all_classes", "classes", "warmup_engine",
))  # fmt: skip
"""Fields of a config that its engine does not depend on."""


class _KeepingRunner:
    """A runner that computes the outputs of each distinct input once.

    Args:
        runner: computes them; it stays open.
    """

    def __init__(self, runner: Runner) -> None:
        self.inputs: tuple[TensorSpec, ...] = runner.inputs
        self.outputs: tuple[TensorSpec, ...] = runner.outputs
        self.device = "cpu"  # outputs are kept on the host
        self.runs = 0
        self._runner = runner
        self._kept: OrderedDict[_Key, list[Array]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> Sequence[Any]:
        """Run as the runner does; a parser may write into the arrays that come back."""
        arrays = {name: np.ascontiguousarray(tensor) for name, tensor in feeds.items()}
        key = tuple((n, a.dtype.str, a.shape, sha256_of(a.data)) for n, a in arrays.items())
        with self._lock:
            outputs = self._kept.get(key)
        if outputs is None:
            outputs = [np.array(output) for output in self._runner.run(feeds)]
            with self._lock:
                self.runs += 1
                self._kept[key] = outputs
                self._bytes += sum(array.nbytes for array in outputs)
                while self._bytes > _MOST_BYTES and len(self._kept) > 1:
                    _, oldest = self._kept.popitem(last=False)
                    self._bytes -= sum(array.nbytes for array in oldest)
        return [array.copy() for array in outputs]

    @property
    def layers(self) -> list[Layer]:
        """Outputs of the first item of the last run; empty before the first."""
        outputs = next(reversed(self._kept.values()), None)
        if outputs is None:
            return []
        named = {spec.name: array for spec, array in zip(self.outputs, outputs, strict=True)}
        return list(layers_of(named, 0).values())

    def close(self) -> None:
        """Nothing: the next set-up uses the runner again."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that is open for all set-ups that it serves.

    Attributes:
        plan: what it was opened from.
        session: its inputs and outputs.
        runner: computes each distinct input once.
    """

    plan: Plan
    session: Session
    runner: _KeepingRunner

    @property
    def layers(self) -> Sequence[LayerLike]:
        """Outputs of one item, as the last run gave them or the model declares them."""
        return self.runner.layers or [per_item(spec) for spec in self.session.outputs]


@dataclass(frozen=True, slots=True, eq=False)
class SetupRun:
    """The results of one set-up on the frames.

    Attributes:
        config: the set-up.
        metas: of each frame, with its objects in frame pixels.
        blanks: the same of images that show nothing.
        findings: warnings on the config, while opening, and of the plausibility watch.
        losses: boxes left out, by filter.
        labels: names of a detector's classes.
        network: size of the network input; None if it does not run.
        moving: frames with numbers in a row show one scene.
        error: why it does not run, or None; then there is no result.
    """

    config: ModelConfig
    metas: tuple[FrameMeta, ...] = ()
    blanks: tuple[FrameMeta, ...] = ()
    findings: tuple[Finding, ...] = ()
    losses: InferenceLosses = field(default_factory=InferenceLosses)
    labels: tuple[str, ...] = ()
    network: NetworkInfo | None = None
    moving: bool = False
    error: HeadraceError | None = None


class SetupRuns:
    """Tries configs of one model on the same frames. Nothing is saved.

        with SetupRuns(frames) as runs:
            before = runs.run(cfg)
            after = runs.run(cfg.with_overrides(model_color_format=1))

    Configs that differ in scaling, parser, classes, thresholds or clustering share an engine.

    Args:
        frames: what they are tried on, in order.
        options: of the run; `device` is where engines run, `streams` counts for nothing.
        moving: they are of a video: those with numbers in a row show one scene.
    """

    def __init__(
        self,
        frames: Sequence[Frame],
        options: RunOptions | None = None,
        *,
        moving: bool = False,
    ) -> None:
        self._moving = moving
        self.frames = tuple(frames)
        self._options = replace(options or RunOptions(), streams=1, rebuild=False)
        self._engines: dict[tuple[Any, ...], Engine] = {}
        self._blanks: tuple[Frame, ...] | None = None

    @property
    def engine_runs(self) -> int:
        """Runs of the engines so far; repeated inputs are no run."""
        return sum(engine.runner.runs for engine in self._engines.values())

    def run(self, cfg: ModelConfig, *, thorough: bool = False, blanks: bool = False) -> SetupRun:
        """Try one config; an error of any step is the `error` of the result.

        Args:
            cfg: of the model; `interval` and the like count as in a run.
            thorough: let the plausibility watch try other readings, as at the end of a run.
            blanks: run on images that show nothing, too.
        """
        with np.errstate(all="ignore"):  # wild numbers of a wrong set-up are no news
            return self._run(cfg, thorough, blanks)

    def _run(self, cfg: ModelConfig, thorough: bool, blanks: bool) -> SetupRun:
        model = None
        try:
            model = self._open(self._options.over(cfg))
            metas = tuple(meta for frame in self.frames for meta in model.process([frame]))
            if thorough:
                model.conclude()
            notices, losses = model.notices, model.losses
            model.model.watch = None  # what follows is no image of the user's
            empty = self._of_blanks(model) if blanks else ()
            findings = tuple(n for n in dict.fromkeys(notices) if n.level != "info")
            labels, network = model.labels, model.network
            return SetupRun(
                model.config, metas, empty, findings, losses, labels, network, self._moving
            )
        except HeadraceError as error:
            findings = tuple(n for n in error.notices if n.level != "info")
            return SetupRun(cfg, findings=findings, error=error)
        finally:
            if model is not None:
                model.close()

    def engine(self, cfg: ModelConfig) -> Engine:
        """Open the engine of a config, or take that of another which it is the same for.

        Raises:
            HeadraceError: it cannot be built.
        """
        cfg = with_profile(self._options.over(cfg))
        key = tuple(getattr(cfg, n) for n in cfg.FIELDS if n not in _NOT_THE_ENGINES)
        engine = self._engines.get(key)
        if engine is None:
            device = choose_device(self._options.device, cfg.gpu_id)
            engine = self._engines[key] = self._opened(cfg, device.kind)
        return engine

    def close(self) -> None:
        """Close the engines."""
        for engine in self._engines.values():
            engine.session.close()
        self._engines.clear()

    def __enter__(self) -> SetupRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, cfg: ModelConfig) -> Inferencer:
        engine = self.engine(cfg)
        session = Session(
            engine.runner, engine.plan.header, where=str(cfg.path), options=engine.session.options
        )
        record = Record()
        model = Model.around(cfg, session, self._options, record, CPU)
        model.notices += [n for n in engine.plan.decisions if n not in model.notices]
        return Inferencer(model, record, options=self._options)

    def _opened(self, cfg: ModelConfig, device: str | None) -> Engine:
        threads = self._options.threads
        plan = load_or_build(cfg, threads=threads, streams=1, save=False, device=device)
        session = plan.open_session(threads=threads, streams=1)
        return Engine(plan, session, _KeepingRunner(session.runner))

    def _of_blanks(self, model: Inferencer) -> tuple[FrameMeta, ...]:
        if self._blanks is None:
            self._blanks = blank_frames(self.frames[0])
        return tuple(model(frame) for frame in self._blanks)


def blank_frames(frame: Frame) -> tuple[Frame, ...]:
    """Images that show nothing, of a frame's size, RGB: plain grey, a ramp, noise."""
    height, width = frame.height, frame.width
    ramp = np.broadcast_to(np.linspace(0, 255, width)[None, :, None], (height, width, 3))
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3))
    images = (np.full((height, width, 3), 114), ramp, noise)
    planes = [np.ascontiguousarray(image.astype(np.uint8)) for image in images]
    return tuple(
        Frame((plane,), PixelFormat.RGB, width, height, frame=index, source="blank")
        for index, plane in enumerate(planes)
    )

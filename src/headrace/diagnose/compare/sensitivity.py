"""Which layers lose most in INT8, and how many must stay FP32 for a loss that can be borne."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.config.enums import NetworkType, ProcessMode
from headrace.diagnose.calibrate.scales import select_frames, selected_frames
from headrace.diagnose.evaluate.average_precision import average_precision
from headrace.diagnose.evaluate.box_matching import Scored, Truth, agreement
from headrace.diagnose.evaluate.truth import read_truth, scored
from headrace.engine.backends import DEFAULT_BACKEND, get_backend
from headrace.engine.builder import BuildOptions, build
from headrace.engine.input_shapes import complete_infer_dims
from headrace.engine.precision.capability import unsigned_int8, weight_bits
from headrace.engine.precision.explicit import Variants
from headrace.infer.model.image_input import axis_order, network_dims
from headrace.infer.model.network_source import source_with_plugins
from headrace.infer.preprocess import Preprocessor

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.engine.session import Session
    from headrace.media.frame import Frame
    from headrace.network.network import Network

DEFAULT_LOSS = {True: 1.0, False: 5.0}
"""Points of mAP50-95 with truths; points of agreement without."""

_NOISE_FRAMES = 6
_HELD_BYTES = 256 << 20  # of decoded images
Outputs = list[dict[str, Array]]


def decibels(noise: float) -> float:
    """Express a squared error by variance as signal to noise; 300 for none."""
    return -10 * math.log10(max(noise, 1e-30))


@dataclass(frozen=True, slots=True)
class LayerNoise:
    """Effect of one layer alone in INT8 on the model's outputs.

    Attributes:
        noise: mean over the channels of the worst output: squared error by variance.
    """

    name: str
    operator: str
    noise: float

    @property
    def decibels(self) -> float:
        """Signal to noise."""
        return decibels(self.noise)


@dataclass(frozen=True, slots=True)
class Step:
    """How good the model is with so many of the worst layers in FP32; in points, 0 to 100."""

    kept: int
    quality: float


@dataclass(slots=True)
class SensitivityReport:
    """Result of the measurements.

    Attributes:
        layers: worst first.
        measure: `mAP50-95`, or `agreement`: FP32 boxes of at least 0.5 that INT8 finds at IoU 0.8.
        reference: of FP32, in points; None where no quality can be measured.
        steps: what was tried.
        kept: layers to keep in FP32, worst first.
        reached: whether the loss is at most what was asked for.
    """

    layers: list[LayerNoise]
    measure: str = ""
    reference: float | None = None
    steps: list[Step] = field(default_factory=list)
    kept: tuple[str, ...] = ()
    reached: bool = True
    notices: list[Finding] = field(default_factory=list)

    @property
    def line(self) -> str:
        """Line for the config; empty if all layers may compute in INT8."""
        if not self.kept:
            return ""
        return "layer-device-precision=" + ";".join(f"{name}:fp32:gpu" for name in self.kept)


def sensitivity(
    cfg: ModelConfig,
    sources: Sequence[str],
    scales: Mapping[str, float],
    *,
    frames: int = 100,
    truth: Path | None = None,
    max_loss: float | None = None,
    threads: int | None = None,
    backend: str | None = None,
    on_stage: Callable[[str, int | None], None] | None = None,
    on_step: Callable[[], None] | None = None,
) -> SensitivityReport:
    """Measure each layer, then keep the worst in FP32 until the loss is small enough.

    Args:
        cfg: the model and its parser.
        sources: images and videos to try it on; with `truth` the folder of its images.
        scales: of a calibration table.
        frames: how many to judge by.
        truth: COCO JSON with boxes in the images; without, FP32 is the truth.
        max_loss: points that may be lost; 1 of mAP50-95, or 5 of agreement without a truth.
        threads: CPU threads of the engine.
        backend: the runtime to measure on: INT8 weights are those it gets on this machine.
        on_stage: called with the work that begins, and its number of steps.
        on_step: called after each step.

    Raises:
        ConfigError, ModelError, EngineError, CustomLibraryError: the model cannot be used.
        MediaError: the images or the truth cannot be read.
    """
    say, tick = on_stage or (lambda text, total: None), on_step or (lambda: None)
    source = source_with_plugins(cfg, [])
    if source is None:
        raise ConfigError("the config names no model that can be read", where=str(cfg.path))
    cfg = cfg.with_overrides(interval=0, batch_size=1)
    network = source.network()
    runtime = backend or DEFAULT_BACKEND
    get_backend(runtime)  # unknown, or not installed: refused before anything else
    bits, unsigned = weight_bits(runtime), unsigned_int8(runtime)
    variants = Variants(network, scales, weight_bits=bits, unsigned=unsigned)
    bench = Bench(cfg, sources, frames, truth, threads, runtime)
    say("measuring layers", len(variants.layers))
    clean = bench.outputs(network)
    everything = set(variants.layers)
    layers = []
    for name, operator in variants.layers.items():
        outputs = bench.outputs(variants.network(everything - {name}))
        layers.append(LayerNoise(name, operator, _noise(clean, outputs)))
        tick()
    layers.sort(key=lambda layer: -layer.noise)
    report = SensitivityReport(layers, notices=bench.notices)
    if not bench.can_judge:
        text = "a loss is measured for detectors on whole frames only: layers are ranked"
        report.notices.append(Finding("loss-not-measured", "info", text, str(cfg.path)))
        return report
    report.measure = "mAP50-95" if truth else "agreement"
    bound = DEFAULT_LOSS[truth is not None] if max_loss is None else max_loss
    say("judging FP32", None)
    report.reference = bench.judge(network)
    if math.isnan(report.reference):
        raise MediaError(
            "FP32 finds no box of 0.5 or more" if truth is None else "the truth has no boxes",
            where=", ".join(sources),
            fix="give images with objects",
        )
    for kept in growing(len(layers)):
        say(f"judging with {kept} layers in FP32", None)
        report.kept = tuple(layer.name for layer in layers[:kept])
        quality = bench.judge(variants.network(report.kept))
        report.steps.append(Step(kept, quality))
        report.reached = report.reference - quality <= bound + 1e-9
        if report.reached:
            break
    return report


def growing(count: int) -> Iterator[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, 24 … and last all."""
    yield 0
    step = 1
    while step < count:
        yield step
        if step >= 2 and step * 3 // 2 < count:
            yield step * 3 // 2
        step *= 2
    yield count


def _noise(clean: Outputs, other: Outputs) -> float:
    """Squared error by variance, per channel: scores count as much as coordinates."""
    worst = 0.0
    for name in clean[0]:
        a = np.concatenate([_by_channel(run[name]) for run in clean]).astype(np.float64)
        b = np.concatenate([_by_channel(run[name]) for run in other]).astype(np.float64)
        spread = a.var(axis=0)
        moving = spread > 1e-10
        if moving.any():
            error = np.square(a - b).mean(axis=0)
            worst = max(worst, float((error[moving] / spread[moving]).mean()))
    return worst


def _by_channel(values: Array) -> Array:
    """(rows, channels): maps have their channels in axis 1, lists of boxes in the last."""
    axis = 1 if values.ndim >= 4 else values.ndim - 1
    moved = np.moveaxis(values, axis, -1)
    return moved.reshape(-1, moved.shape[-1])


class Bench:
    """Runs variants of a model on the same images.

    Attributes:
        chosen: the images.
        can_judge: True for detectors on whole frames.
        notices: about the images.
    """

    def __init__(
        self,
        cfg: ModelConfig,
        sources: Sequence[str],
        frames: int,
        truth: Path | None,
        threads: int | None,
        runtime: str,
    ) -> None:
        self.cfg, self.threads, self.runtime = cfg, threads, runtime
        self.notices: list[Finding] = []
        self.can_judge = (
            cfg.network_type is NetworkType.DETECTOR and cfg.process_mode is ProcessMode.PRIMARY
        )
        self.truths: list[Truth] = []
        if truth is not None:
            self.chosen, self.truths, self.notices = read_truth(truth, sources, cfg, frames)
        else:
            self.chosen, self.notices = select_frames(sources, frames)
        self._held: dict[int, Frame] = {}
        self._holds_all = False
        self._reference: list[Scored] | None = None
        self._images: list[npt.NDArray[np.float32]] = []

    @property
    def total(self) -> int:
        """How many images there are."""
        return sum(item.frames for item in self.chosen)

    def frames(self, indices: Collection[int] | None = None) -> Iterator[tuple[int, Frame]]:
        """The images with their numbers: all, or those of `indices`.

        A few are kept decoded: ranking layers shows the same ones to each variant.

        Raises:
            MediaError: a source cannot be read.
        """
        held = self._held
        if (indices is None and self._holds_all) or (
            indices is not None and held.keys() >= set(indices)
        ):
            yield from ((i, held[i]) for i in sorted(held) if indices is None or i in indices)
            return
        held.clear()
        self._holds_all = False
        room, last = _HELD_BYTES, max(indices, default=-1) if indices is not None else None
        for number, frame in enumerate(selected_frames(self.chosen)):
            if indices is None or number in indices:
                size = sum(plane.nbytes for plane in frame.planes)
                if size <= room:
                    held[number] = frame
                room -= size
                yield number, frame
            if number == last:
                break
        self._holds_all = indices is None and room >= 0

    def session(self, network: Network) -> Session:
        """Build a network for the config, and open it."""
        options = BuildOptions(
            infer_dims=complete_infer_dims(self.cfg.infer_dims),
            input_order=axis_order(self.cfg),
            threads=self.threads,
            runtime=self.runtime,
        )
        return build(network, options).open_session(threads=self.threads)

    def outputs(self, network: Network) -> Outputs:
        """All outputs for a few images."""
        session = self.session(network)
        try:
            if not self._images:
                self._images = self._prepared(session)
            name = session.inputs[0].name
            return [session.run({name: image}) for image in self._images]
        finally:
            session.close()

    def _prepared(self, session: Session) -> list[npt.NDArray[np.float32]]:
        channels, height, width = network_dims(session.inputs[0], self.cfg)
        show = Preprocessor.from_config(self.cfg, width, height, channels)
        total = sum(item.frames for item in self.chosen)
        every = max(1, total // _NOISE_FRAMES)
        batches: list[npt.NDArray[np.float32]] = []
        for index, frame in self.frames():
            if index % every == 0 and len(batches) < _NOISE_FRAMES:
                batch = show.empty(1)
                show(frame, batch[0])
                batches.append(batch)
        if not batches:
            raise MediaError("no frame could be read", where=str(self.cfg.path))
        return batches

    def judge(self, network: Network) -> float:
        """Quality in points; the first network that is judged is the reference."""
        frames = (frame for _, frame in self.frames())
        detections = scored(self.cfg, self.session(network), frames, threads=self.threads)
        if len(detections) < len(self.truths):
            text = f"{len(detections)} frames for {len(self.truths)} images of the truth"
            raise MediaError(text, where=self.chosen[0].name)
        if self.truths:
            return 100 * average_precision(self.truths, detections)
        if self._reference is None:
            self._reference = detections
        return 100 * agreement(self._reference, detections)

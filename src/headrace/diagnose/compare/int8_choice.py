"""Which layers INT8 may have so that the boxes stay, and how many stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from headrace._core.errors import ConfigError
from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.config.enums import ClusterMode
from headrace.diagnose.calibrate.scales import image_shape
from headrace.diagnose.compare.int8_agreement import Judge, moved, with_thresholds
from headrace.diagnose.compare.sensitivity import Bench, decibels
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.diagnose.evaluate.truth import scored
from headrace.engine.backends import DEFAULT_BACKEND, get_backend, installed_backends
from headrace.engine.precision.capability import own_zeros, unsigned_int8, weight_bits
from headrace.engine.precision.choice import ENOUGH, Int8Choice, OutputSignal
from headrace.engine.precision.collect import ActivationRunner
from headrace.engine.precision.explicit import Variants
from headrace.engine.precision.prepare import Proto, fold_batch_norms, prepare
from headrace.engine.precision.qdq import MIN_OPSET, WEIGHTED
from headrace.engine.precision.ranges import Channels, choose_ranges, sample_places
from headrace.infer.model.image_input import network_dims
from headrace.infer.model.network_source import source_with_plugins
from headrace.infer.preprocess import Preprocessor

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.engine.precision.cache import CalibrationTable
    from headrace.media.frame import Frame
    from headrace.network.network import Network

AIM = 0.97
"""Share of boxes that is looked for: images that were not seen keep fewer."""

_MOST = 0.18
"""Share of the layers that are FP32 where that keeps enough boxes."""

_RANKED_ON = 24  # images
_RANGES_FROM = 24  # images with objects, and a third as many of the others
_PLACES = 240  # of an image, whose values ranges are chosen for
_MOST_VALUES = 2**26  # of all activations together: 256 MiB
_FAINT = 0.25  # of the threshold: boxes that move there count as well
_STEPS = (0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)


@dataclass(slots=True)
class ChosenInt8:
    """Result of the search.

    Attributes:
        choice: to be saved beside the table.
        layers: how many can compute in INT8.
        notices: what is worth knowing.
    """

    choice: Int8Choice
    layers: int
    notices: list[Finding] = field(default_factory=list)


def choose_int8(
    cfg: ModelConfig,
    sources: Sequence[str],
    table: CalibrationTable,
    *,
    frames: int,
    threads: int | None = None,
    on_stage: Callable[[str, int | None], None] | None = None,
    on_step: Callable[[], None] | None = None,
) -> ChosenInt8:
    """Choose ranges and the layers to keep in FP32, and measure the agreement of INT8 with FP32.

    Layers are ranked by what each alone in INT8 does to the boxes, faint ones included; the worst
    are kept until INT8 and FP32 agree on 97 % of the boxes (see `_Search.run`).

    Args:
        cfg: the model and its parser.
        sources: images and videos, those of the table.
        table: scales of the activations.
        frames: how many to judge by.
        threads: CPU threads of the engine.
        on_stage: called with the work that begins, and its number of steps.
        on_step: called after each step.

    Raises:
        ConfigError, ModelError, EngineError, CustomLibraryError: the model cannot be used.
        MediaError: the images cannot be read.
    """
    say, tick = on_stage or (lambda text, total: None), on_step or (lambda: None)
    source = source_with_plugins(cfg, [])
    if source is None:
        raise ConfigError("the config names no model that can be read", where=str(cfg.path))
    cfg = cfg.with_overrides(interval=0, batch_size=1)
    network, runtime = source.network(), DEFAULT_BACKEND
    get_backend(runtime)
    bench = Bench(cfg, sources, frames, None, threads, runtime)
    judge = Judge.of(cfg)
    reference: list[Scored] = []
    if bench.can_judge:
        say("finding FP32's boxes", bench.total)
        reference = _found(bench, judge.cfg, network, tick=tick)
    say("looking at channels", None)
    proto = prepare(network.to_proto(), opset=MIN_OPSET)
    fold_batch_norms(proto)
    # the table is for every runtime of this machine, so the coarsest weights are judged
    bits: Literal[7, 8] = 7 if any(weight_bits(r) == 7 for r in installed_backends()) else 8
    seen = _channels(network, proto, bench, reference)
    tensors = choose_ranges(proto, seen, weight_bits=bits)
    variants = Variants(
        network,
        table.calibrated,
        weight_bits=bits,
        unsigned=unsigned_int8(runtime),
        tensors=tensors,
        own_zeros=own_zeros(runtime),
    )
    choice = Int8Choice(table=sha256_of(table.to_bytes()), tensors=tensors)
    done = ChosenInt8(choice, len(variants.layers), bench.notices)
    if not bench.can_judge:
        outputs = _outputs_beside_fp32(bench, network, variants.network())
        if outputs is None:
            text = "FP32's outputs are 0 in the images: the agreement of INT8 is not measured"
            done.notices.append(Finding("int8-agreement", "warning", text, str(cfg.path)))
        else:
            done.choice = msgspec.structs.replace(choice, outputs=outputs)
            done.notices.append(done.choice.notice(str(cfg.path)))
    elif not any(len(one.boxes) for one in reference):
        text = "FP32 finds no box in the images: the agreement of INT8 is not measured"
        done.notices.append(Finding("int8-agreement", "warning", text, str(cfg.path)))
    else:
        _Search(bench, judge, network, variants, bits, reference, say, tick).run(done)
    return done


def _found(
    bench: Bench,
    cfg: ModelConfig,
    network: Network,
    indices: Sequence[int] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> list[Scored]:
    """The boxes in the images, or in the wanted ones of them; `tick` is called for each image."""

    def frames() -> Iterator[Frame]:
        for _, frame in bench.frames(indices):
            yield frame
            tick()

    return scored(cfg, bench.session(network), frames(), threads=bench.threads)


def _outputs_beside_fp32(bench: Bench, network: Network, int8: Network) -> OutputSignal | None:
    """Compare the outputs of a model that finds no boxes in whole frames; None if all are 0."""
    clean, other = bench.outputs(network), bench.outputs(int8)
    noises = []
    for name in clean[0]:
        a, b = (np.concatenate([run[name].ravel() for run in runs]) for runs in (clean, other))
        if power := float(np.square(a, dtype=np.float64).sum()):
            noise = float(np.square(b - a, dtype=np.float64).sum()) / power
            noises.append(noise if np.isfinite(noise) else 1e30)
    if not noises:
        return None
    signal = round(decibels(max(noises)), 2)
    return OutputSignal(runtime=bench.runtime, images=len(clean), decibels=signal)


def _spread(numbers: Sequence[int], count: int) -> list[int]:
    """At most that many of the numbers, evenly."""
    most = min(count, len(numbers))
    return [numbers[k * len(numbers) // most] for k in range(most)]


def _channels(
    network: Network, proto: Proto, bench: Bench, reference: Sequence[Scored]
) -> dict[str, Channels]:
    """Samples of the activations before layers with weights, most of them in FP32's boxes."""
    weights = {t.name for t in proto.graph.initializer}
    names = {
        n.input[0]: None
        for n in proto.graph.node
        if n.op_type in WEIGHTED and n.input[0] not in weights
    }
    total = bench.total
    objects = [i for i, one in enumerate(reference) if len(one.boxes)]
    others = sorted(set(range(total)) - set(objects))
    indices = _spread(objects, _RANGES_FROM)
    indices += _spread(others, _RANGES_FROM // 3 if indices else _RANGES_FROM)
    shape = image_shape(bench.cfg, network)
    runner = ActivationRunner(network, names=names, shape=shape, threads=bench.threads)
    channels, height, width = network_dims(network.inputs[0], bench.cfg)
    show = Preprocessor.from_config(bench.cfg, width, height, channels)
    rng = np.random.default_rng(0)
    seen: dict[str, Channels] = {}
    sample_count = 0
    batch = show.empty(runner.batch or 1)
    try:
        for index, frame in bench.frames(indices):
            transform = show(frame, batch[0])
            batch[1:] = batch[0]
            rects = np.zeros((0, 4))
            if reference:
                rects = transform.to_network(reference[index].boxes).astype(float)
                rects[:, 2:] += rects[:, :2]
                rects /= (width, height, width, height)
            activations = runner.run(batch)
            if not sample_count:
                size = sum(v.shape[1] for v in activations.values() if v.ndim >= 2) * len(indices)
                sample_count = max(1, min(_PLACES, _MOST_VALUES // max(size, 1)))
            for name, values in activations.items():
                if values.ndim < 2 or not np.isfinite(values).all():
                    continue
                at = sample_places(values[:1].shape, rects, sample_count, rng)
                sample = Channels.of(values[:1], at)
                if seen.setdefault(name, sample) is not sample:
                    seen[name].add(sample)
    finally:
        runner.close()
    return seen


@dataclass(frozen=True)
class _Search:
    """Ranks the layers of a detector, and keeps the worst until the boxes agree."""

    bench: Bench
    judge: Judge
    network: Network
    variants: Variants
    bits: Literal[7, 8]
    reference: list[Scored]
    say: Callable[[str, int | None], None]
    tick: Callable[[], None]

    def run(self, done: ChosenInt8) -> None:
        """Complete the choice.

        The first count of layers that reaches `AIM` is taken; else, of the counts up to `_MOST`,
        the best that is enough; else the first larger one that is enough.
        """
        layers = list(self.variants.layers)
        ranked: list[str] = []
        best = -1.0
        for kept in (*(n for n in _STEPS if n < len(layers)), len(layers)):
            if kept > _MOST * len(layers) and best >= ENOUGH:
                break
            if kept and not ranked:
                ranked = self._ranked(layers)
            with_layers = f" with {kept} layers in FP32" if kept else ""
            self.say(f"judging INT8{with_layers}", self.bench.total)
            keep = tuple(ranked[:kept])
            network = self.variants.network(keep)
            detections = _found(self.bench, self.judge.cfg, network, tick=self.tick)
            measured = self.judge.agreement(
                self.reference, detections, self.bench.runtime, self.bits
            )
            if measured.share > best:
                best = measured.share
                done.choice = msgspec.structs.replace(done.choice, keep=keep, agreement=measured)
            if best >= AIM:
                break
        done.notices.append(done.choice.notice(str(self.bench.cfg.path)))

    def _ranked(self, layers: list[str]) -> list[str]:
        """The layers, the one that moves the boxes most first."""
        objects = [i for i, one in enumerate(self.reference) if len(one.boxes)]
        indices = _spread(objects, _RANKED_ON)
        faint = with_thresholds(self.bench.cfg, _FAINT)
        faint = faint.with_overrides(cluster_mode=ClusterMode.NONE)  # the parser's own boxes
        self.say("measuring layers", len(layers))
        clean = _found(self.bench, faint, self.network, indices)
        loss = {}
        for name in layers:
            alone = self.variants.network(set(layers) - {name})
            loss[name] = moved(clean, _found(self.bench, faint, alone, indices))
            self.tick()
        return sorted(layers, key=lambda name: -loss[name])

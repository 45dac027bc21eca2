"""Which layers INT8 may have so that the boxes stay, and how many stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from noria._core.errors import ConfigError
from noria._core.notices import Notice
from noria.config.enums import ClusterMode
from noria.diagnose.box_matching import Scored, overlaps
from noria.diagnose.sensitivity import Bench
from noria.diagnose.truth import scored
from noria.engine.backends import DEFAULT_BACKEND, get_backend
from noria.engine.precision.capability import own_zeros, unsigned_int8, weight_bits
from noria.engine.precision.choice import ENOUGH, Agreement, Int8Choice
from noria.engine.precision.collect import ActivationRunner
from noria.engine.precision.even import Channels, choose_ranges
from noria.engine.precision.explicit import Variants
from noria.engine.precision.prepare import Proto, fold_batch_norms, prepare
from noria.engine.precision.qdq import MIN_OPSET, WEIGHTED
from noria.infer.calibration import selected_frames
from noria.infer.preprocess import Preprocessor
from noria.model.picture_input import network_dims
from noria.model.source import model_source

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.config.class_attrs import ClassAttrs
    from noria.engine.precision.cache import CalibrationTable
    from noria.media.frame import Frame
    from noria.network.network import Network

AIM = 0.97
"""Share of boxes that is looked for: pictures that were not seen keep fewer."""

_MOST = 0.18
"""Share of the layers that may be FP32 before the first count that is good enough is taken."""

_RANKED_ON = 20  # pictures
_RANGES_FROM = 32  # pictures
_FAINT = 0.4  # of the threshold: boxes that move there count as well
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
    notices: list[Notice] = field(default_factory=list)


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
    are kept until the boxes that INT8 and FP32 share are 97 % of either's (see `_Search.run`).

    Args:
        cfg: the model and its parser.
        sources: pictures and videos, those of the table.
        table: scales of the activations.
        frames: how many to judge by.
        threads: CPU threads of the engine.
        on_stage: called with the work that begins, and its number of steps.
        on_step: called after each step.

    Raises:
        ConfigError, ModelError, EngineError, CustomLibraryError: the model cannot be used.
        MediaError: the pictures cannot be read.
    """
    say, tick = on_stage or (lambda text, total: None), on_step or (lambda: None)
    source = model_source(cfg)
    if source is None:
        raise ConfigError("the config names no model that can be read", where=str(cfg.path))
    cfg = cfg.with_overrides(interval=0, batch_size=1)
    network, runtime = source.network(), DEFAULT_BACKEND
    get_backend(runtime)
    bench = Bench(cfg, sources, frames, None, threads, runtime)
    say("looking at channels", None)
    proto = prepare(network.to_proto(), opset=MIN_OPSET)
    fold_batch_norms(proto)
    tensors = choose_ranges(proto, _channels(network, proto, bench, threads))
    variants = Variants(
        network,
        table.calibrated,
        weight_bits=weight_bits(runtime),
        unsigned=unsigned_int8(runtime),
        tensors=tensors,
        own_zeros=own_zeros(runtime),
    )
    choice = Int8Choice(table=sha256(table.to_bytes()).hexdigest(), tensors=tensors)
    done = ChosenInt8(choice, len(variants.layers), bench.notices)
    if not bench.can_judge:
        text = "the agreement of INT8 with FP32 is measured for detectors on whole frames only"
        done.notices.append(Notice("info", text, str(cfg.path)))
        return done
    _Search(bench, network, variants, say, tick).run(done)
    return done


def _channels(
    network: Network, proto: Proto, bench: Bench, threads: int | None
) -> dict[str, Channels]:
    """What the channels of the activations before layers with weights hold on some pictures."""
    weights = {t.name for t in proto.graph.initializer}
    names = {
        n.input[0]: None
        for n in proto.graph.node
        if n.op_type in WEIGHTED and n.input[0] not in weights
    }
    runner = ActivationRunner(network, names=names, threads=threads)
    channels, height, width = network_dims(network.inputs[0], bench.cfg)
    show = Preprocessor.from_config(bench.cfg, width, height, channels)
    seen: dict[str, Channels] = {}
    every = max(1, sum(item.frames for item in bench.chosen) // _RANGES_FROM)
    batch = show.empty(runner.batch or 1)
    try:
        for index, frame in enumerate(selected_frames(bench.chosen)):
            if index % every:
                continue
            show(frame, batch[0])
            batch[1:] = batch[0]
            for name, values in runner.run(batch).items():
                if values.ndim < 2 or not np.isfinite(values).all():
                    continue
                found = Channels.of(values)
                if name in seen:
                    seen[name].add(found)
                else:
                    seen[name] = found
    finally:
        runner.close()
    return seen


class _Search:
    """Ranks the layers of a detector, and keeps the worst until the boxes agree."""

    def __init__(
        self,
        bench: Bench,
        network: Network,
        variants: Variants,
        say: Callable[[str, int | None], None],
        tick: Callable[[], None],
    ) -> None:
        self._bench, self._network, self._variants = bench, network, variants
        self._say, self._tick = say, tick

    def run(self, done: ChosenInt8) -> None:
        """Complete the choice.

        The first count of layers that reaches `AIM` is taken; else, of the counts up to `_MOST`,
        the best that is enough, because near the threshold boxes come and go; else the first
        larger one that is enough.
        """
        bench = self._bench
        self._say("finding FP32's boxes", None)
        reference = self._found(self._network)
        if not sum(len(one.boxes) for one in reference):
            text = "FP32 finds no box in the pictures: the agreement of INT8 is not measured"
            done.notices.append(Notice("warning", text, str(bench.cfg.path)))
            return
        self._say("judging INT8", None)
        layers = list(self._variants.layers)
        ranked: list[str] = []
        best = -1.0
        for kept in (*(n for n in _STEPS if n < len(layers)), len(layers)):
            if kept > _MOST * len(layers) and best >= ENOUGH:
                break
            if kept and not ranked:
                ranked = self._ranked(layers, reference)
            if kept:
                self._say(f"judging INT8 with {kept} layers in FP32", None)
            keep = tuple(ranked[:kept])
            found = self._found(self._variants.network(keep))
            measured = agreement_of(reference, found, bench.runtime)
            if measured.share > best:
                best = measured.share
                done.choice = msgspec.structs.replace(done.choice, keep=keep, agreement=measured)
            if best >= AIM:
                break
        done.notices.append(done.choice.notice(str(bench.cfg.path)))

    def _found(self, network: Network) -> list[Scored]:
        bench = self._bench
        frames = selected_frames(bench.chosen)
        return scored(bench.cfg, bench.session(network), frames, threads=bench.threads)

    def _ranked(self, layers: list[str], reference: list[Scored]) -> list[str]:
        """The layers, the one that moves the boxes most first.

        Only the strongest box of an object counts: those beside it would be paired by chance.
        """
        bench = self._bench
        most = sorted(range(len(reference)), key=lambda i: -len(reference[i].boxes))
        wanted = set(most[:_RANKED_ON])
        frames = [f for i, f in enumerate(selected_frames(bench.chosen)) if i in wanted]
        faint = _with_faint_boxes(bench.cfg)
        self._say("measuring layers", len(layers))
        clean = self._faint(faint, self._network, frames)
        loss = {}
        for name in layers:
            others = set(layers) - {name}
            loss[name] = moved(clean, self._faint(faint, self._variants.network(others), frames))
            self._tick()
        return sorted(layers, key=lambda name: -loss[name])

    def _faint(self, cfg: ModelConfig, network: Network, frames: list[Frame]) -> list[Scored]:
        bench = self._bench
        found = scored(cfg, bench.session(network), frames, threads=bench.threads)
        return [strongest(one) for one in found]


def _with_faint_boxes(cfg: ModelConfig) -> ModelConfig:
    """The config with lower thresholds and no clustering.

    Boxes are then those of the parser, whatever the config merges or drops.
    """

    def lower(attrs: ClassAttrs) -> ClassAttrs:
        return replace(
            attrs,
            pre_cluster_threshold=attrs.pre_cluster_threshold * _FAINT,
            post_cluster_threshold=attrs.post_cluster_threshold * _FAINT,
        )

    classes = {number: lower(attrs) for number, attrs in cfg.classes.items()}
    return cfg.with_overrides(
        all_classes=lower(cfg.all_classes), classes=classes, cluster_mode=ClusterMode.NONE
    )


def agreement_of(reference: Sequence[Scored], found: Sequence[Scored], runtime: str) -> Agreement:
    """Count boxes of the same class with an IoU of at least 0.5, each of them once."""
    return Agreement(
        runtime=runtime,
        weight_bits=weight_bits(runtime),
        frames=len(reference),
        fp32=sum(len(one.boxes) for one in reference),
        int8=sum(len(one.boxes) for one in found),
        equal=sum(len(_pairs(a, b)) for a, b in zip(reference, found, strict=True)),
    )


def moved(reference: Sequence[Scored], found: Sequence[Scored]) -> float:
    """Average the squared differences of the boxes' scores; infinite if no box has a partner.

    Boxes without a partner count as the mean does: whether one crosses the threshold, or changes
    to a class as likely, says little of how far it moved.
    """
    total, pairs = 0.0, 0
    most = sum(len(one.boxes) for one in reference) + sum(len(one.boxes) for one in found)
    for a, b in zip(reference, found, strict=True):
        for i, j in _pairs(a, b):
            total += float(a.scores[i] - b.scores[j]) ** 2
            pairs += 1
    return total / pairs * most / (2 * pairs) if pairs else math.inf


def strongest(one: Scored) -> Scored:
    """Keep the boxes that no surer one of their class covers with an IoU of at least 0.5."""
    covers = (overlaps(one.boxes, one.boxes) >= 0.5) & (one.class_ids[:, None] == one.class_ids)
    kept: list[int] = []
    for i in np.argsort(-one.scores, kind="stable"):
        if not covers[i, kept].any():
            kept.append(int(i))
    return Scored(one.boxes[kept], one.class_ids[kept], one.scores[kept])


def _pairs(a: Scored, b: Scored) -> list[tuple[int, int]]:
    """Boxes of `a` and those of `b` that are the same; the surest choose first."""
    same = a.class_ids[:, None] == b.class_ids[None]
    iou = np.where(same, overlaps(a.boxes, b.boxes), 0.0)
    pairs = []
    for i in np.argsort(-a.scores, kind="stable"):
        j = int(np.argmax(iou[i])) if len(b.boxes) else 0
        if len(b.boxes) and iou[i, j] >= 0.5:
            pairs.append((int(i), j))
            iou[:, j] = 0.0
    return pairs

"""`compare`: the frames through both models, stage by stage."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.diagnose.calibrate.scales import select_frames, selected_frames
from headrace.diagnose.compare.chain import (
    PURE,
    Arrays,
    Chain,
    ChainStage,
    ChainTimes,
    Mix,
    class_names,
)
from headrace.diagnose.compare.comparison import Comparison
from headrace.diagnose.compare.keys import key_changes
from headrace.diagnose.compare.layers import DEPARTS_BELOW_DB, Tensor, compare_layers, decibels
from headrace.diagnose.compare.matching import LEAST_IOU, BoxPairs, Tolerance
from headrace.diagnose.compare.sides import Side, SideSpec, open_sides
from headrace.diagnose.compare.stage_drift import FrameDrift, StageDrift, StageTime
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.infer.attributes import ClassifierPostprocessor
from headrace.infer.candidates import Candidates
from headrace.infer.inferencer import Inferencer
from headrace.infer.postprocess import DetectorPostprocessor
from headrace.infer.run_options import RunOptions
from headrace.infer.trace import trace_frame
from headrace.media import as_frame
from headrace.media.frame import Frame
from headrace.meta import Detections
from headrace.meta.detections import overlaps

if TYPE_CHECKING:
    from headrace.config.enums import Generation
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode
    from headrace.infer.run_options import Abi

DEFAULT_FRAMES = 20
_WORST = 4  # frames kept with their images
_TRACED = 20  # frames in which lost boxes are looked up: a trace calls the parser twice
NO_CANDIDATE = "no candidate"
_UNITS: dict[type | None, str] = {
    DetectorPostprocessor: "boxes",
    ClassifierPostprocessor: "attributes",
}
_STAGES = {
    "boxes": tuple(ChainStage),
    "attributes": (ChainStage.INPUT, ChainStage.ENGINE, ChainStage.PARSER, ChainStage.LABELS),
    "": (ChainStage.INPUT, ChainStage.ENGINE),
}

ModelLike = SideSpec | ModelConfig | str | Path
Images = str | Path | Sequence[Any]


def compare(
    a: ModelLike,
    b: ModelLike,
    source: Images,
    *,
    frames: int = DEFAULT_FRAMES,
    tolerance: Tolerance | None = None,
    layers: bool = True,
    on_frame: Callable[[int, int], None] | None = None,
    threads: int | None = None,
    device: str = "auto",
    abi: Abi | None = None,
    guard: GuardMode | None = None,
    guard_env: str | None = None,
    profile: Profile | None = None,
    generation: Generation | None = None,
) -> Comparison:
    """Run two models on the same frames, and find the stage that makes them differ.

        found = headrace.compare("fp32.txt", "int8.txt", "video.mp4")
        print(found.verdict)

    Args:
        a, b: a config (path or loaded), a bare model, an engine file, or a `SideSpec`. An engine
            runs with the config of the other side. A model of objects takes each image whole.
        source: an image, a folder or pattern of them, a video; or a list of images: arrays
            (h, w, 3) uint8 BGR, `Frame` or paths.
        frames: how many to compare, spread evenly over the source.
        tolerance: differences that do not count; by default IoU 0.98 and score 0.01.
        layers: False leaves out the comparison layer by layer.
        on_frame: called with the number of frames done and of all.
        threads: CPU threads of each engine; None is one per core.
        device: where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is there
            and that the runtime can use; `cpu`, `cuda`, `cuda:N`.
        abi: bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, which
            detects it; None takes each config's `custom-lib-abi`.
        guard: whether custom libraries run in worker processes, so that their crashes are survived:
            `auto` guards C++ libraries that are not trusted yet, `always` guards Python files, too,
            `never` guards none; None takes each config's `custom-lib-guard`.
        guard_env: variables of the environment, separated by commas, for libraries in worker
            processes: `NAME` passes what looks like a credential, `-NAME` holds another one back,
            `*` and `?` stand for letters; None takes each config's `custom-lib-guard-env`.
        profile: whose rules apply where the configs' keys leave them open: `nvinfer` for those of
            the original, `modern` for those that models are trained with; None takes each config's
            `profile`.
        generation: whose rules apply where releases of the original differ, `9.1` or `6.2`; a
            config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the first
            free number.

    Raises:
        ConfigError, ModelError, EngineError, CustomLibraryError: a model cannot be used, or the
            two are of different kinds.
        MediaError: the source cannot be read, or has no frame.
    """
    chosen, _ = RunOptions.of(compare, locals())
    if frames < 1:
        raise ConfigError(f"frames={frames}", expected="1 or more")
    images, total, notices, name = _images(source, frames)
    first, second = open_sides(_spec(a), _spec(b), chosen)
    run = None
    try:
        run = _Run((first, second), tolerance or Tolerance(), name)
        run.result.notices += notices
        for done, frame in enumerate(images, 1):
            run.add(frame)
            if on_frame is not None:
                on_frame(done, total)
        if not run.result.frames:
            raise MediaError("there is no frame in it", where=name)
        return run.finish(layers=layers)
    finally:
        if run is not None:
            run.close()
        first.close()
        second.close()


def _spec(model: ModelLike) -> SideSpec | ModelConfig:
    return SideSpec(Path(model)) if isinstance(model, str | Path) else model


def _images(source: Images, frames: int) -> tuple[Iterator[Frame], int, list[Finding], str]:
    if isinstance(source, str | Path):
        chosen, notices = select_frames([str(source)], frames)
        return selected_frames(chosen), sum(c.frames for c in chosen), notices, str(source)
    step = max(1.0, len(source) / frames)
    taken = [source[int(i * step)] for i in range(min(frames, len(source)))]
    return map(as_frame, taken), len(taken), [], f"{len(taken)} images"


class _Run:
    """One comparison on its way."""

    def __init__(self, sides: tuple[Side, Side], tolerance: Tolerance, source: str) -> None:
        a, b = self.sides = sides
        kinds = [s.model.config.network_type for s in sides]
        units = [_UNITS.get(type(s.model.postprocessor), "") for s in sides]
        if kinds[0] is not kinds[1] and units != ["boxes", "boxes"]:
            raise ConfigError(
                f"A is a {kinds[0].name.lower()}, B a {kinds[1].name.lower()} (network-type)",
                where=f"{a.model.config.path}, {b.model.config.path}",
                expected="two models of one kind",
            )
        self.times = ChainTimes()
        self.result = Comparison(a.title, b.title, source, tolerance, units[0])
        self.result.labels = (class_names(a), class_names(b))
        for side in sides:
            self.result.notices += side.notices
        keys = key_changes(a, b)
        for stages in _groups(a, b):
            if stages[0] in _STAGES[units[0]]:
                changes = [change for stage in stages for change in keys[stage]]
                self.result.stages.append(StageDrift(stages, changes))
        self._order = count()
        self._worst: list[tuple[tuple[int, int], int, FrameDrift]] = []
        self._noisiest: tuple[float, Arrays] | None = None
        self._traced = [Inferencer(s.model, s.record) for s in sides]
        self._traces = 0

    def add(self, frame: Frame) -> None:
        """Compare one frame."""
        warm_up = not self.result.frames
        chain = Chain(frame, self.sides, ChainTimes() if warm_up else self.times)
        turn = self.result.frames % 2
        order = (turn, 1 - turn)  # in turns: caches serve both alike
        for side in order:
            chain.scaled(side)
        for side in order:
            chain.outputs(side, side)
            if self.result.unit:
                chain.objects(PURE[side])
        if warm_up:
            self._warm_times(frame)
        ratio, _ = _worst_pair(chain.outputs(0, 0), chain.outputs(1, 1))
        self.result.outputs_db = float(np.fmin(self.result.outputs_db, ratio))
        for stage in self.result.stages:
            self._stage(stage, chain)
        if self.result.unit:
            self._objects(chain, frame)
        for side, reason in chain.refused.items():
            text = f"the parser of {'AB'[side]} refuses outputs: {reason}"
            self.result.notices.append(Finding("outputs-refused", "warning", text))
        self.result.frames += 1

    def _warm_times(self, frame: Frame) -> None:
        """Time the first frame once more, warm: it may be the only one."""
        chain = Chain(frame, self.sides, self.times)
        for side in (0, 1):
            chain.outputs(side, side)
            if self.result.unit:
                chain.objects(PURE[side])

    def _stage(self, stage: StageDrift, chain: Chain) -> None:
        worst = (nan, nan)
        if stage.stages == (ChainStage.INPUT,):
            worst = _worst_pair({"": chain.scaled(0)[0]}, {"": chain.scaled(1)[0]})
        elif stage.stages == (ChainStage.ENGINE,):
            mine = chain.outputs(0, 0)
            worst = _worst_pair(mine, chain.outputs(0, 1))
            self._remember(chain, worst[0])
        elif ChainStage.INPUT not in stage.stages and ChainStage.ENGINE in stage.stages:
            self._remember(chain, -inf)
        stage.decibels = float(np.fmin(stage.decibels, worst[0]))
        stage.largest = float(np.fmax(stage.largest, worst[1]))
        if len(stage.stages) > 1:
            stage.note = "tensors between them have other names or shapes"
        if not self.result.unit:
            return
        mix = Mix.only(*stage.stages)
        if stage.stages == (ChainStage.PARSER,) and self.result.unit == "boxes":
            if stage.candidates is None:
                stage.candidates = type(stage.effect)()
            stage.candidates.add(_plain(chain.parsed(PURE[0])), _plain(chain.parsed(mix)))
        labels = (self.result.labels[0], self.result.labels[mix.labels])
        stage.effect.add(chain.objects(PURE[0]), chain.objects(mix), labels)

    def _remember(self, chain: Chain, ratio: float) -> None:
        """Keep the input with the noisiest outputs: layers are compared on it."""
        if self._noisiest is None or ratio < self._noisiest[0]:
            self._noisiest = (ratio, self.sides[0].model.feeds(chain.scaled(0)[0]))

    def _objects(self, chain: Chain, frame: Frame) -> None:
        result = self.result
        a, b = chain.objects(PURE[0]), chain.objects(PURE[1])
        single = type(result.total)()
        single.add(a, b, result.labels)
        pairs = result.total.add(a, b, result.labels)
        beyond = single.beyond(result.tolerance)
        if beyond:
            alone = len(pairs.only_a) + len(pairs.only_b) + len(pairs.changed)
            drift = FrameDrift(frame, a, b, pairs, beyond)
            entry = ((alone, beyond), -next(self._order), drift)
            if len(self._worst) < _WORST:
                heapq.heappush(self._worst, entry)
            else:
                heapq.heappushpop(self._worst, entry)
        if result.unit == "boxes":
            self._reasons(frame, a, b, pairs)

    def _reasons(self, frame: Frame, a: Scored, b: Scored, pairs: BoxPairs) -> None:
        """Look up why each side lacks boxes of the other."""
        if not (len(pairs.only_a) or len(pairs.only_b)) or self._traces >= _TRACED:
            return
        self._traces += 1
        directions = ((1, a, pairs.only_a, self.result.lost), (0, b, pairs.only_b, self.result.new))
        for side, objects, rows, counts in directions:
            if len(rows):
                items = trace_frame(self._traced[side], frame).items
                counts.update(_fates(items[0].candidates if items else None, objects, rows))

    def close(self) -> None:
        """End the threads of the traces."""
        for inferencer in self._traced:
            inferencer.runs.close()

    def finish(self, *, layers: bool) -> Comparison:
        """Compare layers, and sum up."""
        result = self.result
        result.notices = list(dict.fromkeys(result.notices))
        result.looked_up = self._traces
        result.worst = [entry for _, _, entry in sorted(self._worst, reverse=True)]
        if layers and self._noisiest is not None and self._noisiest[0] < DEPARTS_BELOW_DB:
            result.layers = compare_layers(*self.sides, self._noisiest[1])
        for stage in ChainStage:
            times = [self.times.median_ms(stage, side) for side in (0, 1)]
            if not np.isnan(times).all():
                result.times.append(StageTime(stage, *times))
        return result


def _groups(a: Side, b: Side) -> Iterable[tuple[ChainStage, ...]]:
    """Stages that can be exchanged alone; joined where the tensor between them differs."""
    first, second = a.model, b.model
    assert first.preprocessor is not None
    assert second.preprocessor is not None
    joined = [
        first.preprocessor.shape != second.preprocessor.shape,
        [_place(s) for s in first.session.outputs] != [_place(s) for s in second.session.outputs],
    ]
    groups = [[ChainStage.INPUT]]
    for stage, with_last in zip(list(ChainStage)[1:], [*joined, *[False] * 4], strict=True):
        if with_last:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return [tuple(group) for group in groups]


def _place(spec: Any) -> tuple[Any, ...]:
    return spec.name, *spec.shape[1:]


def _worst_pair(a: Arrays, b: Arrays) -> tuple[float, float]:
    """Signal to noise and greatest difference of the worst tensors; NaN if shapes differ."""
    pairs: list[tuple[Tensor, Tensor]] = list(zip(a.values(), b.values(), strict=False))
    if len(a) != len(b) or any(x.shape != y.shape for x, y in pairs):
        return nan, nan
    with np.errstate(invalid="ignore"):
        gaps = [np.abs(x.astype(np.float64) - y.astype(np.float64)) for x, y in pairs]
    largest = max(float(np.nan_to_num(gap, nan=0.0).max(initial=0.0)) for gap in gaps)
    return min(decibels(x, y) for x, y in pairs), largest


def _plain(detections: Detections) -> Scored:
    angles = None if detections.angles is None else np.degrees(detections.angles)
    return Scored.of(detections.boxes, detections.class_ids, detections.scores, angles=angles)


def _fates(candidates: Candidates | None, objects: Scored, rows: Any) -> Counter[str]:
    """Key that dropped the best candidate at the place of each box."""
    counts = Counter[str]()
    for row in rows.tolist():
        box, class_id = objects.boxes[[row]].astype(np.float32), objects.class_ids[row]
        best = -1
        if candidates is not None and len(candidates):
            near = overlaps(candidates.rects, box)[:, 0] * (
                candidates.detections.class_ids == class_id
            )
            near = np.where(near >= LEAST_IOU, candidates.detections.scores, -1.0)
            best = int(near.argmax()) if near.max() >= 0 else -1
        if best < 0 or candidates is None:
            counts[NO_CANDIDATE] += 1
        else:
            counts[candidates.fate(best).key or "moved"] += 1
    return counts

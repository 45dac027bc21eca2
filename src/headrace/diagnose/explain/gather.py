"""From the trace of one frame to the explanation of one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.json_record import finite
from headrace._core.text import counted
from headrace._core.types import Array
from headrace.config.enums import NetworkType
from headrace.diagnose.explain.lost import candidate_fate, class_stages, lost_rows
from headrace.diagnose.explain.places import answer
from headrace.diagnose.explain.records import (
    Box,
    CandidateFate,
    ClassScore,
    ItemResult,
    ModelExplanation,
    SkippedObject,
    TensorStats,
)
from headrace.diagnose.explain.verdicts import score_verdict, skip_verdict
from headrace.infer.candidates import FateStage
from headrace.infer.parsers.boxes import to_float32
from headrace.infer.parsers.labels import class_name
from headrace.infer.trial import ConfigTrials

if TYPE_CHECKING:
    from headrace.infer.candidates import Candidates
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.losses import InferenceLosses
    from headrace.infer.trace import FrameTrace, ItemTrace
    from headrace.media.frame import Frame

MOST_DROPPED = 10
_MOST_CLASSES = 5


def explain_model(
    model: Inferencer,
    trace: FrameTrace,
    losses: InferenceLosses,
    *,
    floor: float,
    at: Box | None = None,
    frames: Sequence[Frame] = (),
) -> ModelExplanation:
    """Gather everything that one model decided on one frame.

    Args:
        model: the model.
        trace: the frame, as `trace_frame` gives it.
        losses: of the model after this frame alone.
        floor: the lowest score of a candidate.
        at: a point (without a size) or a box in frame pixels that is asked about.
        frames: this one and those beside it, on which the main advice is tried.
    """
    cfg, labels = model.config, model.labels
    pairs = [(item, item.candidates) for item in trace.items if item.candidates is not None]
    dropped = sorted(
        (
            candidate_fate(cfg, c, row, labels, item=item.object, others=others)
            for item, c in pairs
            for row, others in lost_rows(c, MOST_DROPPED)
        ),
        key=lambda one: (one.verdict.key == "pre-cluster-threshold", -one.score),
    )[:MOST_DROPPED]
    dropped = _first_tried(model, dropped, frames)
    skipped = tuple(_skipped(model, trace))
    objects = len(trace.meta.objects) - trace.known
    results = tuple(_results(model, trace))
    errors = list(dict.fromkeys(str(item.error) for item in trace.items if item.error is not None))
    counted = [] if _hidden(pairs) else losses.reasons
    reasons = list(dict.fromkeys([*errors, *counted, *_turns(model, trace.frame.frame)]))
    first = trace.items[0] if trace.items else None
    inputs, outputs = _stats(model, first)
    return ModelExplanation(
        model.name,
        str(cfg.path),
        cfg.network_type.label,
        model.secondary,
        len(trace.items),
        objects,
        _verdict(model, trace, results, dropped, skipped, reasons),
        tuple(reasons),
        (),
        floor,
        class_stages([c for _, c in pairs], labels),
        tuple(dropped),
        skipped,
        results,
        inputs,
        outputs,
        None if at is None else answer(model, trace, at, skipped, results, floor),
    )


def _first_tried(
    model: Inferencer, dropped: Sequence[CandidateFate], frames: Sequence[Frame]
) -> list[CandidateFate]:
    """Try the change for the first candidate that may be an object."""
    index = next((i for i, one in enumerate(dropped) if one.telling and one.verdict.change), None)
    if index is None or not frames or model.secondary or model.model.preprocessor is None:
        return list(dropped)
    verdict = dropped[index].verdict
    trials = ConfigTrials.of_model(model.model, frames)
    outcome = trials(verdict.change)
    words = str(outcome)
    if outcome.readings and outcome.kind == "boxes":
        words = f"{counted(outcome.objects, 'object')} in {counted(len(frames), 'frame')}"
        words += f" instead of {trials.present.objects}"
    tried = dropped[index].changed(verdict=verdict.changed(outcome=words))
    return [*dropped[:index], tried, *dropped[index + 1 :]]


def _hidden(pairs: Sequence[tuple[ItemTrace, Candidates]]) -> bool:
    """Whether the threshold hides every candidate: these then say more than counts do."""
    return any(len(c) for _, c in pairs) and not any(c.parsed for _, c in pairs)


def tensor_stats(name: str, data: Array) -> TensorStats:
    """Statistics of one tensor.

    Args:
        name: of the tensor.
        data: numbers of any type and shape.
    """
    numbers = data.astype(np.float64, copy=False)
    finite = numbers[np.isfinite(numbers)]
    nan = int(np.isnan(numbers).sum())
    lowest = highest = mean = std = None
    if finite.size:
        lowest, highest = float(finite.min()), float(finite.max())
        mean, std = float(finite.mean()), float(finite.std())
    infinite = numbers.size - finite.size - nan
    return TensorStats(name, str(data.dtype), data.shape, lowest, highest, mean, std, nan, infinite)


def _stats(
    model: Inferencer, item: ItemTrace | None
) -> tuple[tuple[TensorStats, ...], tuple[TensorStats, ...]]:
    if item is None:
        return (), ()
    outputs = tuple(tensor_stats(name, layer.data) for name, layer in item.layers.items())
    return (tensor_stats(model.model.input_name, item.tensor),), outputs


def _skipped(model: Inferencer, trace: FrameTrace) -> Iterator[SkippedObject]:
    objects = trace.meta.objects
    for index, key in trace.skipped.items():
        left, top, width, height = objects.rects[index].tolist()
        label = objects.label(index) or f"class {objects.class_ids[index]}"
        verdict = skip_verdict(model, trace.meta, index, key)
        yield SkippedObject(index, label, (left, top, width, height), verdict)


def _turns(model: Inferencer, number: int) -> Iterator[str]:
    """Keys that keep a run, which counts frames, from inferring on this one."""
    cfg = model.config
    if model.secondary:
        return
    period, discarded = cfg.interval + 1, cfg.stabilize_buffer_count
    if number < discarded:
        yield (
            f"stabilize-buffer-count={discarded}: a run discards frame {number}; "
            "it is inferred here all the same"
        )
    elif (number - discarded) % period:
        yield (
            f"interval={cfg.interval}: a run infers on every {period} frames and not on frame "
            f"{number}; it is inferred here all the same"
        )


def _results(model: Inferencer, trace: FrameTrace) -> Iterator[ItemResult]:
    kind = model.config.network_type
    for item in trace.items:
        if item.error is not None:
            continue
        if kind is NetworkType.CLASSIFIER:
            yield _classified(model, item)
        elif item.segmentation is not None:
            yield _segmented(model, item)


def _classified(model: Inferencer, item: ItemTrace) -> ItemResult:
    cfg, records = model.config, model.model.labels.records
    scores: list[ClassScore] = []
    built_in = model.parser is not None and model.parser.parser is None
    best = -np.inf
    for index, layer in enumerate(item.layers.values() if built_in else ()):
        names = records[index] if index < len(records) else ()
        values = to_float32(layer.data.reshape(-1)[: layer.shape[0]])
        for class_id in np.argsort(-values, kind="stable")[:_MOST_CLASSES].tolist():
            score = float(values[class_id])
            best = max(best, score)
            scores.append(ClassScore(class_id, class_name(names, class_id), finite(score) or 0.0))
    classification = item.classified
    if classification is not None:
        parts = (
            f"{x.label or f'class {x.value}'} {x.confidence:.3g}" for x in classification.labels
        )
        if not built_in:
            scores = [
                ClassScore(x.value, x.label or f"class {x.value}", finite(x.confidence) or 0.0)
                for x in classification.labels
            ]
        return ItemResult(item.object, ", ".join(parts), True, tuple(scores))
    verdict = None
    text = "no label: the parser gave no attribute" if not built_in else "no label"
    if built_in and best > max(cfg.classifier_threshold, 0):
        text = "no label: labelfile-path has no name for the class that wins"
    elif built_in and np.isfinite(best):
        verdict = score_verdict(cfg, "classifier_threshold", float(best))
        text = f"no label: {verdict}"
    return ItemResult(item.object, text, False, tuple(scores), verdict)


def _segmented(model: Inferencer, item: ItemTrace) -> ItemResult:
    segmentation = item.segmentation
    assert segmentation is not None
    values, counts = np.unique(segmentation.class_map, return_counts=True)
    total = max(1, segmentation.class_map.size)
    shares = sorted(
        (
            ClassScore(
                int(value),
                "no class" if value < 0 else class_name(segmentation.labels, int(value)),
                int(count) / total,
            )
            for value, count in zip(values, counts, strict=True)
        ),
        key=lambda share: -share.score,
    )
    verdict = None
    if shares and shares[0].class_id < 0 and len(shares) == 1:
        raw = segmentation.probabilities
        best = float(np.nanmax(raw)) if raw is not None and raw.size else 0.0
        verdict = score_verdict(model.config, "segmentation_threshold", finite(best) or 0.0)
    text = ", ".join(f"{s.label} {100 * s.score:.3g} %" for s in shares[:_MOST_CLASSES])
    return ItemResult(item.object, text, True, tuple(shares), verdict)


def _verdict(
    model: Inferencer,
    trace: FrameTrace,
    results: Sequence[ItemResult],
    dropped: Sequence[CandidateFate],
    skipped: Sequence[SkippedObject],
    reasons: Sequence[str],
) -> str:
    """The outcome, and the main cause if something is missing."""
    attached = len(trace.meta.objects) - trace.known
    if results:
        count = sum(one.attached and one.verdict is None for one in results)
        outcome = f"{count} of {counted(len(results), 'item')} with a result"
        if len(results) == count == 1:
            outcome = results[0].text
        missing = count < len(results)
        cause = next((one.text for one in results if one.verdict is not None), "")
    else:
        outcome = counted(attached, "object")
        missing = not attached
        worth = [one for one in dropped if one.telling]
        if not attached and not worth:  # a filter hides what a lower threshold would show
            worth = [one for one in dropped if one.next and one.next.stage == FateStage.FILTER]
        cause = str(worth[0]) if worth else ""
        if worth and attached:
            missing = True
            least = "at least " if len(dropped) == MOST_DROPPED == len(worth) else ""
            outcome += f", {least}{counted(len(worth), 'more candidate')} dropped"
    if model.config.network_type is NetworkType.OTHER and trace.items:
        kept = "attached as tensors" if model.config.output_tensor_meta else "read by nothing here"
        return f"outputs {kept}: network-type=100"
    if not trace.items:
        outcome = "nothing inferred"
        lost = [f"{n:brief}" for n in model.record.notices if n.level == "warning"]
        missing, cause = True, str(skipped[0]) if skipped else "".join(lost[-1:])
    if not missing:
        return outcome
    main = cause if attached or not reasons else reasons[0]
    return f"{outcome}: {main.splitlines()[0]}" if main else outcome

"""Boxes and objects that an inferencer left out, by filter and class, with reasons.

A reason is one line: the cause and its key first, then the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from headrace._core.plain_record import PlainRecord
from headrace.config.enums import NetworkType
from headrace.infer.parsers.labels import class_name
from headrace.infer.tally.box_losses import box_reasons, dropped_boxes, named
from headrace.infer.watch.rules import CAUSES

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.infer.tally import ItemTally, ObjectTally, Tally

Counts = dict[str, dict[str, int]]

# What the limits of a secondary model are compared with: the object nearest to passing.
_EXTREMES = {
    "input-object-min-width": "widest",
    "input-object-min-height": "highest",
    "input-object-max-width": "narrowest",
    "input-object-max-height": "lowest",
}
_MOSTLY = 0.9  # of the frames: so many without a look leave little to see


class InferenceLosses(PlainRecord, frozen=True):
    """Boxes and objects left out since the run began.

    Attributes:
        skipped: objects that a secondary model did not infer on: the key that left them out ->
            class name -> number.
        dropped: boxes of a detector, or items of a classifier without a label: the same. Boxes
            that a parser leaves out itself are not among them.
        reasons: why nothing came out, or less than half, one line each; the first weighs most.
    """

    skipped: Counts = field(default_factory=dict)
    dropped: Counts = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


def losses_of(cfg: ModelConfig, tally: Tally, findings: Sequence[Finding] = ()) -> InferenceLosses:
    """The counts of a tally by name, and the reasons they give.

    Args:
        cfg: of the model.
        tally: of its inferencer.
        findings: of the watch: what it has seen in the outputs goes before a guess.
    """
    cause = next((f for f in findings if f.code in CAUSES), None)
    dropped: dict[str, Counter[str]] = {}
    for boxes in tally.boxes:
        for key, counts in dropped_boxes(boxes).items():
            dropped.setdefault(key, Counter()).update(counts)
    items = tally.items
    if items.below:
        dropped["classifier-threshold"] = items.below
    skipped: dict[str, Counter[str]] = {}
    for key, pairs in tally.objects.skipped.items():
        for pair, number in pairs.items():
            skipped.setdefault(key, Counter())[_class_name(tally.objects, *pair)] += number
    reasons = [
        *_run_reasons(cfg, tally),
        *_object_reasons(cfg, tally.objects, skipped),
        *(reason for boxes in tally.boxes for reason in box_reasons(cfg, boxes, cause)),
        *_item_reasons(cfg, items),
    ]
    return InferenceLosses(_plain(skipped), _plain(dropped), list(dict.fromkeys(reasons)))


def _plain(counts: Mapping[str, Counter[str]]) -> Counts:
    return {key: dict(c.most_common()) for key, c in counts.items()}


def _run_reasons(cfg: ModelConfig, tally: Tally) -> Iterable[str]:
    """Causes that keep a model from running, or its outputs from being objects."""
    if tally.frames and tally.discarded == tally.frames:
        yield (
            f"stabilize-buffer-count={cfg.stabilize_buffer_count} discards as many buffers: "
            f"all {tally.frames} frames were among them"
        )
    elif cfg.input_tensor_from_meta and tally.frames and not tally.tensors:
        others = ", ".join(map(str, sorted(tally.other_tensors)))
        yield (
            f"input-tensor-from-meta=1: no tensor for gie-unique-id {cfg.component_id} came with "
            f"{tally.frames} frames{f' (they were for {others})' if others else ''}; a function "
            "before the model has to add them (Batch.tensors), or leave the key out"
        )
    elif tally.waited and tally.waited >= _MOSTLY * (tally.frames - tally.discarded):
        yield (
            f"interval={cfg.interval}: {tally.frames - tally.discarded - tally.waited} of "
            f"{tally.frames} frames were inferred; the others have no boxes but a tracker's"
        )
    elif 2 * tally.blank_maps > tally.maps:
        yield (
            f"segmentation-threshold={cfg.segmentation_threshold:g}: {tally.blank_maps} of "
            f"{tally.maps} class maps have no class anywhere; a class has to score higher than that"
        )
    elif cfg.output_image != "none" and tally.frames:
        yield f"output-image={cfg.output_image}: the output is drawn over the frames"
    elif cfg.network_type is NetworkType.OTHER and cfg.output_tensor_meta and tally.frames:
        yield (
            "network-type=100: the outputs are attached as tensors (output-tensor-meta=1), not as "
            "objects; a function behind the model reads them (FrameMeta.tensors)"
        )


def _class_name(objects: ObjectTally, component: int, class_id: int) -> str:
    return class_name(objects.labels.get(component, ()), class_id)


def _object_reasons(
    cfg: ModelConfig, tally: ObjectTally, skipped: Mapping[str, Counter[str]]
) -> Iterable[str]:
    """Why a secondary model inferred on nothing."""
    if not tally.frames:
        return
    if not tally.objects:
        yield (
            f"no objects came from the models before it in {tally.frames} frames, and "
            "process-mode=2 infers on nothing else"
        )
        return
    if not skipped or tally.objects > sum(c.total() for c in skipped.values()):
        return
    # what an object met last says most: it had passed the filters before
    yield from _last_tests(cfg, skipped)
    for key, (width, height) in tally.nearest.items():
        number = skipped[key].total()
        which = f"the {_EXTREMES[key]} of {number} objects" if number > 1 else "the only object"
        yield f"{key}={tally.limits[key]}: {which} is {width:.0f}x{height:.0f} pixels"
    if own := skipped.get("operate-on-class-ids"):
        class_ids = ";".join(map(str, cfg.operate_on_class_ids))
        number = own.total()
        which = "1 object is of another" if number == 1 else f"{number} objects are of others"
        yield f"operate-on-class-ids={class_ids}: {which} ({named(own)})"
    if own := skipped.get("gie-unique-id"):
        text = f"gie-unique-id={cfg.component_id}: {own.total()} objects are of this id itself"
        yield f"{text}, and a detector does not work on its own"
    if own := skipped.get("operate-on-gie-id"):
        makers = sorted({component for component, _ in tally.skipped["operate-on-gie-id"]})
        text = f"operate-on-gie-id={cfg.operate_on_gie_id}: {own.total()} objects are of"
        yield f"{text} gie-unique-id {', '.join(map(str, makers))}"


def _last_tests(cfg: ModelConfig, skipped: Mapping[str, Counter[str]]) -> Iterable[str]:
    if own := skipped.get("tracker"):
        text = f"classifier-async-mode=1 needs tracking ids, and none of {own.total()} objects"
        yield f"{text} has one: put a tracker before {cfg.path.name}"
    if own := skipped.get("crop"):
        text = f"{own.total()} objects leave nothing to crop"
        yield f"{text}: they are outside the frame or less than 2 pixels wide or high"


def _item_reasons(cfg: ModelConfig, tally: ItemTally) -> Iterable[str]:
    """Why a classifier labelled less than half of its items."""
    lost = tally.items - tally.labelled
    if lost <= tally.labelled:
        return
    if tally.best is not None:
        yield (
            f"classifier-threshold={cfg.classifier_threshold:g} is above the scores of "
            f"{lost - tally.unnamed} of {tally.items} items: the best of them is "
            f"{tally.best:.3g} ({named(tally.below)})"
        )
    if tally.unnamed:
        yield (
            f"labelfile-path names none of the classes of {tally.unnamed} of {tally.items} items: "
            "what has no label is not attached"
        )
    if tally.silent:
        yield (
            f"the parser gave {tally.silent} of {tally.items} items no attribute: it gets "
            f"classifier-threshold={cfg.classifier_threshold:g} and may drop them itself"
        )

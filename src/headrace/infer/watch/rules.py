"""Findings of the rules, and the evidence that is enough for one."""

from __future__ import annotations

from headrace._core.findings import Finding

MIN_FRAMES = 4
"""Looks that must show the same before a rule speaks in the middle of a run: one odd frame (a scene
cut, a hand before the camera) is no mistake of a config."""

MIN_BOXES = 20
"""Or as many boxes that do: a frame of twenty impossible boxes needs no second one."""


WATCH_RULES = frozenset((
    "aspect-ratio", "background-class", "boxes-corners", "boxes-cut", "boxes-empty",
    "boxes-full", "boxes-in-0..1", "boxes-inverted", "boxes-odd", "boxes-on-one-point",
    "boxes-outside", "class-without-label", "classes-independent", "fp16-not-tried",
    "fp16-overflow", "fp16-values-lost", "input-colors", "input-range", "input-transposed",
    "labels-moved", "masks-full", "outputs-constant", "outputs-not-finite", "overlaps",
    "parser-silent", "scores-above-1", "scores-alike", "scores-below-0", "threshold-0",
    "threshold-above-all", "too-many-boxes",
))  # fmt: skip
"""Ids of the rules of the watch; other notices have rules, too."""


CAUSES = frozenset((
    "boxes-in-0..1", "boxes-corners", "boxes-odd", "parser-silent", "input-range",
))  # fmt: skip
"""Those that tell why a model finds nothing, as strong responses were seen."""


OF_PARSERS = frozenset((
    "boxes-corners", "boxes-full", "boxes-in-0..1", "boxes-inverted", "boxes-on-one-point",
    "boxes-outside", "scores-above-1", "scores-alike", "scores-below-0",
))  # fmt: skip
"""Those that another parser may mend."""


OF_CROWDS = frozenset((
    "background-class", "clustering-missing", "overlaps", "threshold-0", "too-many-boxes",
))  # fmt: skip
"""Findings of too many boxes: a remedy must leave fewer of them."""


_BOXES = ("HeadraceParseYoloV8", "HeadraceParseYoloV5", "NvDsInferParseCustomYoloV8",
          "NvDsInferParseYoloV11", "NvDsInferParseCustomYoloV7")  # fmt: skip

FINAL_ROWS = {
    **dict.fromkeys(_BOXES, "NvDsInferParseYolo"),
    "HeadraceParseYoloV8Seg": "HeadraceParseYoloEndSeg",
    "HeadraceParseYoloV5Seg": "HeadraceParseYoloEndSeg",
    "HeadraceParseYoloV8Pose": "HeadraceParseYoloEndPose",
    "HeadraceParseYoloObb": "HeadraceParseYoloEndObb",
}
"""Parsers of candidates -> those of the rows that a selection in the graph leaves of them."""


def is_finding(notice: Finding) -> bool:
    """Whether a notice is a finding of the watch."""
    return notice.level == "warning" and notice.code in WATCH_RULES


def enough(frames: int, looks: int, *, boxes: int = 0, final: bool) -> bool:
    """Whether `frames` of `looks` are evidence enough.

    Args:
        frames: looks that show it.
        looks: all looks at which it could have shown.
        boxes: how many boxes showed it.
        final: no more looks will come: a run of a few images is judged by all of them.
    """
    if frames >= MIN_FRAMES or boxes >= MIN_BOXES:
        return True
    return final and 0 < frames == looks

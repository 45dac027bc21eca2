"""Published rules of the original's trackers, as scripts of detections and what is reported.

Each case names its source and how sure it is: `documented` in the maker's manuals or sample files,
`observed` with the original by a public test, `inferred` where the sources leave a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Box = tuple[float, float, float, float]
Detection = tuple[Box, float, int]  # box, confidence, class
Grade = Literal["documented", "observed", "inferred"]

MANUAL = "Gst-nvtracker manual, NvMultiObjectTracker parameter tables"
SAMPLES = "comments of the sample tracker files 6.0 to 6.3"
TESTS = "savant-rs, tests of nvtracker"

GREEDY: Mapping[str, Any] = {
    "minDetectorConfidence": 0.2,
    "maxTargetsPerStream": 10,
    "minIouDiff4NewTarget": 0.5,
    "probationAge": 2,
    "maxShadowTrackingAge": 3,
    "earlyTerminationAge": 1,
    "checkClassMatch": 1,
    "matchingScoreWeight4Iou": 1,
}
CASCADED = {
    **GREEDY,
    "associationMatcherType": 1,
    "tentativeDetectorConfidence": 0.5,
    "minMatchingScore4TentativeIou": 0.3,
}


def at(left: float, top: float = 0, width: float = 100, height: float = 100) -> Box:
    return left, top, width, height


A, B, C = (at(100 + shift, 100, 40, 80) for shift in (0, 200, 400))
HALF_A = at(100, 100, 40, 40)


@dataclass(frozen=True)
class Case:
    """One rule.

    Attributes:
        number, rule: of the case and what it shows.
        frames: frame, from 1 -> detections; frames that are left out have none.
        last: the last frame.
        expected: frame -> what is reported, each object as its label and where it is found; frames
            that are left out report nothing. The first label that appears is the first id.
    """

    number: int
    rule: str
    source: str
    grade: Grade
    base: Mapping[str, Any]
    frames: Mapping[int, Sequence[Detection]]
    expected: Mapping[int, str]
    last: int
    keys: Mapping[str, Any] = field(default_factory=dict)


def seen(frames: Sequence[int] | range, *boxes: Box, conf: float = 0.9, kind: int = 0) -> Any:
    """The same detections in some frames."""
    return {frame: [(box, conf, kind) for box in boxes] for frame in frames}


def out(frames: Sequence[int] | range, labels: str) -> dict[int, str]:
    return dict.fromkeys(frames, labels)


def to(first: int, last: int) -> range:
    return range(first, last + 1)


CASES = [
    Case(1, "a target is reported above its probation age", MANUAL, "documented", GREEDY,
         seen(to(1, 6), A), out(to(3, 6), "X"), 6),
    Case(2, "without probation it is reported at once", TESTS, "observed", GREEDY,
         seen(to(1, 3), A), out(to(1, 3), "X"), 3, {"probationAge": 0}),
    Case(3, "a target on probation ends early", MANUAL, "documented", GREEDY,
         seen([1, 3, 4, 5], A), {5: "X"}, 5),
    Case(4, "the early age is reached, not exceeded; missed frames count as age", MANUAL,
         "inferred", GREEDY, seen([1, 3, 4], A), out([3, 4], "X"), 4, {"earlyTerminationAge": 2}),
    Case(5, "an early end leaves nothing", MANUAL, "documented", GREEDY,
         seen([1, 4, 5, 6], A), {6: "X"}, 6, {"earlyTerminationAge": 2}),
    Case(6, "a target in the shadow is not reported and keeps its id", MANUAL, "documented",
         GREEDY, seen([*to(1, 5), 9], A), out([3, 4, 5, 9], "X"), 9),
    Case(7, "it ends when its shadow age is exceeded", MANUAL, "documented", GREEDY,
         seen([*to(1, 5), *to(10, 12)], A), out(to(3, 5), "X") | {12: "Y"}, 12),
    Case(8, "a match sets the shadow age to zero", MANUAL, "documented", GREEDY,
         seen([*to(1, 5), 8, 12], A), out([3, 4, 5, 8, 12], "X"), 12),
    Case(9, "less sure detections are ignored, equal ones are not", SAMPLES, "documented", GREEDY,
         seen(to(1, 4), A, conf=0.1) | seen(to(5, 8), A, conf=0.2), out([7, 8], "X"), 8),
    Case(10, "a detection that overlaps a target starts none", MANUAL, "documented", GREEDY,
         seen([1, 2], A) | seen(to(3, 6), A, at(110, 100, 40, 80)), out(to(3, 6), "X-"), 6),
    Case(11, "one that overlaps less starts one", MANUAL, "documented", GREEDY,
         seen([1, 2], A) | seen(to(3, 6), A, at(117, 100, 40, 80)),
         out([3, 4], "X-") | out([5, 6], "XY"), 6),
    Case(12, "no more targets than the most", MANUAL, "documented", GREEDY,
         seen(to(1, 6), A, B, C), out(to(3, 6), "XY-"), 6, {"maxTargetsPerStream": 2}),
    Case(13, "targets in the shadow count; the old end before new ones start", MANUAL, "inferred",
         GREEDY, seen(to(1, 5), A, B) | seen(to(6, 13), C),
         out(to(3, 5), "XY") | out(to(11, 13), "Z"), 13, {"maxTargetsPerStream": 2}),
    Case(14, "another class is another target", MANUAL, "documented", GREEDY,
         seen(to(1, 5), A) | seen(to(6, 13), A, kind=1),
         out(to(3, 5), "X") | out(to(11, 13), "Y"), 13),
    Case(15, "unless classes are not compared", MANUAL, "documented", GREEDY,
         seen(to(1, 5), A) | seen(to(6, 9), A, kind=1), out(to(3, 9), "X"), 9,
         {"checkClassMatch": 0}),
    Case(16, "the best pair is taken first, whatever is left of the others", SAMPLES,
         "documented", GREEDY, seen(to(1, 3), at(0), at(54)) | seen(to(4, 6), at(25), at(-34)),
         out(to(1, 3), "XY") | out(to(4, 6), "XZ"), 6,
         {"probationAge": 0, "minMatchingScore4Iou": 0.1}),
    Case(17, "a pair needs the least overlap", MANUAL, "documented", GREEDY,
         seen(to(1, 4), at(0)) | seen(to(5, 8), at(40)), out([3, 4], "X") | out([7, 8], "Y"), 8,
         {"minMatchingScore4Iou": 0.5}),
    Case(18, "and the least similarity of sizes", MANUAL, "inferred", GREEDY,
         seen(to(1, 4), A) | seen(to(5, 8), HALF_A), out([3, 4], "X") | out([7, 8], "Y"), 8,
         {"minMatchingScore4SizeSimilarity": 0.6}),
    Case(19, "the total has to be enough: 0.6 of .43 and 0.4 are not", MANUAL, "documented",
         GREEDY, seen(to(1, 4), at(0)) | seen(to(5, 6), at(40)), out([3, 4], "X"), 6,
         {"matchingScoreWeight4Iou": 0.6, "matchingScoreWeight4SizeSimilarity": 0.4,
          "minMatchingScore4Overall": 0.7}),
    Case(50, "0.6 of .6 and 0.4 are", MANUAL, "documented", GREEDY,
         seen(to(1, 4), at(0)) | seen(to(5, 8), at(25)), out(to(3, 8), "X"), 8,
         {"matchingScoreWeight4Iou": 0.6, "matchingScoreWeight4SizeSimilarity": 0.4,
          "minMatchingScore4Overall": 0.7}),
    Case(20, "the total is not divided by the weights", MANUAL, "inferred", GREEDY,
         seen(to(1, 4), at(0)) | seen(to(5, 6), at(60)), out([3, 4], "X"), 6,
         {"matchingScoreWeight4Iou": 0.3836, "matchingScoreWeight4SizeSimilarity": 0.1365,
          "minMatchingScore4Overall": 0.2543, "minMatchingScore4Iou": 0.2159,
          "minMatchingScore4SizeSimilarity": 0.4019}),
    Case(21, "unsure detections continue active targets", MANUAL, "documented", CASCADED,
         seen(to(1, 5), A) | seen(to(6, 10), A, conf=0.3), out(to(3, 10), "X"), 10),
    Case(22, "and start none", MANUAL, "inferred", CASCADED, seen(to(1, 5), A, conf=0.3), {}, 5),
    Case(23, "and continue none on probation", MANUAL, "documented", CASCADED,
         seen([1, 3, 4, 5], A) | seen([2], A, conf=0.3), {5: "X"}, 5),
    Case(24, "and none in the shadow", MANUAL, "documented", CASCADED,
         seen(to(1, 5), A) | seen(to(7, 11), A, conf=0.3), out(to(3, 5), "X"), 11),
    Case(25, "targets that are valid choose before those on probation", MANUAL, "documented",
         CASCADED, seen(to(1, 4), at(0)) | {5: [(at(0), 0.9, 0), (at(60), 0.9, 0)],
                                            6: [(at(35), 0.9, 0)]},
         out(to(3, 4), "X") | {5: "X-", 6: "X"}, 6, {"minMatchingScore4Iou": 0.1}),
    Case(26, "the stage of probation looks at overlap alone", MANUAL, "documented", CASCADED,
         seen([1], A) | seen(to(2, 4), HALF_A), out([3, 4], "X"), 4,
         {"minMatchingScore4SizeSimilarity": 0.6}),
    Case(27, "with a least overlap of its own", MANUAL, "documented", CASCADED,
         seen([1], at(0)) | seen(to(2, 4), at(60)), {4: "X"}, 4),
    Case(28, "without stages there are no unsure detections", SAMPLES, "inferred", GREEDY,
         seen(to(1, 3), A) | seen(to(4, 6), A, conf=0.3), out(to(3, 6), "X"), 6,
         {"tentativeDetectorConfidence": 0.5}),
]  # fmt: skip

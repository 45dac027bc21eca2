"""Data of an explanation, as JSON has it. Boxes are left, top, width, height in frame pixels."""

from __future__ import annotations

from msgspec import field

from headrace._core.findings import Data
from headrace._core.json_record import JsonRecord

Box = tuple[float, float, float, float]


class TensorStats(JsonRecord, frozen=True):
    """Statistics of one tensor of one item.

    Attributes:
        name, dtype: of the tensor.
        shape: its axes without the batch.
        minimum, maximum, mean, std: of the finite values; None if there are none.
        nan, infinite: how many values are not finite.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nan: int = 0
    infinite: int = 0


class ClassStages(JsonRecord, frozen=True):
    """Boxes of one class that are left after each step.

    Attributes:
        class_id, label: the class.
        candidates: boxes with at least the lowest score looked for.
        threshold: those that the pre-cluster threshold lets pass.
        cluster: left by clustering and the post-cluster threshold.
        topk: left by `topk`.
        objects: left by the filters: attached to the frame.
    """

    class_id: int
    label: str
    candidates: int
    threshold: int
    cluster: int
    topk: int
    objects: int


class Verdict(JsonRecord, frozen=True):
    """The decision on one candidate or object.

    Attributes:
        stage: `threshold`, `cluster`, `topk`, `filter` or `object`; `skipped` for an object that a
            secondary model leaves out.
        text: the figures: `score 0.31 < pre-cluster-threshold=0.4`.
        key: the config key, or the name of a rule without one; None for an object.
        where: file and line of the key, or the option that set it; None for a default.
        fix: the change that lets it pass, or an empty text.
        value, limit: the numbers compared, if there are any.
        change: the same change as keys and values, null for a key to leave out.
        outcome: what the change gives in this frame and those beside it; empty if it was not tried.
    """

    stage: str
    text: str
    key: str | None = None
    where: str | None = None
    fix: str = ""
    value: float | None = None
    limit: float | None = None
    change: Data = field(default_factory=dict)
    outcome: str = ""

    def __str__(self) -> str:
        where = f" ({self.place})" if self.where else ""
        tried = f" (with it: {self.outcome})" if self.outcome else ""
        return f"{self.text}{where}" + (f": {self.fix}{tried}" if self.fix else "")

    @property
    def place(self) -> str:
        """`where` without folders."""
        return (self.where or "").rpartition("/")[2]


class CandidateFate(JsonRecord, frozen=True):
    """One candidate with the decision on it.

    Attributes:
        item: the object in whose crop it was found, or -1.
        row: its index among the candidates of that item.
        class_id, label, score: of the box.
        box: in the frame, neither cut nor moved.
        verdict: the decision.
        next: the decision of the later steps if its threshold let it pass; None where it does, and
            where it would become an object.
        others: dropped candidates of its class that overlap it.
        telling: True if it may be an object: its score is not far below the threshold, and no
            later step would drop it.
    """

    item: int
    row: int
    class_id: int
    label: str
    score: float
    box: Box
    verdict: Verdict
    next: Verdict | None = None
    others: int = 0
    telling: bool = True

    @property
    def name(self) -> str:
        """Label, score and box in one line: `car 0.31 at 12,30 50x60`."""
        left, top, width, height = self.box
        inside = f" in object {self.item}" if self.item >= 0 else ""
        location = f"{left:.0f},{top:.0f} {width:.0f}x{height:.0f}"
        return f"{self.label} {self.score:.3g} at {location}{inside}"

    def __str__(self) -> str:
        more = f"; then {self.next}" if self.next is not None else ""
        others = f" (and {self.others} around it)" if self.others else ""
        return f"{self.name}{others}: {self.verdict}{more}"


class SkippedObject(JsonRecord, frozen=True):
    """An object that a secondary model did not infer on.

    Attributes:
        object: its number in the frame.
        label: its class.
        box: its rectangle.
        verdict: the key that left it out.
    """

    object: int
    label: str
    box: Box
    verdict: Verdict

    def __str__(self) -> str:
        left, top, width, height = self.box
        location = f"{left:.0f},{top:.0f} {width:.0f}x{height:.0f}"
        return f"object {self.object} ({self.label}) at {location}: {self.verdict}"


class ClassScore(JsonRecord, frozen=True):
    """Score of one class of a classifier, or share of one class of a class map, 0 to 1."""

    class_id: int
    label: str
    score: float


class ItemResult(JsonRecord, frozen=True):
    """Result of a classifier or a segmentation network on one item.

    Attributes:
        object: the object that the item shows, or -1 for the whole frame.
        text: the result in words.
        attached: True if the frame's metadata has a result.
        classes: best scores of a classifier, or shares of a class map; the largest first.
        verdict: the reason why nothing is attached, or None.
    """

    object: int
    text: str
    attached: bool
    classes: tuple[ClassScore, ...] = ()
    verdict: Verdict | None = None


class PlaceAnswer(JsonRecord, frozen=True):
    """The answer to the question about one place of the frame.

    Attributes:
        sentence: the verdict.
        history: the best candidates there, best first, with those that suppressed them.
        skipped: objects there that a secondary model left out.
    """

    sentence: str
    history: tuple[CandidateFate, ...] = ()
    skipped: tuple[SkippedObject, ...] = ()


class ModelExplanation(JsonRecord, frozen=True):
    """One model on one frame.

    Attributes:
        name, config: of the model's config.
        kind: of network, in the words of `network-type`.
        secondary: True if it works on objects.
        items: frames or objects that it inferred on.
        objects: objects that it attached.
        verdict: one sentence: the outcome, and the main cause if something is missing.
        reasons: more causes, one line each.
        findings: those of the plausibility watch, as `Finding.to_json` gives them.
        floor: the lowest score of a candidate.
        classes: of a detector: boxes left after each step, by class.
        dropped: the best candidates that did not become objects, doubles left out.
        skipped: objects that it did not infer on.
        results: of a classifier or segmentation network, by item.
        inputs, outputs: statistics of the first item's tensors.
        place: the answer about the place asked for.
    """

    name: str
    config: str
    kind: str
    secondary: bool
    items: int
    objects: int
    verdict: str
    reasons: tuple[str, ...] = ()
    findings: tuple[Data, ...] = ()
    floor: float = 0.0
    classes: tuple[ClassStages, ...] = ()
    dropped: tuple[CandidateFate, ...] = ()
    skipped: tuple[SkippedObject, ...] = ()
    results: tuple[ItemResult, ...] = ()
    inputs: tuple[TensorStats, ...] = ()
    outputs: tuple[TensorStats, ...] = ()
    place: PlaceAnswer | None = None


class FrameExplanation(JsonRecord, frozen=True):
    """One frame through all models.

    Attributes:
        source: name of the source, without credentials.
        frame: number of the frame, from 0.
        width, height: of the frame in pixels.
        at: the place asked for: a point with no size, or a box; None if none was.
        models: in the order in which they run.
        notices: decisions from the opening on, as `Finding.to_json` gives them.
    """

    source: str
    frame: int
    width: int
    height: int
    at: Box | None
    models: tuple[ModelExplanation, ...]
    notices: tuple[Data, ...] = ()

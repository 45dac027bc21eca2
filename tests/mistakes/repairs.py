"""What `headrace repair` makes of the planted mistakes: whose boxes come back, and who is worse.

A mistake is counted if it changes a box: the run ends with other boxes than the right set-up, or
does not start. It can be undone by keys if the right keys, set in the case's config, bring the
boxes back: labels, parsers, models and source files stay as they are in the case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from headrace._core.errors import HeadraceError
from headrace.config import ModelConfig
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.diagnose.repair import Repair, repair
from headrace.diagnose.repair.setup_runs import SetupRuns
from headrace.media import open_source
from headrace.meta.detections import overlaps
from tests.mistakes.cases import Case

IOU = 0.9
"""Overlap of a box with that of the right set-up; the class is the same."""

_CONFIGS = (".txt", ".yml", ".onnx")

_NO_LIMIT = float("inf")
"""Seconds of a search: on a busy machine a limit would end it elsewhere at each run."""

KEPT = frozenset((
    "classifier-labels-in-lines", "classifier-labels-too-few",
    "classifier-without-labels", "own-parser-counts-from-1",
    "own-parser-swaps-axes", "yaml-in-a-txt", "ini-in-a-yml", "equals-in-yaml",
    "bare-without-scale", "engine-alone-of-another-model",
))  # fmt: skip
"""Mistakes that `repair` leaves as they are: the fault is in no key, or stays undecided."""

RIGHT_BY_OPTIONS = frozenset(("bare-head-chosen", "bare-scale-chosen", "scale-set"))
"""Right set-ups that are right by `--set` only, which `repair` does not take."""

UNDOABLE = {
    "export-in-0..1": "HeadraceParseYoloV8Unit",
    "export-of-corners": "HeadraceParseYoloCorners",
    "bare-of-corners": "HeadraceParseYoloCorners",
}
"""Mistakes beside the keys that other keys than the right ones undo."""

Fate = Literal["repaired", "undecided", "wrong", "same boxes", "not by keys", "nothing"]


@dataclass(frozen=True)
class Verdict:
    """What came of one case.

    Attributes:
        name: of the case.
        fate: `repaired` has the truth's boxes, `wrong` others; the rest wrote nothing.
        before, after: the share of boxes that are right.
        words: the reason that `repair` gives.
        undoable: some keys bring the boxes back.
    """

    name: str
    fate: Fate
    before: float
    after: float
    words: str
    undoable: bool = True

    @property
    def worse(self) -> bool:
        return self.after < self.before - 1e-9

    def __str__(self) -> str:
        return f"{self.fate:<12} {self.name} {self.before:.2f} -> {self.after:.2f}: {self.words}"


def verdict(case: Case, folder: Path, store: Path) -> Verdict:
    """Run `repair` on a case, and compare its boxes with those of the right set-up.

    Args:
        case: a planted mistake in the only, or in the first, config.
        folder: a new one.
        store: see `fill`.
    """
    right = Case("", case.setup, scene=case.scene)
    right.write(folder / "right", store)
    case.write(folder / "case", store)
    path, source = _judged(case, folder / "case")
    truth = _boxes(_judged(right, folder / "right")[0], source)
    before = _share(truth, _boxes(path, source))
    undoable = _undoable(case, folder, store)
    text = path.read_bytes()
    try:
        found = repair(path, str(source), frames=len(truth), seconds=_NO_LIMIT)
    except HeadraceError as error:
        assert path.read_bytes() == text
        fate: Fate = "not by keys" if not undoable else "undecided"
        return Verdict(case.name, fate, before, before, f"{error:brief}", undoable)
    assert path.read_bytes() == text
    if found.outcome != "chosen":
        return _kept(case, found, before, undoable=undoable)
    written = found.write(folder / "case" / "repaired.txt" if path.suffix == ".onnx" else None)
    after = _share(truth, _boxes(written, source))
    fate = "repaired" if after == 1 else "wrong"
    return Verdict(case.name, fate, before, after, found.reason, undoable or fate == "repaired")


def _kept(case: Case, found: Repair, before: float, *, undoable: bool) -> Verdict:
    fate: Fate = "same boxes" if before == 1 else "not by keys"
    if before < 1 and undoable:
        fate = "undecided" if found.outcome == "undecided" else "nothing"
    return Verdict(case.name, fate, before, before, found.reason, undoable)


def _judged(case: Case, folder: Path) -> tuple[Path, Path]:
    """The config that `repair` is asked about, the first of several, and the source."""
    names = list(case.setup.configs)
    if len(names) < 2:
        words = [str(word) for word in (*case.command, *case.setup.command, *names)]
        names = [w for w in words if w.endswith(_CONFIGS) and (folder / w).exists()]
    return folder / names[0], folder / "images"


def _undoable(case: Case, folder: Path, store: Path) -> bool:
    """Whether the right keys bring the boxes back, everything else being as in the case."""
    if case.name in UNDOABLE:
        return True
    last = next(reversed(case.setup.configs), "")
    if not case.setup.configs or last != next(iter(case.setup.configs)):
        return False
    if last in case.files:
        return False
    mended = folder / "mended"
    replace(case, keys={}).write(mended, store)
    path, source = _judged(case, mended)
    right, _ = _judged(Case("", case.setup), folder / "right")
    return _share(_boxes(right, source), _boxes(path, source)) == 1


def _boxes(path: Path, source: Path) -> list[Scored]:
    """The objects of each image; none where the config does not run."""
    frames = list(open_source(str(source)))
    with SetupRuns(frames) as runs:
        try:
            run = runs.run(ModelConfig.load(path))
        except HeadraceError:
            return [Scored.of([], [], []) for _ in frames]
    if run.error is not None:
        return [Scored.of([], [], []) for _ in frames]
    return [Scored.of(m.objects.rects, m.objects.class_ids, m.objects.confidences)
            for m in run.metas]  # fmt: skip


def _share(truth: list[Scored], boxes: list[Scored]) -> float:
    """The share of true boxes that are there, and of boxes that are true: the smaller."""
    found = wanted = given = 0
    for right, here in zip(truth, boxes, strict=True):
        near = overlaps(right.boxes, here.boxes) >= IOU
        near &= right.class_ids[:, None] == here.class_ids[None]
        found += min(int(near.any(axis=1).sum()), int(near.any(axis=0).sum()))
        wanted += len(right.boxes)
        given += len(here.boxes)
    return found / max(wanted, given) if wanted or given else 1.0

"""A set-up that was tried, and its difference from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.diagnose.evaluate.box_matching import Scored, agreement
from headrace.diagnose.lint.fixes import keys_of
from headrace.diagnose.repair.plausibility import Plausibility
from headrace.diagnose.repair.usual import Cure
from headrace.infer.trial import Change

if TYPE_CHECKING:
    from headrace._core.errors import HeadraceError
    from headrace.config import ModelConfig
    from headrace.diagnose.repair.setup_runs import SetupRun

_SAME = 0.9  # agreement of boxes of set-ups that find the same


@dataclass(slots=True, eq=False)
class Candidate:
    """A set-up that was tried.

    Attributes:
        change: keys that differ from the file.
        cures: where they come from.
        text: the file with them.
        config: what it says; None if it is refused, for the reason in `refusal`.
        run: what it finds.
        plausibility: of that.
        looked_twice: the watch has tried other readings of its outputs, too.
        prior: factor of what speaks for it before it is tried.
    """

    change: Change
    cures: tuple[Cure, ...]
    text: bytes
    config: ModelConfig | None
    run: SetupRun | None
    plausibility: Plausibility
    prior: float = 1.0
    refusal: HeadraceError | None = None
    looked_twice: bool = False

    @property
    def score(self) -> float:
        """Plausibility times prior."""
        return self.plausibility.score * self.prior

    @property
    def firm(self) -> bool:
        """Whether the model's file or a finding speaks for each of its changes."""
        return all(cure.firm for cure in self.cures)

    def same_boxes(self, other: Candidate) -> bool:
        """Whether both find the same objects, as far as they are sure of them."""
        if self.run is None or other.run is None:
            return self.run is other.run
        mine, theirs = _scored(self.run), _scored(other.run)
        if len(mine) != len(theirs):
            return False
        return all(
            not len(a.boxes) or np.nan_to_num(agreement([a], [b], score=_sure(a), iou=0.8)) >= _SAME
            for a, b in (*zip(mine, theirs, strict=True), *zip(theirs, mine, strict=True))
        )


def _sure(side: Scored) -> float:
    return min(0.5, 0.7 * float(side.scores.max(initial=0.0)))


def _scored(run: SetupRun) -> list[Scored]:
    return [Scored.of(m.objects.rects, m.objects.class_ids, m.objects.confidences)
            for m in run.metas]  # fmt: skip


def text_change(before: bytes, after: bytes) -> dict[str, str | None]:
    """The keys in which two texts of a config differ, with the values of the second.

    A key without a group counts as one of [property].
    """
    old, new = ({key.removeprefix("."): value for key, value in keys_of(text).items()}
                for text in (before, after))  # fmt: skip
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    return {**dict.fromkeys(key for key in old if key not in new), **changed}


def change_words(change: Change) -> str:
    """A change in words: `net-scale-factor=1, without offsets`; empty if there is none."""
    words = [f"{key}={value}" if value is not None else f"without {key}"
             for key, value in change.items()]  # fmt: skip
    return ", ".join(words)

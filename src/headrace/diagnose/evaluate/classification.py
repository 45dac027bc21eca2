"""Scores of a classifier: top-1, top-5, classes, confusion, and its surest mistakes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.findings import Finding
from headrace._core.json_record import finite_row
from headrace._core.text import quoted
from headrace.diagnose.evaluate.box_matching import Ints
from headrace.diagnose.evaluate.class_map import ClassMap, plain
from headrace.diagnose.evaluate.confusion import Confusion, confusion_of, mean_of
from headrace.diagnose.evaluate.datasets.dataset import Dataset
from headrace.diagnose.evaluate.running import EvaluationOptions, EvaluationRun, run_over

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.media import Frame
    from headrace.meta import FrameMeta

WORST = 12


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """An image that was taken for another class.

    Attributes:
        place: of the image in the data set.
        true, found: names; `found` is the model's label, "" for no answer.
        confidence: of the answer.
    """

    place: int
    true: str
    found: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ClassAnswers:
    """Figures of one class of a classifier; NaN where it does not occur.

    Attributes:
        name: of the data set.
        images: true ones.
        accuracy: share of them with the right answer.
        precision: share of the answers with this class that are right.
    """

    name: str
    images: int
    accuracy: float
    precision: float


@dataclass(frozen=True, slots=True)
class ClassificationScores:
    """Figures of a classifier on a data set at any confidence; shares are 0 to 1.

    Attributes:
        top1: share of the images with the right answer.
        top5: share with the right class among the five likeliest; NaN where it cannot be known.
        classes: those that both model and data set have.
        confusion: of the answers.
        threshold: the config's `classifier-threshold`.
        answered: share of the images whose answer is above it.
        right_of_answered: share of those that is right.
        worst: the surest wrong answers, at most 12.
    """

    top1: float
    top5: float
    classes: tuple[ClassAnswers, ...]
    confusion: Confusion
    threshold: float
    answered: float
    right_of_answered: float
    worst: tuple[WrongAnswer, ...] = field(repr=False)

    @property
    def headline(self) -> dict[str, float]:
        """The figures to compare by, in their order."""
        return {
            "top-1": self.top1,
            "top-5": self.top5,
            "mean of classes": mean_of(c.accuracy for c in self.classes),
            "answered": self.answered,
            "right of answered": self.right_of_answered,
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "threshold": self.threshold,
            "classes": [finite_row(c, 6) for c in self.classes],
            "confusion": self.confusion.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class _Answer:
    class_id: int  # of the data set; -1 for none
    label: str
    confidence: float
    ranked: tuple[int, ...] | None  # classes of the data set, likeliest first; None if not known


class _AnswerCollector:
    def __init__(self, attribute: int, labels: Sequence[str], classes: ClassMap) -> None:
        self.answers: dict[int, _Answer] = {}
        self._attribute, self._labels, self._classes = attribute, labels, classes

    def __call__(self, index: int, frame: Frame, meta: FrameMeta) -> None:
        ranked = self._ranked(meta)
        for infos in meta.objects.classifiers.values():
            for info in (i for one in infos for i in one.labels):
                if info.attribute == self._attribute:
                    class_id = self._classes.class_of(info.label, info.value)
                    if ranked and ranked[0] != class_id:  # a parser that does not take the largest
                        ranked = None
                    label = info.label or f"class {info.value}"
                    self.answers[index] = _Answer(class_id, label, info.confidence, ranked)
                    return
        if self._labels or meta.objects.classifiers or ranked is None:
            self.answers[index] = _Answer(-1, "", 0.0, ranked)
        else:  # without a label file nothing is attached
            score = float(self._scores(meta).max())
            self.answers[index] = _Answer(ranked[0], f"class {ranked[0]}", score, ranked)

    def _scores(self, meta: FrameMeta) -> Any:
        tensors = meta.tensors
        layers = list(tensors[0].layers.values()) if tensors else []
        data = layers[self._attribute].data if self._attribute < len(layers) else np.zeros(0)
        return np.ravel(data) if data.size == max(data.shape, default=0) else np.zeros(0)

    def _ranked(self, meta: FrameMeta) -> tuple[int, ...] | None:
        scores = self._scores(meta)
        if len(scores) < 2 or not np.isfinite(scores).all():
            return None
        best = np.argsort(-scores, kind="stable")[:5].tolist()
        labels = [self._labels[i] if i < len(self._labels) else "" for i in best]
        return tuple(map(self._classes.class_of, labels, best))


def evaluate_classifier(
    cfg: ModelConfig,
    dataset: Dataset,
    attribute: int,
    labels: Sequence[str],
    classes: ClassMap,
    options: EvaluationOptions,
) -> tuple[ClassificationScores, EvaluationRun]:
    """Run a classifier on whole images, and score it.

    Args:
        cfg: for whole images.
        dataset: with a class for each image.
        attribute: number of the output that is scored.
        labels: of that output; () if it has none.
        classes: of the model, as the data set numbers them.
        options: how to run.

    Raises:
        HeadraceError: the model cannot be run; see `run_over`.
    """
    collector = _AnswerCollector(attribute, labels, classes)
    low = cfg.with_overrides(classifier_threshold=0.0, output_tensor_meta=True)
    run = run_over(low, dataset, collector, options)
    known = set(classes.known.tolist())
    indices = [p for p in sorted(collector.answers) if dataset.images[p].truth in known]
    answers = [collector.answers[p] for p in indices]
    names = dataset.classes
    true: list[int] = [t for p in indices if isinstance(t := dataset.images[p].truth, int)]
    confusion = confusion_of(names, true, [a.class_id for a in answers])
    rows: Ints = confusion.counts.sum(axis=1)
    listed = tuple(
        ClassAnswers(
            names[k],
            int(rows[k]),
            float(confusion.recalls[k]),
            float(confusion.precisions[k]),
        )
        for k in sorted(known)
    )
    right = np.array([a.class_id == t for a, t in zip(answers, true, strict=True)], bool)
    bound = np.float32(cfg.classifier_threshold)
    sure = np.array([np.float32(a.confidence) > bound for a in answers], bool)
    ranked = [a.ranked for a in answers if a.ranked is not None]
    top5 = math.nan
    if answers and len(ranked) == len(answers):
        top5 = float(np.mean([t in r for t, r in zip(true, ranked, strict=True)]))
    else:
        text = "top-5 is not known: the model gives no score for each class"
        run.notices.append(Finding("scores-absent", "info", text, str(cfg.path)))
    wrong = [i for i in range(len(answers)) if not right[i]]
    wrong.sort(key=lambda i: -answers[i].confidence)
    worst = tuple(
        WrongAnswer(indices[i], names[true[i]], answers[i].label, answers[i].confidence)
        for i in wrong[:WORST]
    )
    return ClassificationScores(
        _mean(right),
        top5,
        listed,
        confusion,
        cfg.classifier_threshold,
        _mean(sure),
        _mean(right[sure]),
        worst,
    ), run


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else math.nan


def best_attribute(
    records: Sequence[Sequence[str]], dataset: Dataset, where: str
) -> tuple[int, list[Finding]]:
    """The output of a classifier with the most labels among the data set's classes.

    Args:
        records: labels of each output.
        dataset: with class names.
        where: the config.
    """
    if len(records) < 2:
        return 0, []
    names = set(map(plain, dataset.classes))
    hits = [len(names & set(map(plain, labels))) for labels in records]
    chosen = int(np.argmax(hits))
    shown = ", ".join(quoted(x) for x in records[chosen][:5])
    text = f"the model has {len(records)} outputs: number {chosen} is scored ({shown})"
    return chosen, [Finding("output-chosen", "info", text, where)]

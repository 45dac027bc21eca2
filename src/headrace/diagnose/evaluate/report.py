"""Results of an evaluation: of each config, and side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.json_record import finite
from headrace.diagnose.evaluate.class_map import ClassMap
from headrace.diagnose.evaluate.classification import ClassificationScores
from headrace.diagnose.evaluate.datasets.dataset import Dataset
from headrace.diagnose.evaluate.detection import DetectionScores
from headrace.diagnose.evaluate.figures import compared
from headrace.diagnose.evaluate.segmentation import SegmentationScores

Scores: TypeAlias = DetectionScores | ClassificationScores | SegmentationScores


@dataclass(frozen=True, slots=True)
class ConfigScores:
    """The outcome of one config on a data set.

    Attributes:
        name: of the config, distinct in its report.
        path: of the config.
        profile: whose rules it ran by.
        scores: its figures; `headline` has those to compare by.
        images: how many were scored.
        fps: frames a second, decoding included.
        classes: which class of the model is which of the data set.
        notices: decisions of its run.
    """

    name: str
    path: Path
    profile: str
    scores: Scores
    images: int
    fps: float
    classes: ClassMap
    notices: tuple[Finding, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "config": str(self.path),
            "name": self.name,
            "profile": self.profile,
            "images": self.images,
            "fps": round(self.fps, 2),
            "figures": {name: finite(value, 6) for name, value in self.scores.headline.items()},
            **self.scores.to_dict(),
            "class_map": {
                "by": self.classes.by,
                "only_model": list(self.classes.only_model),
                "only_dataset": list(self.classes.only_dataset),
            },
            "notices": [n.to_json() for n in self.notices],
        }


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The outcome of one or several configs on the same images.

    Attributes:
        dataset: images and truth.
        results: one for each config, in the given order; the first is what others differ from.
    """

    dataset: Dataset
    results: tuple[ConfigScores, ...] = field(default=())

    def __getitem__(self, index: int) -> ConfigScores:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def notices(self) -> list[Finding]:
        """Those of the data set and of all runs, each once."""
        runs = (n for result in self.results for n in result.notices)
        return list(dict.fromkeys([*self.dataset.notices, *runs]))

    @property
    def figures(self) -> list[str]:
        """Names of the figures that any of the configs has, in order."""
        return list(dict.fromkeys(n for r in self.results for n in r.scores.headline))

    def below(self, bounds: dict[str, float]) -> list[str]:
        """Each figure of each config that is below its bound, in words; NaN is below any.

        Args:
            bounds: name of a figure -> its least value.

        Raises:
            HeadraceError: the configs have no such figure.
        """
        shortfalls = []
        for name, bound in bounds.items():
            if name not in self.figures:
                raise HeadraceError(
                    f"there is no {name} of this data set",
                    expected=f"one of {', '.join(self.figures)}",
                )
            for result in self.results:
                value = result.scores.headline[name]
                if not value >= bound:
                    shortfalls.append(f"{result.name}: {name} {value:.4f} is below {bound:g}")
        return shortfalls

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, the `--json` form of `headrace eval`."""
        return {
            "dataset": {
                "name": self.dataset.name,
                "kind": self.dataset.kind,
                "images": len(self.dataset.images),
                "classes": list(self.dataset.classes),
                "notices": [n.to_json() for n in self.dataset.notices],
            },
            "results": [r.to_dict() for r in self.results],
        }

    def write_html(self, path: str | PathLike[str]) -> Path:
        """Write the report as one HTML file with its images inside.

        Raises:
            MediaError: the file cannot be written; an image cannot be read any more.
        """
        from headrace._core.pages import write_page
        from headrace.diagnose.evaluate.page import evaluation_page

        return write_page(path, evaluation_page(self))

    def __repr__(self) -> str:
        first = [f"{r.name} {_first(r)}" for r in self.results]
        return f"EvaluationReport({len(self.dataset.images)} images; {', '.join(first)})"

    def _repr_html_(self) -> str:
        """The figures side by side, for notebooks."""
        from headrace._core.html import paragraph, table

        heads = ("", *(r.name for r in self.results))
        return paragraph(repr(self)) + table(heads, self.rows())

    def rows(self) -> list[list[str]]:
        """A row of texts for each figure: its name, and its value of each config.

        From the second config on, the difference from the first stands behind it in brackets.
        """
        columns = [r.scores.headline for r in self.results]
        table = [[name, *compared([c.get(name) for c in columns])] for name in self.figures]
        table.append(["images", *(f"{r.images:,}" for r in self.results)])
        return [*table, ["images/s", *(f"{r.fps:.1f}" for r in self.results)]]


def _first(result: ConfigScores) -> str:
    name, value = next(iter(result.scores.headline.items()))
    return f"{name} {value:.3f}"

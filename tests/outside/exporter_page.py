"""The page of exporters' forms: what `tests.outside.exporter_forms` found, as a table."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.outside.exporter_forms import Answer

_CALIBRATED = "ultralytics_cal"
"""The same forms again, with other weights: they count for the comparison alone."""
_STATES = {
    "read": "recognised",
    "asked": "asked: several heads read outputs like these",
    "unread": "no built-in parser",
    "refused": "refused, with the reason",
    "wrong": "read wrongly",
}
_CUT = re.compile(
    r" tools/| export| deploy/| utils[/.]| \+ |;| \(|, | scripts/| detection/| convert"
)
_HEAD = """\
# Forms of exporters

Exporters write the same head in many forms: raw or with suppression inside, rows or columns, pixels
or 0..1, with or without names. This page lists what a [bare model](bare-models.md) of each form is
read as, without a config and without a hint. {forms} forms of {exporters} exporters:

{counts}

The files have random weights: those of exporters that can be installed are written by them, with
their sizes and their metadata; those of the others are graphs with the same names, shapes, types
and operators ("same shape"). What a file does not say of its images (size, scaling) is asked, and
answered by the notes of the form to see how the outputs are read then: the column "asked" names it.
Scaling that is read from first layers of random weights need not be the exporter's.{kept}

{equal} forms give what a runtime of their own, or its published decoding, gives: on the same image
and the same file, with random weights whose answers were spread, both find the same boxes (IoU 0.99
or more), classes and scores (within 1e-3) at a low threshold, or the same probabilities or class
maps. {compared} forms could be compared; {differ} differ, and {unsteady} are unsteady: their
program finds other boxes itself when ONNX Runtime runs the same file without its optimisations,
since random weights answer rounding so. Of a raw row its best class is compared: LibreYOLO lists
the row once for each class above the threshold. Overlaps were left in where neither the graph nor
the parser suppresses them: nvinfer clips boxes to the image before it suppresses, other programs do
so afterwards.

`python -m tests.outside.exporter_forms INDEX.csv --page docs/exporter-forms.md` writes this page
from files at hand, `tests/outside/exporter_runtimes.py` compares them.

| exporter | task | forms | read as | asked | equal to its runtime |
|---|---|---|---|---|---|
"""


_KEPT = """
Files of {forms} forms were not at hand when the page was last written: their rows are kept."""


class Row(NamedTuple):
    """A line of an earlier page."""

    name: str
    task: str
    forms: tuple[str, ...]
    read: str
    keys: str
    said: str

    @property
    def state(self) -> str:
        """The state that the words stand for."""
        return next((state for state, words in _STATES.items() if words == self.read), "read")

    @property
    def compared(self) -> tuple[int, int]:
        """How many forms give what their runtime gives, and how many were compared."""
        equal, _, all_ = self.said.partition(" of ")
        return (int(equal), int(all_)) if all_ else (0, 0)


def rows_of(path: Path | None) -> list[Row]:
    """The lines of a page; empty without one."""
    lines = path.read_text().splitlines() if path else []
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [Row(c[0], c[1], tuple(c[2].split(", ")), *c[3:]) for c in cells
            if len(c) == 6 and c[0] != "exporter" and not c[0].startswith("-")]  # fmt: skip


def without(rows: Iterable[Row], made: set[tuple[str, str, str]]) -> list[Row]:
    """Rows without the forms that are at hand; what was compared is of all forms of a row."""
    left = []
    for row in rows:
        forms = tuple(f for f in row.forms if (row.name, row.task, f) not in made)
        if forms:
            said = row.said if forms == row.forms else ""
            left.append(row._replace(forms=forms, said=said))
    return left


class Writer(NamedTuple):
    """Exporter and version of a line of the forms that are known."""

    name: str
    version: str


def writers(path: Path | None) -> dict[str, Writer]:
    """Line of FORMS.csv -> its exporter; empty without the file."""
    if path is None:
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        str(number): Writer(_CUT.split(row["exporter"])[0], row["version"])
        for number, row in enumerate(rows, 2)
    }


def results(paths: Iterable[Path]) -> dict[str, str]:
    """Path of a model -> what the comparison with its runtime gave."""
    found = {}
    for path in paths:
        with path.open(newline="") as file:
            found |= dict(csv.reader(file))
    return found


def page(
    answers: Sequence[Answer], known: Mapping[str, Writer], equal: Mapping[str, str],
    earlier: Iterable[Row] = (),
) -> str:  # fmt: skip
    """Markdown of the page; `earlier` are lines of forms whose files may not be at hand."""
    listed = [one for one in answers if one.row["family"] != _CALIBRATED]
    compared, unsteady = _compared(answers, equal)
    groups: dict[tuple[str, ...], list[Answer]] = defaultdict(list)
    for one in listed:
        writer = known.get(one.row["csv_line"], Writer(one.row["family"], ""))
        how = one.words.partition(":")[0] if one.state in ("read", "wrong") else ""
        how = f"`{how}`" if how.startswith(("Headrace", "NvDs")) else how
        groups[writer.name, one.row["task"], one.state, how, _asked(one)].append(one)
    rows = []
    for (name, task, state, how, keys), ones in groups.items():
        states = [compared[k] for one in ones if (k := _key(one)) in compared]
        said = f"{sum(states)} of {len(states)}" if states else ""
        read = how if state == "read" else _STATES[state]
        rows.append(Row(name, task, tuple(map(_form, ones)), read, keys, said))
    made = {(row.name, row.task, form) for row in rows for form in row.forms}
    kept = without(earlier, made)
    rows = _joined([*rows, *kept])
    lines = [f"| {row.name} | {row.task} | {', '.join(row.forms)} | {row.read} | {row.keys} | "
             f"{row.said} |" for row in rows]  # fmt: skip
    counts, pairs = Counter[str](), [row.compared for row in rows]
    for row in rows:
        counts[row.state] += len(row.forms)
    old = sum(len(row.forms) for row in kept)
    table = [f"| {_STATES[state]} | {counts[state]} |" for state in _STATES]
    head = _HEAD.format(
        forms=counts.total(), exporters=len({row.name for row in rows}),
        equal=sum(same for same, _ in pairs), kept=_KEPT.format(forms=old) if old else "",
        compared=sum(all_ for _, all_ in pairs) + unsteady, unsteady=unsteady,
        differ=sum(all_ - same for same, all_ in pairs),
        counts="\n".join(["| outputs | forms |", "|---|---|", *table]),
    )  # fmt: skip
    return head + "\n".join(lines) + "\n"


def _joined(rows: Iterable[Row]) -> list[Row]:
    """Rows that differ in their forms alone as one, in order."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.name, row.task, row.state, row.read, row.keys].append(row)
    joined = []
    for _, ones in sorted(found.items(), key=lambda pair: pair[0]):
        equal, all_ = (
            sum(numbers) for numbers in zip(*(one.compared for one in ones), strict=True)
        )
        forms = tuple(form for one in ones for form in one.forms)
        said = f"{equal} of {all_}" if all_ else ""
        joined.append(ones[0]._replace(forms=forms, said=said))
    return joined


def _key(one: Answer) -> tuple[str, str]:
    return one.row["family"].removesuffix("_cal"), one.row["form"]


def _compared(
    answers: Iterable[Answer], equal: Mapping[str, str]
) -> tuple[dict[tuple[str, str], bool], int]:
    """Forms that were compared, and whether one of their files gave the same; and how many more
    have unsteady files alone."""
    found: dict[tuple[str, str], bool] = {}
    unsteady = set()
    for one in answers:
        said = equal.get(one.row["path"], "")
        if said.startswith("unsteady"):
            unsteady.add(_key(one))
        if said.startswith(("equal", "differs")):
            found[_key(one)] = found.get(_key(one), False) or said.startswith("equal")
    return found, len(unsteady - found.keys())


def _form(one: Answer) -> str:
    shape = " (same shape)" if "same shape" in one.row["notes"] else ""
    return one.row["form"] + shape


def _asked(one: Answer) -> str:
    return one.images.removeprefix("asked: ") if one.images.startswith("asked") else ""

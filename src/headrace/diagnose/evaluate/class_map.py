"""Which class of a model is which class of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.diagnose.evaluate.box_matching import Ints

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ClassMap:
    """The classes of a model, as a data set numbers them.

    Attributes:
        table: (C,) class of the data set for each class of the model, -1 for none.
        names: class of the data set by the model's label in plain letters.
        by: how they were found.
        only_model: labels that the data set has no class for: their objects do not count.
        only_dataset: classes that the model has no label for: they do not count either.
        notices: the same in words.
    """

    table: Ints
    names: Mapping[str, int]
    by: Literal["name", "index"]
    only_model: tuple[str, ...] = ()
    only_dataset: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()

    def classes_of(self, class_ids: npt.NDArray[np.integer]) -> Ints:
        """(N,) classes of the data set for class ids of the model, -1 where there is none."""
        inside = (class_ids >= 0) & (class_ids < len(self.table))
        return np.where(inside, self.table[np.where(inside, class_ids, 0)], -1)

    def class_of(self, label: str, class_id: int) -> int:
        """The class of the data set for a label, or for a class without one; -1 for none."""
        if label and self.by == "name":
            return self.names.get(plain(label), -1)
        return int(self.classes_of(np.array([class_id]))[0])

    @property
    def known(self) -> npt.NDArray[np.int64]:
        """Classes of the data set that the model has, in order."""
        class_ids = {*self.table.tolist(), *(self.names.values() if self.by == "name" else ())}
        return np.array(sorted(class_ids - {-1}), np.int64)


def plain(name: str) -> str:
    """A name without case, spaces, underscores and hyphens."""
    return "".join(c for c in name.casefold() if c not in " _-\t\r")


def match_classes(
    labels: Sequence[str],
    classes: Sequence[str],
    *,
    count: int,
    chosen: Mapping[str, str] | None = None,
    where: str,
) -> ClassMap:
    """Match labels with classes by name; by index where names do not help.

    Args:
        labels: of the model, by class id; () if it has none.
        classes: of the data set; () takes the labels.
        count: classes of the model.
        chosen: label -> class of pairs with other names; several labels may be one class.
        where: the config.

    Raises:
        ConfigError: a chosen name is neither label nor class; no name is both, and the numbers of
            classes differ.
    """
    labels = labels[:count] if count else labels
    if not classes:
        names = {plain(name): i for i, name in reversed(list(enumerate(labels)))}
        return ClassMap(np.arange(max(count, len(labels))), names, "index")
    indices = {plain(name): i for i, name in reversed(list(enumerate(classes)))}
    pairs = _chosen(chosen or {}, labels, classes, indices)
    names = {key: indices[key] for key in map(plain, labels) if key in indices} | pairs
    if not names:
        return _by_index(labels, classes, count, where)
    table = np.full(max(count, len(labels)), -1, np.int64)
    for i, label in enumerate(labels):
        table[i] = names.get(plain(label), -1)
    mine = tuple(label for i, label in enumerate(labels) if table[i] < 0)
    reached = set(table.tolist())
    theirs = tuple(name for i, name in enumerate(classes) if i not in reached)
    notices = []
    if theirs:
        text = f"{len(theirs)} of {len(classes)} classes of the data set are no labels of the model"
        text += f" and do not count: {_some(theirs)}; --map LABEL=CLASS pairs other names"
        notices.append(Finding("class-map", "warning", text, where))
    if mine:
        text = f"{len(mine)} labels of the model are no classes of the data set: objects of "
        notices.append(Finding("class-map", "info", f"{text}{_some(mine)} do not count", where))
    return ClassMap(table, names, "name", mine, theirs, tuple(notices))


def _chosen(
    chosen: Mapping[str, str],
    labels: Sequence[str],
    classes: Sequence[str],
    indices: Mapping[str, int],
) -> dict[str, int]:
    known = set(map(plain, labels))
    pairs = {}
    for label, name in chosen.items():
        where = f"--map {quoted(label)}={quoted(name)}"
        if plain(name) not in indices:
            raise ConfigError(
                f"{quoted(name)} is no class of the data set",
                where=where,
                expected=f"one of {_some(classes)}",
            )
        if known and plain(label) not in known:
            raise ConfigError(
                f"{quoted(label)} is no label of the model",
                where=where,
                expected=f"one of {_some(labels)}",
            )
        pairs[plain(label)] = indices[plain(name)]
    return pairs


def _by_index(labels: Sequence[str], classes: Sequence[str], count: int, where: str) -> ClassMap:
    number = count or len(labels) or len(classes)
    if labels and number != len(classes):
        raise ConfigError(
            f"none of the model's {len(labels)} labels is one of the data set's "
            f"{len(classes)} classes",
            where=where,
            expected=f"labels such as {_some(classes)}; they are {_some(labels)}",
            fix="--map LABEL=CLASS pairs them, --labels FILE gives other labels",
        )
    table = np.arange(number)
    table[len(classes) :] = -1
    theirs = tuple(classes[number:])
    text = "no label is a class of the data set" if labels else "the model has no labels"
    level: Literal["info", "warning"] = "warning" if labels or theirs else "info"
    text += f": classes are paired in their order, 0 is {quoted(classes[0])}"
    if theirs:
        text += f"; {_some(theirs)} do not count"
    return ClassMap(table, {}, "index", (), theirs, (Finding("class-map", level, text, where),))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(quoted(name) for name in names[:_SHOWN]) + more

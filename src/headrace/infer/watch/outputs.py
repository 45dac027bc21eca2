"""Rules on the outputs themselves: confidences, classes, whether they depend on the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import field

from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace._core.text import counted
from headrace._core.types import Array, Arrays
from headrace.config.enums import NetworkType
from headrace.infer.trial import Change, advised, other_ranges, parser_change, range_change
from headrace.infer.watch.rules import MIN_FRAMES, enough

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.parsers.labels import Labels


_VALUES = 4096  # of a tensor, spread over it, are compared
_OTHER = 0.02  # of its range: inputs that differ by less in the mean are the same image
_SAME = 1e-5  # of their range: outputs of two images that differ by less are the same
_FLAT = 1e-3  # values within it, and those next to 0 or 1, could be the same in right set-ups
_MIN_IMAGES = 6
_TOO_HIGH = 1.001
_CERTAIN = 0.8  # a threshold above it hides what a network is sure of
SOFTMAX = "NvDsInferClassiferParseNonSoftmax"
_SUM = 1.01  # of a soft-max, with rounding


class OutputWatch(PlainRecord):
    """Counts over the looks at a model's outputs.

    Attributes:
        looks: items looked at.
        images: those that differ from the first image.
    """

    cfg: ModelConfig
    labels: Labels
    builtin: bool
    looks: int = 0
    images: int = 0
    _first: dict[str, Array] = field(default_factory=dict)
    _change: float = 0.0
    _spans: dict[str, float] = field(default_factory=dict)
    _broken: dict[str, int] = field(default_factory=dict)  # output -> looks with NaN or infinity
    _high: int = 0
    _top: float = 0.0
    _independent: int = 0  # looks with several values above the threshold that are no soft-max
    _sum: float = 0.0  # of the values of such a look
    _values: dict[tuple[int, int], int] = field(default_factory=dict)  # (layer, class) -> looks
    _classes: dict[int, int] = field(default_factory=dict)  # layer -> classes

    def look(self, tensor: Array, outputs: Arrays) -> None:
        """Count one item: its input, and its row of each output."""
        self.looks += 1
        self._compare(_thinned(tensor), {n: _thinned(x) for n, x in outputs.items()})
        if self.builtin and self.cfg.network_type is NetworkType.CLASSIFIER:
            self._look_at_classes(outputs)
        elif self.cfg.network_type is NetworkType.SEGMENTATION:
            first = next(iter(outputs.values()))
            self._top = max(self._top, float(first.max()) if first.size else 0.0)

    def _compare(self, tensor: Array, outputs: dict[str, Array]) -> None:
        for name, values in outputs.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                self._broken[name] = self._broken.get(name, 0) + 1
        if not self._first:
            self._first = {"": tensor} | {f"/{n}": x for n, x in outputs.items()}
            return
        before = self._first[""]
        if before.shape != tensor.shape:
            return
        span = float(max(np.ptp(before), np.ptp(tensor)))
        if float(np.abs(tensor - before).mean()) <= _OTHER * span or span == 0:
            return
        self.images += 1
        for name, values in outputs.items():
            first = self._first.get(f"/{name}")
            if first is None or first.shape != values.shape or not says_something(values):
                self._change = 1.0  # nothing to compare: no evidence
                return
            difference = float(np.abs(values - first).max())
            self._change = max(self._change, difference / float(np.ptp(values)))

    def _look_at_classes(self, outputs: Arrays) -> None:
        for layer, data in enumerate(outputs.values()):
            values = np.ravel(data)[: data.shape[0] if data.ndim else 1]
            if values.dtype.kind != "f" or not values.size or not np.isfinite(values).all():
                continue
            top, best = float(values.max()), int(values.argmax())
            self._top = max(self._top, top)
            self._high += top > _TOO_HIGH
            self._look_at_others(values, top)
            self._classes[layer] = len(values)
            if top > max(self.cfg.classifier_threshold, 0):
                self._values[layer, best] = self._values.get((layer, best), 0) + 1

    def _look_at_others(self, values: Array, top: float) -> None:
        """Count values that are probabilities of their own: the parser keeps the largest alone."""
        limit = max(self.cfg.classifier_threshold, 0.5)
        total = float(values.sum())
        within = float(values.min()) >= 0 and top <= _TOO_HIGH
        if within and total > _SUM and int((values > limit).sum()) > 1:
            self._independent += 1
            self._sum = max(self._sum, total)

    def findings(self, *, final: bool) -> Iterator[Finding]:
        """Yield the findings of the looks so far."""
        for name, looks in self._broken.items():
            if enough(looks, self.looks, final=final):
                text = f"output {name} has NaN or infinite values in {looks} of "
                text += f"{counted(self.looks, 'image')}: the network overflows"
                finding = Finding("outputs-not-finite", "warning", text, "net-scale-factor")
                smaller = [
                    range_change(usual, self.cfg)
                    for usual in other_ranges(self.cfg)
                    if usual.factor < self.cfg.net_scale_factor
                ]
                half = int(self.cfg.network_mode) == 2
                precise: list[Change] = [{"network-mode": "0"}] if half else []
                yield advised(finding, [*smaller, *precise]) if smaller or half else finding
        if self.images >= _MIN_IMAGES and self._change < _SAME:
            text = "the network does not see the image: its outputs are the same for "
            text += f"{self.images + 1} different images, to {self._change:.1g} of their range;"
            text += f" net-scale-factor={self.cfg.net_scale_factor:.6g} may be too small"
            if int(self.cfg.network_mode) == 1:
                text += ", or INT8 (network-mode=1) has lost what it found"
            finding = Finding("outputs-constant", "warning", text, "net-scale-factor")
            larger = [
                range_change(usual, self.cfg)
                for usual in other_ranges(self.cfg)
                if usual.factor > self.cfg.net_scale_factor
            ]
            yield advised(finding, larger) if larger else finding
        if enough(self._high, self.looks, final=final) and self._high >= 0.5 * self.looks:
            text = f"confidences are no probabilities: up to {self._top:.4g} in {self._high} of "
            text += f"{counted(self.looks, 'item')}; the model ends without softmax, so "
            text += f"classifier-threshold={self.cfg.classifier_threshold:g} compares logits: "
            text += "export it with one, or have a parser apply it"
            finding = Finding("scores-above-1", "warning", text, "classifier-threshold")
            change = parser_change(SOFTMAX, NetworkType.CLASSIFIER, self.cfg)
            yield advised(finding, [change])
        if enough(self._independent, self.looks, final=final):
            text = "{looks} of {items} have several classes above the threshold: the values are no "
            text += "soft-max (they sum to {sum}), and only the largest of an output is kept"
            data = {"looks": self._independent, "items": counted(self.looks, "item")}
            fix = (
                "a parser of your own keeps them all: parse-classifier-func-name; `headrace init` "
            )
            fix += "writes one in Python"
            yield Finding(
                "classes-independent", "warning", text, "classifier-threshold",
                {**data, "sum": round(self._sum, 3)}, remedies=(fix,),
            )  # fmt: skip
        yield from self._of_labels(final)
        limit = self.cfg.segmentation_threshold
        segments = self.cfg.network_type is NetworkType.SEGMENTATION
        seen = final or self.looks >= MIN_FRAMES
        if segments and seen and limit > max(self._top, _CERTAIN):
            text = f"no pixel has a class: segmentation-threshold={limit:g} is above all values of "
            text += f"the output, which end at {self._top:.3g}"
            finding = Finding("threshold-above-all", "warning", text, "segmentation-threshold")
            yield advised(finding, [{"segmentation-threshold": f"{self._top / 2:.2g}"}])

    def _of_labels(self, final: bool) -> Iterator[Finding]:
        records = self.labels.records
        for (layer, best), looks in self._values.items():
            names = records[layer] if layer < len(records) else ()
            if not names or best < len(names) or not enough(looks, self.looks, final=final):
                continue
            text = f"class {best} wins and has no label: line {layer + 1} of labelfile-path has "
            text += f"{counted(len(names), 'name')}, the output {self._classes[layer]} classes; it "
            text += "looks like the file of another model"
            yield Finding("class-without-label", "warning", text, "labelfile-path")
            return


def _thinned(tensor: Array) -> Array:
    """Values of a tensor, spread over it."""
    flat = tensor.reshape(-1)
    step = max(1, len(flat) // _VALUES)
    return np.array(flat[::step][:_VALUES], np.float32)


def says_something(values: Array) -> bool:
    """Whether values of an output could differ from image to image.

    Zeros of an empty list, and probabilities of all or nothing, are the same in right set-ups too.
    """
    if values.size < 2 or float(np.ptp(values)) < _FLAT:
        return False
    return bool((np.abs(values - np.rint(values)) > 0.01).any())

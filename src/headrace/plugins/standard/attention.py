"""Attention of BERT (`CustomQKVToContextPluginDynamic`) and of DeBERTa.

Versions that take INT8 alone in the original take floats here. Source: standard-plugins spec 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.bert import TYPE, Sequences
from headrace.plugins.standard.fields import Field, integer, number
from headrace.plugins.standard.layer import Extent, Interface, Shape, StandardLayer

_HIDDEN = (integer("hidden_size", above=0), integer("num_heads", above=0))
_MASKED = (TYPE, *_HIDDEN, integer("has_mask", 0, one_of=(0, 1)))
_PROBABILITIES = number("dq_probs", 1 / 127, above=0)
_SCALE_MAX = integer("use_int8_scale_max", 1, one_of=(0, 1))


def _softmax(scores: Array) -> Array:
    """Softmax over the last axis; a row of -infinity alone becomes 0."""
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    raised = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = raised.sum(-1, keepdims=True)
    shares: Array = raised / np.where(total == 0, 1, total)
    return shares


class QkvToContext(Sequences):
    """Attention over sequences of one length; a mask has the number of words of each."""

    name = "CustomQKVToContextPluginDynamic"
    interface: ClassVar[Interface] = "Dyn"
    later = (("4", "V3"),)
    fields: ClassVar[tuple[Field, ...]] = (*_MASKED, _PROBABILITIES)
    inputs = (1, 2)
    integer_inputs = frozenset((1,))

    def check(self) -> None:
        if self.given.hidden_size % self.given.num_heads:
            raise self.error(
                f"{self.given.hidden_size} hidden units for {self.given.num_heads} heads",
                expected="as many for each head",
            )

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        if len(inputs) != 1 + self.given.has_mask:
            raise self.error(f"{len(inputs)} inputs, has_mask is {self.given.has_mask}",
                             expected="values, and the mask if it has one")  # fmt: skip
        length, batch, units, *ones = self.rank(inputs, 0, 5)
        self.require_ones(ones)
        self._three(units)
        if self.given.has_mask:
            self.agree(self.rank(inputs, 1, 1, 2)[0], batch, "sequences, and lengths")
        return [(length, batch, self.given.hidden_size, 1, 1)]

    def _three(self, units: Extent) -> None:
        self.agree(units, 3 * self.given.hidden_size, "units, and three times hidden_size")

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        length, batch = inputs[0].shape[:2]
        parts = inputs[0].reshape(length, batch, self.given.num_heads, 3, -1)
        valid = None
        if self.given.has_mask:
            lengths = inputs[1].reshape(batch, -1)[:, 0]
            valid = (np.arange(length) < lengths[:, None])[:, None, None]
        out = self.attended(parts.transpose(3, 1, 2, 0, 4), valid)
        return [out.transpose(2, 0, 1, 3).reshape(length, batch, -1, 1, 1)]

    def attended(self, parts: Array, valid: Array | None = None) -> Array:
        """Values weighted by the agreement of queries and keys; `parts`: (3, …, words, units)."""
        queries, keys, values = parts
        scores = queries @ keys.swapaxes(-1, -2) / np.float32(math.sqrt(queries.shape[-1]))
        if valid is not None:
            scores = np.where(valid, scores, -np.inf)
        out: Array = _softmax(scores) @ values
        return out


class QkvToContextPacked(QkvToContext):
    """Attention over sequences of any length, one behind the other, or of one length."""

    name = "CustomQKVToContextPluginDynamic"
    version: ClassVar[str] = "2"
    later = (("5", "V3"),)
    fields = (*_MASKED, _PROBABILITIES, integer("var_seqlen", 0), _SCALE_MAX)
    inputs = (1, 4)

    def check(self) -> None:
        super().check()
        if self.given.var_seqlen:
            self.integer_inputs = frozenset((2,))
            self.dummies = frozenset((1, 3))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        if not self.given.var_seqlen:
            return super().shapes(inputs)
        if len(inputs) != self.inputs[1]:
            raise self.error(f"{len(inputs)} inputs, var_seqlen is 1",
                             expected="values, mask, sums of lengths, and the longest")  # fmt: skip
        total, units, *ones = self.rank(inputs, 0, 4)
        self.require_ones(ones)
        self._three(units)
        self.rank(inputs, 2, 1)
        return [(total, self.given.hidden_size, 1, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if not self.given.var_seqlen:
            return super().compute(inputs)
        x, ends = inputs[0], inputs[2]
        parts = x.reshape(len(x), self.given.num_heads, 3, -1).transpose(2, 1, 0, 3)
        return [self.each(parts, ends).transpose(1, 0, 2).reshape(len(x), -1, 1, 1)]

    def each(self, parts: Array, ends: Array) -> Array:
        """Attention within each sequence; `parts`: (3, heads, words, units)."""
        out: Array = np.zeros_like(parts[0])
        for span in self.spans(ends, out.shape[1]):
            out[:, span] = self.attended(parts[:, :, span])
        return out


class QkvToContextInterleaved(QkvToContextPacked):
    """Attention over sequences of any length, hidden units being the channels."""

    name = "CustomQKVToContextPluginDynamic"
    version = "3"
    later = (("6", "V3"),)
    fields = (
        *_HIDDEN, _PROBABILITIES, _SCALE_MAX, integer("use_explicit_int8", 0),
        number("input_qkv_scale", 1.0, above=0), number("output_ctx_scale", 1.0, above=0),
    )  # fmt: skip
    inputs = (3, 3)
    integer_inputs = frozenset((1,))
    dummies = frozenset((2,))

    def check(self) -> None:
        QkvToContext.check(self)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        images, units, total, *ones = self.rank(inputs, 0, 4)
        self.require_ones(ones)
        self.agree(images, 1, "images of the values")
        self._three(units)
        self.rank(inputs, 1, 1)
        return [(images, self.given.hidden_size, total, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        x, ends, _ = inputs
        total = x.shape[2]
        parts = x.reshape(3, self.given.num_heads, -1, total).transpose(0, 1, 3, 2)
        return [self.each(parts, ends).transpose(0, 2, 1).reshape(1, -1, total, 1)]


class DisentangledAttention(StandardLayer):
    """Scores of content with those of content to place and place to content, times a factor."""

    name = "DisentangledAttention_TRT"
    interface: ClassVar[Interface] = "Dyn"
    later = (("2", "V3"),)
    fields = (integer("span", above=0), number("factor"))
    inputs = (3, 3)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        batch, rows, columns = self.rank(inputs, 0, 3)
        self.agree(rows, columns, "queries and keys")
        for i, what in ((1, "content to place"), (2, "place to content")):
            shape = self.rank(inputs, i, 3)
            self.agree(shape[0], batch, f"heads, and those of {what}")
            self.agree(shape[1], rows, f"words, and those of {what}")
            self.agree(shape[2], 2 * self.given.span, f"places of {what}, and twice the span")
        return [(batch, rows, columns)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        content, to_place, from_place = inputs
        words = content.shape[1]
        distance = np.arange(words)[:, None] - np.arange(words)
        place = self._places(distance)
        one = np.take_along_axis(to_place, place[None], axis=2)
        other = np.take_along_axis(from_place, place.T[None], axis=2).swapaxes(1, 2)
        return [(content + one + other) * np.float32(self.given.factor)]

    def _places(self, distance: Array) -> Array:
        """The place of each distance: distances beyond half of the span are put together."""
        span = self.given.span
        middle = span // 2
        far = np.abs(distance) > middle
        if far.any() and middle:
            steps = np.log(np.where(far, np.abs(distance), middle) / middle)
            steps *= (middle - 1) / math.log((2 * span - 1) / middle) * (1 - _STEP)
            distance = np.where(far, np.sign(distance) * (np.ceil(steps) + middle), distance)
        place: Array = np.clip(distance.astype(np.int64) + span, 0, 2 * span - 1)
        return place


_STEP = 1e-7
"""A step that is whole, but for rounding, is not rounded up."""

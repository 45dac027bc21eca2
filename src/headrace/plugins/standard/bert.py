"""BERT's plugins beside attention: embeddings, normalisation, and rows of hidden units.

Versions that take INT8 alone in the original take floats here. Source: standard-plugins spec 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from headrace._core.types import Array
from headrace.plugins.standard.fields import Field, integer, weights
from headrace.plugins.standard.layer import Interface, Shape, StandardLayer, product
from headrace.plugins.types import DataType

TYPE = integer("type_id", low=0, high=3)
"""The type of the tensors in the original; here that of the network counts."""
_EMBEDDINGS = tuple(
    weights(f"bert_embeddings_{name}")
    for name in (
        "layernorm_beta", "layernorm_gamma", "word_embeddings", "token_type_embeddings",
        "position_embeddings",
    )
)  # fmt: skip
_HALF_EPSILON, _FLOAT_EPSILON = 2.0**-10, 2.0**-23


def _normalised(x: Array, gamma: Array, beta: Array, epsilon: float = 0.0) -> Array:
    """Rows with mean 0 and variance 1, times gamma, plus beta."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True) + np.float32(epsilon)
    rows: Array = centred / np.sqrt(variance) * gamma + beta
    return rows


class Sequences(StandardLayer):
    """A layer over sequences of words.

    Attributes:
        dummies: inputs of which the shape alone counts, of any type.
    """

    dummies: frozenset[int] = frozenset()

    def accepts(self, pos: int, types: Sequence[DataType | None], num_inputs: int) -> bool:
        return (pos < num_inputs and pos in self.dummies) or super().accepts(pos, types, num_inputs)

    def spans(self, ends: Array, total: int) -> list[slice]:
        """The words of each sequence, by the sums of their lengths."""
        if ends.size and (ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] > total):
            raise self.error(
                f"sequences end at {ends.tolist()}", expected=f"sums of lengths up to {total} words"
            )
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


class _Embedding(Sequences):
    """Embeddings of word, kind and place of each token, summed up and normalised."""

    outputs = 2

    def check(self) -> None:
        g = self.given
        self.beta, self.gamma, *tables = (np.asarray(getattr(g, f.name)) for f in _EMBEDDINGS)
        if self.beta.size != self.gamma.size or not self.beta.size:
            raise self.error(f"{self.gamma.size} values of gamma and {self.beta.size} of beta",
                             expected="one of each per hidden unit")  # fmt: skip
        if any(table.size == 0 or table.size % self.beta.size for table in tables):
            raise self.error(
                f"embeddings of {', '.join(str(table.size) for table in tables)} values",
                expected=f"rows of {self.beta.size}",
            )
        self.words, self.kinds, self.places = (t.reshape(-1, self.beta.size) for t in tables)

    def accepts(self, pos: int, types: Sequence[DataType | None], num_inputs: int) -> bool:
        if pos == num_inputs:
            return types[pos] == self._type
        return super().accepts(pos, types, num_inputs)

    def output_type(self, index: int, input_types: Sequence[DataType]) -> DataType:
        return DataType.INT32 if index in self.integer_outputs else self._type

    @property
    def _type(self) -> DataType:
        return DataType.HALF if self.given.output_fp16 else DataType.FLOAT

    def summed(self, words: Array, kinds: Array, places: Array) -> Array:
        """The embeddings of tokens, not normalised yet."""
        for ids, table, what in (
            (words, self.words, "words"), (kinds, self.kinds, "kinds of tokens"),
            (places, self.places, "places"),
        ):  # fmt: skip
            if ids.size and not 0 <= ids.min() <= ids.max() < len(table):
                raise self.error(
                    f"{what} from {ids.min()} to {ids.max()}", expected=f"0 to {len(table) - 1}"
                )
        total: Array = self.words[words] + self.kinds[kinds] + self.places[places]
        return total

    def normalised(self, total: Array) -> Array:
        """Normalise the embeddings of `summed`."""
        return _normalised(total, self.gamma, self.beta)


class EmbLayerNorm(_Embedding):
    """Embeddings of words, kinds and places, normalised; and the length of each sequence."""

    name = "CustomEmbLayerNormPluginDynamic"
    interface: ClassVar[Interface] = "Dyn"
    later = (("6", "V3"),)
    fields = (
        *_EMBEDDINGS,
        integer("output_fp16", 0),
        integer("full_mask", 0),
        integer("mha_type_id", 0, low=0, high=3),
    )
    inputs = (3, 3)
    integer_inputs = frozenset((0, 1, 2))
    integer_outputs = frozenset((1,))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        length, batch = self.rank(inputs, 0, 2)
        for i, what in ((1, "kinds"), (2, "masks")):
            shape = self.rank(inputs, i, 2)
            self.agree(shape[0], length, f"words and {what} of a sequence")
            self.agree(shape[1], batch, f"sequences of words and of {what}")
        return [(length, batch, self.beta.size, 1, 1), (batch, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        words, kinds, mask = inputs
        places = np.arange(len(words)).reshape(-1, 1)
        rows = self.normalised(self.summed(words, kinds, places))
        masked = np.concatenate([mask == 0, np.ones((1, mask.shape[1]), bool)])
        return [rows[..., None, None], masked.argmax(0).astype(np.int32)[:, None]]


class EmbLayerNormPacked(_Embedding):
    """The same of sequences of any length, one behind the other; the second output is unused."""

    name = "CustomEmbLayerNormPluginDynamic"
    version: ClassVar[str] = "2"
    interface: ClassVar[Interface] = "Dyn"
    later = (("4", "V3"),)
    fields = (*_EMBEDDINGS, integer("output_fp16", 0))
    inputs = (4, 4)
    integer_inputs = frozenset((0, 1, 2, 3))
    integer_outputs = frozenset((1,))
    dummies = frozenset((3,))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        (total,) = self.rank(inputs, 0, 1)
        self.agree(self.rank(inputs, 1, 1)[0], total, "words and kinds")
        self.rank(inputs, 2, 1)
        self.rank(inputs, 3, 1)
        return [(total, self.beta.size, 1, 1), ()]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        total = self._summed(inputs)
        return [self.normalised(total)[..., None, None], np.zeros((), np.int32)]

    def _summed(self, inputs: Sequence[Array]) -> Array:
        words, kinds, ends, _ = inputs
        total = np.zeros((len(words), self.beta.size), np.float32)
        for span in self.spans(ends, len(words)):
            total[span] = self.summed(words[span], kinds[span], np.arange(span.stop - span.start))
        return total


class EmbLayerNormMegatron(EmbLayerNormPacked):
    """The same for Megatron: the second output holds the embeddings before they are normalised."""

    name = "CustomEmbLayerNormPluginDynamic"
    version = "3"
    later = (("5", "V3"),)
    integer_outputs = frozenset()

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        return [super().shapes(inputs)[0]] * 2

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        total = self._summed(inputs)
        return [self.normalised(total)[..., None, None], total[..., None, None]]


class _Rows(StandardLayer):
    """Layers that work on rows of hidden units, which lie at one axis."""

    def rows(self, shape: Shape, size: int) -> Shape:
        """Return `shape`; refuse one that has no rows of `size` units."""
        total = product(shape)
        if isinstance(total, int) and total % size:
            raise self.error(f"a tensor of {total} values", expected=f"rows of {size}")
        return shape


class SkipLayerNorm(_Rows):
    """Two tensors and a bias added, and each row normalised."""

    name = "CustomSkipLayerNormPluginDynamic"
    interface: ClassVar[Interface] = "Dyn"
    later = (("5", "V3"),)
    fields: ClassVar[tuple[Field, ...]] = (
        TYPE,
        integer("ld", above=0),
        weights("beta"),
        weights("gamma"),
        weights("bias", ()),
    )
    inputs = (2, 2)
    epsilon = 0.0

    def check(self) -> None:
        g = self.given
        self.size = int(np.size(g.beta))
        known = {"gamma": np.size(g.gamma), "ld": getattr(g, "ld", self.size)}
        known["bias"] = np.size(getattr(g, "bias", ())) or self.size
        for name, size in known.items():
            if size != self.size:
                raise self.error(f"{name} is for {size} hidden units, beta for {self.size}",
                                 expected="as many of each")  # fmt: skip

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        shape = self.rank(inputs, 0, 4, 5)
        if len(inputs[1]) != len(shape):
            raise self.error(f"inputs of {len(shape)} and {len(inputs[1])} axes",
                             expected="two tensors of one shape")  # fmt: skip
        for a, b in zip(shape, inputs[1], strict=True):
            self.agree(a, b, "axes of both inputs")
        return [self.rows(shape, self.size)] * self.outputs

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        total = self.added(inputs).reshape(-1, self.size)
        bias = np.asarray(getattr(self.given, "bias", ()), np.float32)
        return [self.normalised(total + bias if bias.size else total).reshape(inputs[0].shape)]

    def added(self, inputs: Sequence[Array]) -> Array:
        """The sum of both inputs."""
        total: Array = inputs[0] + inputs[1]
        return total

    def normalised(self, rows: Array) -> Array:
        """The rows, normalised."""
        return _normalised(rows, self.given.gamma, self.given.beta, self.epsilon)


class SkipLayerNormPacked(SkipLayerNorm):
    """The same of sequences of any length, one behind the other."""

    name = "CustomSkipLayerNormPluginDynamic"
    version: ClassVar[str] = "2"
    later = (("6", "V3"),)
    fields = (TYPE, weights("beta"), weights("gamma"), weights("bias", ()))


class SkipLayerNormInterleaved(SkipLayerNorm):
    """The same, hidden units being the channels."""

    name = "CustomSkipLayerNormPluginDynamic"
    version: ClassVar[str] = "3"
    later = (("7", "V3"),)
    fields = (weights("beta"), weights("gamma"))
    epsilon = _HALF_EPSILON

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        self.agree(self.rank(inputs, 0, 4)[1], self.size, "channels, and values of beta")
        return super().shapes(inputs)

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        total = self.added(inputs)
        rows = self.normalised(np.moveaxis(total, 1, -1))
        return [np.moveaxis(rows, -1, 1), total][: self.outputs]


class SkipLayerNormMegatron(SkipLayerNormInterleaved):
    """The same for Megatron: the second output is the sum before it is normalised."""

    name = "CustomSkipLayerNormPluginDynamic"
    version = "4"
    later = (("8", "V3"),)
    outputs = 2
    epsilon = _FLOAT_EPSILON


class FullyConnected(_Rows):
    """Rows times a matrix."""

    name = "CustomFCPluginDynamic"
    interface: ClassVar[Interface] = "Dyn"
    fields = (integer("out_dims", above=0), TYPE, weights("W"))

    def check(self) -> None:
        size = np.size(self.given.W)
        if not size or size % self.given.out_dims:
            raise self.error(f"{size} weights", expected=f"rows of {self.given.out_dims}")

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        words, batch, units, *ones = self.rank(inputs, 0, 5)
        self.require_ones(ones)
        self.agree(units, np.size(self.given.W) // self.given.out_dims, "units, and rows of W")
        return [(words, batch, self.given.out_dims, 1, 1)]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        matrix = np.asarray(self.given.W).reshape(-1, self.given.out_dims)
        return [(inputs[0][..., 0, 0] @ matrix)[..., None, None]]


class Gelu(_Rows):
    """x + bias, then x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))."""

    name = "CustomGeluPluginDynamic"
    interface: ClassVar[Interface] = "Dyn"
    fields = (TYPE, weights("bias", ()))

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        return [self.rows(inputs[0], max(int(np.size(self.given.bias)), 1))]

    def compute(self, inputs: Sequence[Array]) -> Sequence[Array]:
        x = inputs[0]
        if np.size(self.given.bias):
            bias = np.asarray(self.given.bias)
            x = (x.reshape(-1, bias.size) + bias).reshape(x.shape)
        inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
        return [np.float32(0.5) * x * (1 + np.tanh(inner))]

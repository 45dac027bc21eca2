"""Attention, rotary position embeddings and key-value caches of language models.

An `IAttention` is one layer here, its output layer. Sources: TensorRT's headers of 10.14 to 11.1,
and the operators `Attention`, `RotaryEmbedding` and `TensorScatter` of ONNX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headrace.plugins.types import DataType
from headrace.trt.exports import refusal
from headrace.trt.layers.base import ILayer, Param, check_tensors
from headrace.trt.lowering.fragment import Fragment, Inputs, LoweringError, required
from headrace.trt.types.enums import AttentionNormalizationOp, CausalMaskKind, KVCacheMode
from headrace.trt.types.strict import Strict, kept
from headrace.trt.types.tensor import ITensor

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum

_MASK, _SCALE = 3, 4


class IAttentionBoundaryLayer(ILayer):
    """A layer of an attention."""

    @property
    def attention(self) -> IAttention:
        """The attention."""
        return cast(IAttention, self._params["_attention"])


class IAttentionInputLayer(IAttentionBoundaryLayer):
    """Not made: the output layer takes the inputs."""

    _kind = "ATTENTION_INPUT"


class IAttentionOutputLayer(IAttentionBoundaryLayer):
    """Computes norm(Q Kᵀ + mask) V.

    Inputs: Q [B, heads, n, d], K [B, key heads, m, d], V [B, key heads, m, e], the mask
    [B, heads, n, m] (BOOL: True takes part; else added), the scale of the quantised weights.
    """

    _kind = "ATTENTION_OUTPUT"
    _words = "Attention"

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        q, k, v = (required(inputs, i) for i in range(3))
        if {f.rank(q), f.rank(k), f.rank(v)} != {4}:
            raise LoweringError(
                "an attention takes tensors of 4 axes [batch, heads, positions, elements], not "
                f"{f.rank(q)}, {f.rank(k)} and {f.rank(v)}"
            )
        k, v = (_repeated(f, name, f.shape(q)[1]) for name in (k, v))
        scores = f.op("MatMul", q, f.transpose(k, [0, 1, 3, 2]))
        softmax = self._params["norm_op"].name == "SOFTMAX"
        hidden = f.like(np.finfo(np.float32).min / 2 if softmax else 0, scores)
        mask = inputs[_MASK] if len(inputs) > _MASK else None
        if mask is not None:
            if f.dtype(mask) == np.dtype(bool):
                scores = f.op("Where", mask, scores, hidden)
            else:
                scores = f.op("Add", scores, f.cast(mask, f.dtype(scores)))
        causal = self._params["causal_kind"].name
        if causal != "NONE":
            scores = f.op("Where", _causal(f, scores, causal), scores, hidden)
        weights = f.op("Softmax", scores, axis=3) if softmax else scores
        scale = inputs[_SCALE] if len(inputs) > _SCALE else None
        if scale is not None:
            weights = _quantised(f, self, weights, scale)
        return [f.op("MatMul", weights, v)]


class IAttention(Strict):
    """Made by `INetworkDefinition.add_attention`."""

    def __init__(self, layer: IAttentionOutputLayer) -> None:
        self._layer = layer
        layer._params["_attention"] = self

    name = kept("_layer.name", "The name.", read_only=True)

    @property
    def norm_op(self) -> NumberedEnum:
        """SOFTMAX, or NONE for products as they are."""
        return cast("NumberedEnum", self._layer._params["norm_op"])

    @norm_op.setter
    def norm_op(self, value: NumberedEnum) -> None:
        self._layer._set_param("norm_op", AttentionNormalizationOp(value))

    @property
    def causal_kind(self) -> NumberedEnum:
        """Which positions a query sees: all, or none behind its own, counted from a corner."""
        return cast("NumberedEnum", self._layer._params["causal_kind"])

    @causal_kind.setter
    def causal_kind(self, value: NumberedEnum) -> None:
        self._layer._set_param("causal_kind", CausalMaskKind(value))

    @property
    def causal(self) -> bool:
        """True if a query sees no position behind its own."""
        return bool(self.causal_kind.name != "NONE")

    @causal.setter
    def causal(self, value: bool) -> None:
        self.causal_kind = CausalMaskKind["UPPER_LEFT" if value else "NONE"]

    @property
    def decomposable(self) -> bool:
        """True lets it become several layers; here it always does."""
        return bool(self._layer._params.get("decomposable", False))

    @decomposable.setter
    def decomposable(self, value: bool) -> None:
        self._layer._params["decomposable"] = bool(value)

    @property
    def mask(self) -> ITensor | None:
        """The mask, if there is one."""
        return self._layer.get_input(_MASK)

    @mask.setter
    def mask(self, value: ITensor) -> None:
        self._layer.set_input(_MASK, value)

    @property
    def normalization_quantize_scale(self) -> ITensor | None:
        """Scale of the quantised weights, if they are quantised."""
        return self._layer.get_input(_SCALE)

    @normalization_quantize_scale.setter
    def normalization_quantize_scale(self, value: ITensor) -> None:
        check_tensors([value])
        self._layer.set_input(_SCALE, value)

    @property
    def normalization_quantize_to_type(self) -> DataType:
        """Type of the quantised weights."""
        return cast(DataType, self._layer._params["to_type"])

    @normalization_quantize_to_type.setter
    def normalization_quantize_to_type(self, value: DataType) -> None:
        self._layer._set_param("to_type", DataType(value))

    metadata = kept("_layer.metadata", "Free text.", read_only=True)

    @property
    def num_inputs(self) -> int:
        """Queries, keys and values."""
        return 3

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    def set_input(self, index: int, input: ITensor) -> bool:
        """Feed 0 the queries, 1 the keys or 2 the values; False for another number."""
        if not 0 <= index < self.num_inputs:
            return False
        self._layer.set_input(index, input)
        return True

    def get_input(self, index: int) -> ITensor | None:
        """Queries, keys or values; None for another number."""
        return self._layer.get_input(index) if index < self.num_inputs else None

    def get_output(self, index: int) -> ITensor | None:
        """The result; None for another number than 0."""
        return self._layer.get_output(index)

    def __setattr__(self, name: str, value: object) -> None:
        if name in ("name", "metadata"):
            setattr(self._layer, name, value)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        error = refusal("IAttention", name)
        if error is not None:
            raise error
        return object.__getattribute__(self, name)  # raises the error of the lookup before


class IRotaryEmbeddingLayer(ILayer):
    """Turns pairs of elements by the angle of their position.

    Inputs: x [B, heads, n, d], cosines and sines [B, n, d / 2] or, with positions, [all positions,
    d / 2]; the positions [B, n], set as input 3.
    """

    _kind = "ROTARY_EMBEDDING"
    interleaved = Param(bool, "True pairs neighbours; False an element and the one half behind it.")
    rotary_embedding_dim = Param(int, "Elements that are turned; 0 is all of them.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        x, cosines, sines = (required(inputs, i) for i in range(3))
        if f.rank(x) != 4:
            raise LoweringError(f"a rotary embedding takes a tensor of 4 axes, not {f.rank(x)}")
        whole = f.shape(x)[3]
        turned = int(self._params["rotary_embedding_dim"]) or whole
        if turned < 2 or turned % 2 or turned > whole > 0:
            raise LoweringError(f"{turned} of {whole} elements in pairs")
        if len(inputs) > 3 and inputs[3] is not None:
            cosines, sines = (f.op("Gather", n, inputs[3], axis=0) for n in (cosines, sines))
        cosines, sines = (f.unsqueeze(f.cast(n, f.dtype(x)), [1]) for n in (cosines, sines))
        part = _cut(f, x, 0, turned)
        if self._params["interleaved"]:
            first, second = _cut(f, part, 0, turned, 2), _cut(f, part, 1, turned, 2)
        else:
            first, second = _cut(f, part, 0, turned // 2), _cut(f, part, turned // 2, turned)
        real = f.op("Sub", f.op("Mul", cosines, first), f.op("Mul", sines, second))
        imaginary = f.op("Add", f.op("Mul", sines, first), f.op("Mul", cosines, second))
        if self._params["interleaved"]:
            pairs = [f.unsqueeze(n, [4]) for n in (real, imaginary)]
            result = f.op("Reshape", f.op("Concat", *pairs, axis=4), f.extents(part))
        else:
            result = f.op("Concat", real, imaginary, axis=3)
        if turned == whole:
            return [result]
        return [f.op("Concat", result, _cut(f, x, turned, whole), axis=3)]


class IKVCacheUpdateLayer(ILayer):
    """The cache with an update written into it.

    Inputs: cache [B, heads, capacity, d], update [B, heads, n, d], and for each sequence the first
    position that is written [B].
    """

    _kind = "KV_CACHE_UPDATE"
    _words = "KVCacheUpdate"
    cache_mode = Param(KVCacheMode, "LINEAR: positions follow each other.")

    def _lower(self, f: Fragment, inputs: Inputs) -> list[str]:
        cache, update, first = (required(inputs, i) for i in range(3))
        if f.rank(cache) != 4 or f.rank(update) != 4:
            raise LoweringError("a key-value cache and its update have 4 axes")
        steps = f.op(
            "Range", f.const(np.int64(0)), f.squeeze(f.extent(update, 2), [0]), f.const(np.int64(1))
        )
        places = f.op(
            "Add",
            f.reshape(f.cast(first, np.int64), [-1, 1, 1, 1]),
            f.reshape(steps, [1, 1, -1, 1]),
        )
        indices = f.op("Expand", places, f.extents(update))
        return [f.op("ScatterElements", cache, indices, update, axis=2)]


def _quantised(f: Fragment, layer: ILayer, weights: str, scale: str) -> str:
    kind = layer._params["to_type"]
    if kind != DataType.INT8:
        raise LoweringError(f"weights of an attention in {kind.name}; the CPU has INT8")
    one = f.reshape(f.cast(scale, np.float32), [])
    rounded = f.op("QuantizeLinear", weights, one, f.const(np.int8(0)))
    return f.op("DequantizeLinear", rounded, one, f.const(np.int8(0)))


def _repeated(f: Fragment, name: str, heads: int) -> str:
    """Keys or values with as many heads as the queries."""
    own = f.shape(name)[1]
    if own == heads:
        return name
    if own < 1 or heads % own:
        raise LoweringError(f"{heads} heads of queries and {own} of keys and values")
    return f.op("Gather", name, f.ints(*[i * own // heads for i in range(heads)]), axis=1)


def _causal(f: Fragment, scores: str, kind: str) -> str:
    """True where a key is not behind its query: [queries, keys]."""
    zero, one = f.const(np.int64(0)), f.const(np.int64(1))
    queries, keys = (f.squeeze(f.extent(scores, axis), [0]) for axis in (2, 3))
    rows = f.unsqueeze(f.op("Range", zero, queries, one), [1])
    if kind == "LOWER_RIGHT":
        rows = f.op("Add", rows, f.op("Sub", keys, queries))
    behind = f.op("Greater", f.unsqueeze(f.op("Range", zero, keys, one), [0]), rows)
    return f.op("Not", behind)


def _cut(f: Fragment, name: str, start: int, stop: int, step: int = 1) -> str:
    return f.op("Slice", name, f.ints(start), f.ints(stop), f.ints(3), f.ints(step))

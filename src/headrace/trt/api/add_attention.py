"""The `add_*` methods of language models' layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.plugins.types import DataType
from headrace.trt.layers import attention
from headrace.trt.release import versioned
from headrace.trt.types.enums import AttentionNormalizationOp, CausalMaskKind, KVCacheMode

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.tensor import ITensor


@versioned(
    {
        ">=10.14": "add_attention",
        ">=11": "add_attention_v2",
        ">=10.15": "add_rotary_embedding, add_kv_cache_update",
    }
)
class AddsAttention:
    """Base of `INetworkDefinition`; the layers are those of `layers/attention.py`."""

    _add: Any

    def add_attention(
        self, query: ITensor, key: ITensor, value: ITensor, norm_op: NumberedEnum, causal: bool
    ) -> attention.IAttention | None:
        """norm(query keyᵀ) value; queries bring their own scale."""
        kind = CausalMaskKind["UPPER_LEFT" if causal else "NONE"]
        return self.add_attention_v2(query, key, value, norm_op, kind)

    def add_attention_v2(
        self,
        query: ITensor,
        key: ITensor,
        value: ITensor,
        norm_op: NumberedEnum,
        causal_kind: NumberedEnum,
    ) -> attention.IAttention | None:
        """`add_attention` with the corner that positions are counted from."""
        layer = self._add(attention.IAttentionOutputLayer, query, key, value)
        if layer is None:
            return None
        layer._params |= {
            "norm_op": AttentionNormalizationOp(norm_op),
            "causal_kind": CausalMaskKind(causal_kind),
            "to_type": DataType.FLOAT,
        }
        return attention.IAttention(layer)

    def add_rotary_embedding(
        self,
        input: ITensor,
        cos_cache: ITensor,
        sin_cache: ITensor,
        interleaved: bool,
        rotary_embedding_dim: int,
    ) -> attention.IRotaryEmbeddingLayer:
        """Positions are set as input 3; without them there is an angle for each."""
        layer: attention.IRotaryEmbeddingLayer = self._add(
            attention.IRotaryEmbeddingLayer, input, cos_cache, sin_cache,
            interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim,
        )  # fmt: skip
        return layer

    def add_kv_cache_update(
        self,
        cache: ITensor,
        update: ITensor,
        write_indices: ITensor,
        cache_mode: NumberedEnum | None = None,
    ) -> attention.IKVCacheUpdateLayer:
        """The cache with the update from `write_indices` on."""
        mode = KVCacheMode["LINEAR"] if cache_mode is None else cache_mode
        layer: attention.IKVCacheUpdateLayer = self._add(
            attention.IKVCacheUpdateLayer, cache, update, write_indices, cache_mode=mode
        )
        return layer

"""The `add_*` methods for what language models use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from noria.plugins.dims import Dims
from noria.plugins.types import DataType
from noria.trt import layers as kinds
from noria.trt.api.add_layers import AddsLayers
from noria.trt.api.enums import (
    AttentionIOForm,
    CausalMaskKind,
    CollectiveOperation,
    KVCacheMode,
    MoEActType,
    ReduceOperation,
)
from noria.trt.api.tensor import ITensor
from noria.trt.release import Span, versioned


@versioned(
    {
        "add_attention": Span(since=(10, 14), deprecated=(11, 0), instead="add_attention_v2"),
        "add_attention_v2": Span(since=(11, 0)),
        "add_rotary_embedding": Span(since=(10, 15)),
        "add_kv_cache_update": Span(since=(10, 15)),
        "add_moe": Span(since=(10, 16)),
        "add_dist_collective": Span(since=(10, 16)),
        "add_normalization_v2": Span(since=(10, 15)),
        "add_dynamic_quantize": Span(since=(10, 8)),
        "add_dynamic_quantize_v2": Span(since=(10, 15)),
    }
)
class AddsTransformer(AddsLayers):
    """Base of `INetworkDefinition`. Each is made of standard operators."""

    def add_attention(
        self, query: ITensor, key: ITensor, value: ITensor, norm_op: Any, causal: bool
    ) -> kinds.IAttention:
        """norm(Q Kᵀ) V; with `causal` a query sees the keys up to its own number."""
        kind = CausalMaskKind["UPPER_LEFT" if causal else "NONE"]
        return self._attention([query, key, value], norm_op, kind)

    def add_attention_v2(
        self, query: ITensor, key: ITensor, value: ITensor, norm_op: Any, causal_kind: Any
    ) -> kinds.IAttention:
        """`add_attention` that says where the triangle of visible keys begins."""
        return self._attention([query, key, value], norm_op, causal_kind)

    def _attention(self, inputs: list[ITensor], norm_op: Any, kind: Any) -> kinds.IAttention:
        made = kinds.IAttention(cast(Any, self), inputs, norm_op, kind)
        return made if made._entry is not None else cast(kinds.IAttention, None)

    def add_rotary_embedding(
        self, input: ITensor, cos_cache: ITensor, sin_cache: ITensor, interleaved: bool,
        rotary_embedding_dim: int,
    ) -> kinds.IRotaryEmbeddingLayer:  # fmt: skip
        """Pairs of elements turned by angles that depend on the place of the token."""
        params = {"interleaved": bool(interleaved), "rotary_embedding_dim":
                  int(rotary_embedding_dim)}  # fmt: skip
        inputs = [input, cos_cache, sin_cache]
        return self._add(kinds.IRotaryEmbeddingLayer, "ROTARY_EMBEDDING", inputs, params)

    def add_kv_cache_update(
        self, cache: ITensor, update: ITensor, write_indices: ITensor, cache_mode: Any
    ) -> kinds.IKVCacheUpdateLayer:
        """The cache with new tokens written at a place of each sequence; what does not fit is
        left out."""
        params = {"cache_mode": KVCacheMode(cache_mode),
                  "update_form": AttentionIOForm["PADDED_BHND"]}  # fmt: skip
        inputs = [cache, update, write_indices]
        return self._add(kinds.IKVCacheUpdateLayer, "KVCACHE_UPDATE", inputs, params)

    def add_moe(
        self, hidden_states: ITensor, selected_experts_for_tokens: ITensor,
        scores_for_selected_experts: ITensor,
    ) -> kinds.IMoELayer:  # fmt: skip
        """A mixture of experts; its weights are set afterwards."""
        params = {
            "activation_type": MoEActType["SILU"], "limit": math.inf, "alpha": 1.0, "beta": 0.0,
            "to_type": DataType.FLOAT, "block_shape": Dims(()), "scale_type": DataType.FLOAT,
        }  # fmt: skip
        inputs = [hidden_states, selected_experts_for_tokens, scores_for_selected_experts]
        return self._add(kinds.IMoELayer, "MOE", inputs, params)

    def add_dist_collective(
        self, input: ITensor, dist_collective_op: Any, reduce_op: Any, root: int, groups: Any
    ) -> kinds.IDistCollectiveLayer:
        """Something that several devices do together: there is one here, so the build says no."""
        params = {
            "operation": CollectiveOperation(dist_collective_op),
            "reduce_op": None if reduce_op is None else ReduceOperation(reduce_op),
            "root": root, "groups": groups,
        }  # fmt: skip
        return self._add(kinds.IDistCollectiveLayer, "DIST_COLLECTIVE", [input], params)

    def add_normalization_v2(
        self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int
    ) -> kinds.INormalizationLayer:
        """`add_normalization` whose scale and bias have one number for each channel, in groups
        too."""
        return self.add_normalization(input, scale, bias, axesMask)

    def add_dynamic_quantize(
        self, input: ITensor, axis: int, block_size: int, output_type: Any, scale_type: Any
    ) -> kinds.IDynamicQuantizeLayer:
        """Rounded in blocks along one axis. Of `add_dynamic_quantize_v2`'s types."""
        shape = [1] * len(input.shape)
        shape[int(axis)] = int(block_size)
        layer = self.add_dynamic_quantize_v2(input, shape, output_type, scale_type)
        if layer is not None:
            layer.axis, layer.block_size = int(axis), int(block_size)
        return layer

    def add_dynamic_quantize_v2(
        self, input: ITensor, block_shape: Sequence[int], output_type: Any, scale_type: Any
    ) -> kinds.IDynamicQuantizeLayer:
        """Rounded in blocks, each with the scale max|x| / 127; INT8 and FLOAT scales are built."""
        params = {"axis": -1, "block_size": -1, "block_shape": Dims(block_shape),
                  "to_type": DataType(output_type),
                  "scale_type": DataType(scale_type)}  # fmt: skip
        kind = kinds.IDynamicQuantizeLayer
        return self._add(kind, "DYNAMIC_QUANTIZE", [input], params, outputs=2)

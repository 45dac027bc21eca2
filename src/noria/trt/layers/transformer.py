"""Layers that language models use: attention, rotary embedding, caches, experts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from noria.plugins.dims import Dims
from noria.plugins.types import DataType
from noria.trt.api.enums import (
    AttentionIOForm,
    AttentionNormalizationOp,
    CausalMaskKind,
    CollectiveOperation,
    KVCacheMode,
    MoEActType,
)
from noria.trt.api.strict import Strict, kept
from noria.trt.api.tensor import ITensor
from noria.trt.layers.base import ILayer, param
from noria.trt.release import Span, versioned

if TYPE_CHECKING:
    from noria.trt.api.network import INetworkDefinition

_11 = Span(since=(11, 0))
_RANKS = Span(since=(10, 16))


def _optional(index: int, doc: str) -> Any:
    """A property over an input that may be absent; None takes it away."""

    def get(self: Any) -> ITensor | None:
        return _entry(self).get_input(index)

    def put(self: Any, tensor: ITensor | None) -> None:
        layer = _entry(self)
        if tensor is not None:
            layer.set_input(index, tensor)
        elif index < len(layer._inputs):
            layer._inputs[index] = None
            layer._network._reordered()
            layer._changed()

    return property(get, put, doc=doc)


def _entry(owner: Any) -> ILayer:
    return cast(ILayer, owner if isinstance(owner, ILayer) else owner._entry)


def _setting(key: str, convert: Any, doc: str) -> Any:
    """A property over what the attention's first layer computes by."""

    def get(self: IAttention) -> Any:
        return self._entry._params[key]

    def put(self: IAttention, value: Any) -> None:
        self._entry._set_param(key, convert(value))

    return property(get, put, doc=doc)


@versioned(
    {
        "causal_kind": _11,
        "query_form": _11,
        "key_value_form": _11,
        "query_lengths": _11,
        "key_value_lengths": _11,
        "num_ranks": _RANKS,
    }
)
class IAttention(Strict):
    """norm(Q Kᵀ + mask) V for each head; nothing divides by √dim. Made by `add_attention`.

    The network's list has two layers for it, an `IAttentionInputLayer`, which computes here, and
    an `IAttentionOutputLayer`. With fewer heads in K and V, a group of Q's heads shares one.
    Padded tensors are [batch, heads, tokens, dim], packed ones [all tokens, heads, dim] with the
    running number of tokens before each sequence, [batch + 1], as lengths.
    """

    def __init__(
        self, network: INetworkDefinition, inputs: Sequence[ITensor], norm_op: Any, kind: Any
    ) -> None:
        self._name = f"(Unnamed Attention* {len(network._layers)})"
        self._metadata = ""
        params = {
            "_attention": self, "norm_op": AttentionNormalizationOp(norm_op),
            "causal_kind": CausalMaskKind(kind), "decomposable": False, "num_ranks": 1,
            "query_form": AttentionIOForm["PADDED_BHND"],
            "key_value_form": AttentionIOForm["PADDED_BHND"], "to_type": DataType.FLOAT,
        }  # fmt: skip
        self._entry: IAttentionInputLayer = network._add(
            IAttentionInputLayer, "ATTENTION_INPUT", inputs, params
        )
        if self._entry is not None:  # else the network has said why
            self._exit: IAttentionOutputLayer = network._add(
                IAttentionOutputLayer, "ATTENTION_OUTPUT", self._entry._outputs,
                {"_attention": self},
            )  # fmt: skip

    name = kept("_name", "The name.", convert=str)
    metadata = kept("_metadata", "Free text.", convert=str)

    @property
    def causal(self) -> bool:
        """Whether a query sees only the keys up to its own number."""
        return bool(self._entry._params["causal_kind"] != CausalMaskKind["NONE"])

    @causal.setter
    def causal(self, value: bool) -> None:
        kind = CausalMaskKind["UPPER_LEFT" if value else "NONE"]
        self._entry._set_param("causal_kind", kind)

    norm_op = _setting("norm_op", AttentionNormalizationOp, "SOFTMAX or NONE.")
    causal_kind = _setting("causal_kind", CausalMaskKind, "Which keys a query sees.")
    decomposable = _setting("decomposable", bool, "Recorded: it is always decomposed here.")
    num_ranks = _setting("num_ranks", int, "Devices that share the work; only 1 is built here.")
    query_form = _setting("query_form", AttentionIOForm, "Padded or packed, of query and output.")
    key_value_form = _setting("key_value_form", AttentionIOForm, "Padded or packed.")
    normalization_quantize_to_type = _setting(
        "to_type", DataType, "What the normalised scores are rounded to; FLOAT is not at all."
    )
    mask = _optional(3, "Bool: True may be seen; other types are added. [batch, heads, q, k].")
    normalization_quantize_scale = _optional(4, "Scale of that rounding.")
    query_lengths = _optional(5, "INT32 [batch + 1] for packed queries.")
    key_value_lengths = _optional(6, "INT32 [batch] for padded keys, [batch + 1] for packed ones.")

    num_inputs = property(lambda self: 3, doc="Query, key, value.")
    num_outputs = property(lambda self: 1, doc="One.")

    def set_input(self, index: int, tensor: ITensor) -> bool:
        """Another query, key or value; False for another index."""
        if not 0 <= index < 3:
            return False
        self._entry.set_input(index, tensor)
        return True

    def get_input(self, index: int) -> ITensor | None:
        """Query, key or value."""
        return self._entry.get_input(index) if 0 <= index < 3 else None

    def get_output(self, index: int) -> ITensor | None:
        """The output, shaped as the query."""
        return self._exit.get_output(index)


class IAttentionBoundaryLayer(ILayer):
    """A layer at the border of an attention."""

    @property
    def attention(self) -> IAttention:
        """The attention."""
        return cast(IAttention, self._params["_attention"])


class IAttentionInputLayer(IAttentionBoundaryLayer):
    """Takes query, key, value and what is optional."""


class IAttentionOutputLayer(IAttentionBoundaryLayer):
    """Gives the output."""


class IRotaryEmbeddingLayer(ILayer):
    """Inputs: x [batch, heads, tokens, dim], cosines, sines; 3: position numbers (optional)."""

    interleaved = param("interleaved", bool, "Pairs are neighbours; else halves of the vector.")
    rotary_embedding_dim = param("rotary_embedding_dim", int, "How many turn; 0 is all of them.")


@versioned({"update_form": _11, "update_lengths": _11})
class IKVCacheUpdateLayer(ILayer):
    """Inputs: cache [batch, heads, most tokens, dim], update, first place to write [batch]."""

    cache_mode = param("cache_mode", KVCacheMode)
    update_form = param("update_form", AttentionIOForm, "Padded or packed.")
    update_lengths = _optional(3, "INT32 [batch + 1] for packed updates.")


class IMoELayer(ILayer):
    """Inputs: states [batch, tokens, size], experts and scores [batch, tokens, top-k].

    Weights are tensors: gate and up [experts, size, inner], down [experts, inner, size].
    """

    def set_gated_weights(
        self, fc_gate_weights: ITensor, fc_up_weights: ITensor, fc_down_weights: ITensor,
        activation_type: Any,
    ) -> None:  # fmt: skip
        """down((up + beta) * activation(gate)) is one expert."""
        self.activation_type = activation_type
        for index, tensor in enumerate((fc_gate_weights, fc_up_weights, fc_down_weights), 3):
            self.set_input(index, tensor)

    def set_gated_biases(
        self, fc_gate_biases: ITensor, fc_up_biases: ITensor, fc_down_biases: ITensor
    ) -> None:
        """Gate and up [experts, inner], down [experts, size]."""
        for index, tensor in enumerate((fc_gate_biases, fc_up_biases, fc_down_biases), 6):
            self.set_input(index, tensor)

    def set_swiglu_params(self, limit: float, alpha: float, beta: float) -> None:
        """Clamp of gate (above) and up (both ways), factor in the sigmoid, added to up."""
        self.swiglu_param_limit = limit
        self.swiglu_param_alpha = alpha
        self.swiglu_param_beta = beta

    def set_quantization_static(self, fc_down_activation_scale: ITensor, data_type: Any) -> None:
        """Round what goes into down: recorded, and refused at the build."""
        self.quantization_to_type = data_type

    def set_quantization_dynamic_dbl_q(
        self, fc_down_activation_dbl_q_scale: ITensor, data_type: Any, block_shape: Sequence[int],
        dyn_q_output_scale_type: Any,
    ) -> None:  # fmt: skip
        """Round what goes into down: recorded, and refused at the build."""
        self.quantization_to_type = data_type
        self.quantization_block_shape = block_shape
        self.dyn_q_output_scale_type = dyn_q_output_scale_type

    activation_type = param("activation_type", MoEActType)
    swiglu_param_limit = param("limit", float)
    swiglu_param_alpha = param("alpha", float)
    swiglu_param_beta = param("beta", float)
    quantization_to_type = param("to_type", DataType, "FLOAT: nothing is rounded.")
    quantization_block_shape = param("block_shape", Dims)
    dyn_q_output_scale_type = param("scale_type", DataType)


class IDistCollectiveLayer(ILayer):
    """One part of an operation that several devices do together; refused at the build."""

    operation = property(
        lambda self: cast(CollectiveOperation, self._params["operation"]), doc="What they do."
    )


class IDynamicQuantizeLayer(ILayer):
    """Outputs: the rounded numbers, a scale for each block."""

    axis = param("axis", int, "Axis that is cut into blocks.")
    block_size = param("block_size", int, "Elements of a block along it.")
    block_shape = param("block_shape", Dims, "Extents of a block along every axis; -1 is all.")
    to_type = param("to_type", DataType)
    scale_type = param("scale_type", DataType)

"""Attention, rotary embedding and caches of keys and values, made of standard operators.

Source: tensorrt-api spec 1; the formulas are those of the layers' public documentation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from noria.trt.layers.base import ILayer
from noria.trt.lowering.convolution import _given
from noria.trt.lowering.fragment import Fragment, LoweringError, lowers

Inputs = list["str | None"]


@lowers("ATTENTION_OUTPUT")
def attention_output(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    return [f.op("Identity", _given(inputs, 0))]


@lowers("ATTENTION_INPUT")
def attention(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """norm(Q Kᵀ + mask) V. Packed sequences become one, with a mask that keeps them apart."""
    q, k, v = (_given(inputs, i) for i in range(3))
    mask, scale, query_lengths, key_lengths = (*inputs[3:7], *[None] * 4)[:4]
    params = layer._params
    if params["num_ranks"] != 1:
        raise LoweringError(
            f"an attention over {params['num_ranks']} devices; this is one process on one device"
        )
    kind = params["causal_kind"].name
    if mask is not None and kind != "NONE":
        raise LoweringError("an attention is causal or has a mask, not both")
    packed = [params[key].name == "PACKED_NHD" for key in ("query_form", "key_value_form")]
    forms = (packed[0], packed[1], packed[1])
    for name, form, ends in zip(
        (q, k, v), forms, (query_lengths, key_lengths, key_lengths), strict=True
    ):
        if f.rank(name) != (3 if form else 4):
            raise LoweringError(
                f"{'packed' if form else 'padded'} tensors have {3 if form else 4} axes, not "
                f"{f.rank(name)}"
            )
        if form and ends is None:
            raise LoweringError("packed tensors need the lengths of their sequences")
    for ends, what in ((query_lengths, "query_lengths"), (key_lengths, "key_value_lengths")):
        if ends is not None:
            f.must_have_axes(ends, what, "[batch]")
    if any(packed):
        if mask is not None:
            raise LoweringError("a mask of packed sequences")
        queries = _side(f, q, packed[0], query_lengths if packed[0] else None)
        keys = _side(f, k, packed[1], key_lengths)
        values = _side(f, v, packed[1], key_lengths)
        seen = _seen_packed(f, queries, keys, kind)
        made = _heads(f, layer, (_one(f, queries), _one(f, keys), _one(f, values)), seen, None,
                      scale)  # fmt: skip
        made = f.transpose(f.squeeze(made, [0]), [1, 0, 2])  # [tokens, heads, dim]
        if packed[0]:
            return [made]
        batch, tokens = f.extent(q, 0), f.extent(q, 2)
        shape = f.op("Concat", batch, tokens, f.extent(q, 1), f.extent(v, f.rank(v) - 1), axis=0)
        return [f.transpose(f.op("Reshape", made, shape), [0, 2, 1, 3])]
    allowed = _seen_padded(f, q, k, kind, key_lengths)
    added = None
    if mask is not None:
        if f.dtype(mask) == np.bool_:
            allowed = mask if allowed is None else f.op("And", allowed, mask)
        else:
            added = f.cast(mask, f.dtype(q))
    return [_heads(f, layer, (q, k, v), allowed, added, scale)]


def _heads(
    f: Fragment, layer: ILayer, sides: tuple[str, str, str], seen: str | None, added: str | None,
    scale: str | None,
) -> str:  # fmt: skip
    """Padded attention: q [B, H, N, D], k and v [B, G, M, D], masks that broadcast to
    [B, H, N, M]."""
    q, k, v = sides
    k, v = _shared_heads(f, k, q), _shared_heads(f, v, q)
    scores = f.op("MatMul", q, f.transpose(k, [0, 1, 3, 2]))
    if added is not None:
        scores = f.op("Add", scores, added)
    softmax = layer._params["norm_op"].name == "SOFTMAX"
    if seen is not None:  # finite: a row that sees nothing is a mean, not a NaN
        least = np.finfo(f.dtype(scores)).min if softmax else 0
        scores = f.op("Where", seen, scores, f.like(least, scores))
    if softmax:
        scores = f.op("Softmax", scores, axis=-1)
    kind = layer._params["to_type"].name
    if kind == "INT8":
        if scale is None:
            raise LoweringError("rounding the normalised scores needs a scale")
        factor = f.cast(f.op("Reshape", scale, f.ints()), np.float32)
        rounded = f.op("QuantizeLinear", f.cast(scores, np.float32), factor, f.const(np.int8(0)))
        scores = f.cast(f.op("DequantizeLinear", rounded, factor), f.dtype(scores))
    elif kind != "FLOAT":
        raise LoweringError(f"normalised scores as {kind}; the CPU has INT8 and no rounding")
    return f.op("MatMul", scores, v)


def _shared_heads(f: Fragment, name: str, like: str) -> str:
    """Keys or values with as many heads as there are queries; neighbours share one."""
    heads, wanted = f.shape(name)[1], f.shape(like)[1]
    if heads == wanted:
        return name
    if min(heads, wanted) < 1 or wanted % heads:
        raise LoweringError(f"{wanted} heads of queries over {heads} heads of keys or values")
    times = wanted // heads
    ends = [f.extent(name, i) for i in (0, 2, 3)]
    wide = f.op("Concat", ends[0], f.ints(heads, times), *ends[1:], axis=0)
    flat = f.op("Concat", ends[0], f.ints(wanted), *ends[1:], axis=0)
    return f.op("Reshape", f.op("Expand", f.unsqueeze(name, [2]), wide), flat)


def _count(f: Fragment, length: str) -> str:
    """0, 1, 2 … below a tensor of one int64."""
    last = f.op("Reshape", length, f.ints())
    return f.op("Range", f.const(np.int64(0)), last, f.const(np.int64(1)))


def _seen_padded(f: Fragment, q: str, k: str, kind: str, key_lengths: str | None) -> str | None:
    """Which keys a query may see: broadcasts to [B, H, N, M]; None is all."""
    if kind == "NONE" and key_lengths is None:
        return None
    columns = _count(f, f.extent(k, 2))
    lengths = None
    if key_lengths is not None:
        lengths = f.unsqueeze(f.cast(key_lengths, np.int64), [1, 2, 3])
    seen = None if lengths is None else f.op("Less", columns, lengths)
    if kind != "NONE":
        rows = f.unsqueeze(_count(f, f.extent(q, 2)), [1])
        if kind == "LOWER_RIGHT":
            more = lengths if lengths is not None else f.extent(k, 2)
            rows = f.op("Add", rows, f.op("Sub", more, f.extent(q, 2)))
        triangle = f.op("LessOrEqual", columns, rows)
        seen = triangle if seen is None else f.op("And", seen, triangle)
    return seen


@dataclass(slots=True)
class _Side:
    """Tokens one after the other, and for each its sequence, its place there and whether it
    counts; for each sequence its length. All but `tokens` int64 or bool."""

    tokens: str
    owner: str
    place: str
    counts: str
    lengths: str


def _one(f: Fragment, side: _Side) -> str:
    """All tokens as one padded sequence: [1, heads, tokens, dim]."""
    return f.unsqueeze(f.transpose(side.tokens, [1, 0, 2]), [0])


def _side(f: Fragment, name: str, packed: bool, lengths: str | None) -> _Side:
    """Queries or keys, [all tokens, heads, dim]."""
    given = None if lengths is None else f.cast(lengths, np.int64)
    if packed:
        assert given is not None
        numbers = _count(f, f.extent(name, 0))
        starts = f.op("Slice", given, f.ints(0), f.ints(-1))
        ends = f.op("Slice", given, f.ints(1), f.ints(np.iinfo(np.int64).max))
        passed = f.op("LessOrEqual", f.unsqueeze(ends, [0]), f.unsqueeze(numbers, [1]))
        owner = f.reduce("ReduceSum", f.cast(passed, np.int64), [1], keep=False)
        batch = f.op("Shape", ends)
        counts = f.op("Less", owner, batch)
        safe = f.op("Min", owner, f.op("Sub", batch, f.ints(1)))
        place = f.op("Sub", numbers, f.op("Gather", starts, safe, axis=0))
        return _Side(name, safe, place, counts, f.op("Sub", ends, starts))
    shape = [f.extent(name, i) for i in range(4)]
    flat = f.op("Concat", f.ints(-1), shape[1], shape[3], axis=0)
    tokens = f.op("Reshape", f.transpose(name, [0, 2, 1, 3]), flat)
    numbers = _count(f, f.op("Mul", shape[0], shape[2]))
    owner = f.op("Div", numbers, shape[2])
    place = f.op("Sub", numbers, f.op("Mul", owner, shape[2]))
    if given is None:
        given = f.op("Expand", shape[2], shape[0])
    counts = f.op("Less", place, f.op("Gather", given, owner, axis=0))
    return _Side(tokens, owner, place, counts, given)


def _seen_packed(f: Fragment, queries: _Side, keys: _Side, kind: str) -> str:
    """[tokens of queries, tokens of keys]: the same sequence, and what the triangle allows."""
    owner, place = f.unsqueeze(queries.owner, [1]), f.unsqueeze(queries.place, [1])
    seen = f.op("And", f.op("Equal", owner, f.unsqueeze(keys.owner, [0])),
                f.unsqueeze(keys.counts, [0]))  # fmt: skip
    if kind == "NONE":
        return seen
    if kind == "LOWER_RIGHT":
        more = f.op("Sub", keys.lengths, queries.lengths)
        place = f.op("Add", place, f.op("Gather", more, owner, axis=0))
    return f.op("And", seen, f.op("LessOrEqual", f.unsqueeze(keys.place, [0]), place))


@lowers("ROTARY_EMBEDDING")
def rotary_embedding(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """(a, b) -> (a cos - b sin, a sin + b cos) for pairs of elements of each token's vector."""
    x, cos, sin = (_given(inputs, i) for i in range(3))
    size = f.shape(x)[3] if f.rank(x) == 4 else 0
    turned = int(layer._params["rotary_embedding_dim"]) or size
    if f.rank(x) != 4 or turned < 2 or turned % 2 or turned > size:
        raise LoweringError(f"{turned} elements to turn of a tensor {f.shape(x)}")
    angles = []
    for table in (cos, sin):
        if len(inputs) > 3 and inputs[3] is not None:
            table = f.op("Gather", table, inputs[3], axis=0)
        if f.rank(table) != 3 or f.shape(table)[2] not in (-1, turned // 2):
            raise LoweringError(f"angles {f.shape(table)} for {turned // 2} pairs")
        angles.append(f.cast(f.unsqueeze(table, [1]), f.dtype(x)))
    cos, sin = angles

    def part(start: int, end: int, step: int = 1) -> str:
        return f.op("Slice", x, f.ints(start), f.ints(end), f.ints(3), f.ints(step))

    neighbours = bool(layer._params["interleaved"])
    if neighbours:
        a, b = part(0, turned, 2), part(1, turned, 2)
    else:
        a, b = part(0, turned // 2), part(turned // 2, turned)
    first = f.op("Sub", f.op("Mul", a, cos), f.op("Mul", b, sin))
    second = f.op("Add", f.op("Mul", a, sin), f.op("Mul", b, cos))
    if neighbours:
        pairs = f.op("Concat", f.unsqueeze(first, [4]), f.unsqueeze(second, [4]), axis=4)
        lead = [f.extent(x, i) for i in range(3)]
        made = f.op("Reshape", pairs, f.op("Concat", *lead, f.ints(turned), axis=0))
    else:
        made = f.op("Concat", first, second, axis=3)
    return [made if turned == size else f.op("Concat", made, part(turned, size), axis=3)]


@lowers("KVCACHE_UPDATE")
def cache_update(f: Fragment, layer: ILayer, inputs: Inputs) -> list[str]:
    """For each place of the cache: the token of the update that belongs there, or what was."""
    cache, update, first = (_given(inputs, i) for i in range(3))
    packed = layer._params["update_form"].name == "PACKED_NHD"
    lengths = inputs[3] if len(inputs) > 3 else None
    if f.rank(cache) != 4 or f.rank(update) != (3 if packed else 4):
        raise LoweringError(f"a cache {f.shape(cache)} and an update {f.shape(update)}")
    f.must_have_axes(first, "write_indices", "[batch]")
    if packed and lengths is None:
        raise LoweringError("packed updates need update_lengths")
    side = _side(f, update, packed, lengths if packed else None)
    if packed:
        starts = f.op("Slice", f.cast(lengths or "", np.int64), f.ints(0), f.ints(-1))
    else:
        starts = f.op("Mul", _count(f, f.extent(update, 0)), f.extent(update, 2))
    places = f.unsqueeze(_count(f, f.extent(cache, 2)), [0])
    number = f.op("Sub", places, f.unsqueeze(f.cast(first, np.int64), [1]))
    zero = f.const(np.int64(0))
    inside = f.op("And", f.op("Less", number, f.unsqueeze(side.lengths, [1])),
                  f.op("GreaterOrEqual", number, zero))  # fmt: skip
    token = f.op("Add", f.op("Where", inside, number, zero), f.unsqueeze(starts, [1]))
    last = f.op("Sub", f.extent(side.tokens, 0), f.ints(1))
    new = f.op("Gather", side.tokens, f.op("Min", token, last), axis=0)  # [B, places, heads, dim]
    new = f.transpose(new, [0, 2, 1, 3])
    return [f.op("Where", f.unsqueeze(inside, [1, 3]), f.cast(new, f.dtype(cache)), cache)]

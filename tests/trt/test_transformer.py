"""Attention, rotary embedding, key-value caches, experts, rounding in blocks, collectives."""

from __future__ import annotations

import numpy as np
import pytest

import noria.trt as trt
from tests.trt.harness import Messages, engine_of, execute, network, run_layer

SOFTMAX, NONE = trt.AttentionNormalizationOp.SOFTMAX, trt.AttentionNormalizationOp.NONE
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def slow_attention(q, k, v, sees, softmax=True, added=None):
    """One query after the other; `sees(batch, head, i, j)`."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    share = q.shape[1] // k.shape[1]
    for b, h, i in np.ndindex(*q.shape[:3]):
        keys = [j for j in range(k.shape[2]) if sees(b, h, i, j)]
        scores = np.array([float(q[b, h, i] @ k[b, h // share, j]) for j in keys])
        if added is not None:
            a = np.broadcast_to(added, (*q.shape[:3], k.shape[2]))
            scores = scores + np.array([a[b, h, i, j] for j in keys])
        if softmax and keys:
            scores = np.exp(scores - scores.max())
            scores = scores / scores.sum()
        for j, s in zip(keys, scores, strict=True):
            out[b, h, i] += s * v[b, h // share, j]
    return out


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize(
    ("kind", "sees"),
    [
        ("NONE", lambda i, j: True),
        ("UPPER_LEFT", lambda i, j: j <= i),
        ("LOWER_RIGHT", lambda i, j: j <= i + 2),
    ],
)
def test_attention(kind, sees, heads, dynamic):
    q, k, v = normal(2, 4, 3, 8), normal(2, heads, 5, 8), normal(2, heads, 5, 8)

    def make(net, *tensors):
        for tensor in tensors:  # the number of heads is never free
            tensor.shape = (*tensor.shape[:1], q.shape[1] if tensor is tensors[0] else heads,
                            *tensor.shape[2:])  # fmt: skip
        return net.add_attention_v2(*tensors, SOFTMAX, trt.CausalMaskKind[kind])

    made = run_layer(make, q, k, v, dynamic=dynamic)[0]
    want = slow_attention(q, k, v, lambda b, h, i, j: sees(i, j))
    np.testing.assert_allclose(made, want, atol=2e-6)


def test_attention_does_not_divide_by_the_root_of_the_size():
    q, k = np.full((1, 1, 1, 16), 0.5, np.float32), np.eye(16, dtype=np.float32)[None, None, :2]
    v = np.array([[[[0.0], [1.0]]]], np.float32)
    q[..., 1] = 0.5 + np.log(3)  # weights 1 : 3
    made = run_layer(lambda n, *t: n.add_attention(*t, SOFTMAX, False), q, k, v)[0]
    assert made.reshape(()) == pytest.approx(0.75)


@pytest.mark.parametrize("kind", ["bool", "added", "none norm"])
def test_attention_with_a_mask(kind):
    q, k, v = normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4)
    mask = RNG.random((1, 2, 3, 5)) < 0.6 if kind != "added" else normal(2, 1, 3, 5)
    if kind != "added":
        mask[..., 0] = True
    norm = NONE if kind == "none norm" else SOFTMAX

    def make(net, q, k, v, m):
        layer = net.add_attention(q, k, v, norm, False)
        layer.mask = m
        assert layer.mask is m
        return layer

    made = run_layer(make, q, k, v, mask)[0]
    if kind == "added":
        want = slow_attention(q, k, v, lambda *_: True, added=mask)
    else:
        whole = np.broadcast_to(mask, (2, 2, 3, 5))
        want = slow_attention(q, k, v, lambda b, h, i, j: whole[b, h, i, j], norm is SOFTMAX)
    np.testing.assert_allclose(made, want, atol=5e-6)


@pytest.mark.parametrize("kind", ["NONE", "UPPER_LEFT", "LOWER_RIGHT"])
def test_attention_over_the_first_keys_of_each_sequence(kind):
    q, k, v = normal(3, 2, 2, 4), normal(3, 1, 6, 4), normal(3, 1, 6, 4)
    lengths = np.array([6, 2, 4], np.int32)

    def make(net, q, k, v, n):
        layer = net.add_attention_v2(q, k, v, SOFTMAX, trt.CausalMaskKind[kind])
        layer.key_value_lengths = n
        return layer

    def sees(b, h, i, j):
        allowed = {"NONE": j, "UPPER_LEFT": i, "LOWER_RIGHT": i + lengths[b] - 2}[kind]
        return j < lengths[b] and j <= allowed

    made = run_layer(make, q, k, v, lengths)[0]
    np.testing.assert_allclose(made, slow_attention(q, k, v, sees), atol=2e-6)


@pytest.mark.parametrize("kind", ["NONE", "UPPER_LEFT", "LOWER_RIGHT"])
@pytest.mark.parametrize("forms", ["both", "query", "keys"])
def test_packed_attention(forms, kind):
    """Sequences of their own, one after the other; each is an attention for itself."""
    packed_q, packed_k = forms != "keys", forms != "query"
    counts = ([2, 3, 1] if packed_q else [3, 3, 3]), ([4, 3, 5] if packed_k else [5, 5, 5])
    parts = [
        (normal(1, 4, n, 8), normal(1, 2, m, 8), normal(1, 2, m, 8))
        for n, m in zip(*counts, strict=True)
    ]

    def joined(index, packed):
        arrays = [p[index][0] for p in parts]
        if packed:
            return np.concatenate([a.transpose(1, 0, 2) for a in arrays])
        return np.stack(arrays)

    arrays = [joined(0, packed_q), joined(1, packed_k), joined(2, packed_k)]
    arrays += [np.cumsum([0, *n]).astype(np.int32) for n, p in
               zip(counts, (packed_q, packed_k), strict=True) if p]  # fmt: skip

    def make(net, q, k, v, *ends):
        layer = net.add_attention_v2(q, k, v, SOFTMAX, trt.CausalMaskKind[kind])
        ends = list(ends)
        if packed_q:
            layer.query_form = trt.AttentionIOForm.PACKED_NHD
            layer.query_lengths = ends.pop(0)
        if packed_k:
            layer.key_value_form = trt.AttentionIOForm.PACKED_NHD
            layer.key_value_lengths = ends.pop(0)
        return layer

    made = run_layer(make, *arrays)[0]
    at = 0
    for b, (q, k, v) in enumerate(parts):
        n, m = q.shape[2], k.shape[2]
        most = {"NONE": m, "UPPER_LEFT": 0, "LOWER_RIGHT": m - n}[kind]

        def sees(_, h, i, j, kind=kind, most=most):
            return kind == "NONE" or j <= i + most

        want = slow_attention(q, k, v, sees)[0]
        own = made[at : at + n].transpose(1, 0, 2) if packed_q else made[b]
        np.testing.assert_allclose(own, want, atol=2e-6)
        at += n


def test_attention_is_two_layers_and_can_be_changed():
    net = network()
    q, k, v = (net.add_input(n, trt.float32, (1, 2, 3, 4)) for n in "qkv")
    layer = net.add_attention(q, k, v, SOFTMAX, True)
    assert [x.type for x in net] == [trt.LayerType.ATTENTION_INPUT, trt.LayerType.ATTENTION_OUTPUT]
    first = net[0]
    first.__class__ = trt.IAttentionInputLayer
    assert first.attention is layer
    assert layer.causal
    assert layer.causal_kind == trt.CausalMaskKind.UPPER_LEFT
    assert layer.get_output(0).shape == (1, 2, 3, 4)
    layer.causal = False
    layer.set_input(0, net.add_input("long", trt.float32, (1, 2, 7, 4)))
    assert layer.get_output(0).shape == (1, 2, 7, 4)
    assert (layer.num_inputs, layer.num_outputs) == (3, 1)


def fails(net, layer):
    """What the logger says when the network is built."""
    net.mark_output(layer.get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    return net.builder.logger.errors[-1]


def test_attention_that_cannot_be():
    def attention(**settings):
        net = network()
        q = net.add_input("q", trt.float32, (1, 4, 3, 4))
        k = net.add_input("k", trt.float32, (1, settings.pop("heads", 4), 3, 4))
        layer = net.add_attention(q, k, k, SOFTMAX, settings.pop("causal", False))
        if settings.pop("mask", False):
            layer.mask = net.add_input("mask", trt.bool, (1, 1, 3, 3))
        for key, value in settings.items():
            setattr(layer, key, value)
        return fails(net, layer)

    assert "4 heads of queries over 3 heads" in attention(heads=3)
    assert "causal or has a mask" in attention(causal=True, mask=True)
    assert "over 2 devices" in attention(num_ranks=2)
    assert "normalised scores as FP8" in attention(normalization_quantize_to_type=trt.DataType.FP8)
    assert "packed tensors have 3 axes" in attention(query_form=trt.AttentionIOForm.PACKED_NHD)


def test_attention_that_rounds_its_scores():
    q, k, v = normal(1, 1, 3, 4), normal(1, 1, 5, 4), normal(1, 1, 5, 4)
    step = np.float32(1 / 16)

    def make(net, q, k, v):
        layer = net.add_attention(q, k, v, SOFTMAX, False)
        layer.normalization_quantize_to_type = trt.int8
        layer.normalization_quantize_scale = net.add_constant((), step).get_output(0)
        return layer

    scores = q[0, 0] @ k[0, 0].T
    scores = np.exp(scores - scores.max(1, keepdims=True))
    scores /= scores.sum(1, keepdims=True)
    want = (np.rint(scores / step) * step) @ v[0, 0]
    np.testing.assert_allclose(run_layer(make, q, k, v)[0][0, 0], want, atol=1e-6)


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [0, 4])
def test_rotary_embedding(turned, interleaved, places):
    x = normal(2, 3, 5, 8)
    size = turned or 8
    numbers = RNG.integers(0, 20, (2, 5)).astype(np.int32)
    angle = np.arange(20)[:, None] * 0.3 ** np.arange(size // 2)
    tables = [np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]
    if not places:
        tables = [t[numbers] for t in tables]

    def make(net, x, cos, sin, *rest):
        layer = net.add_rotary_embedding(x, cos, sin, interleaved, turned)
        if rest:
            layer.set_input(3, rest[0])
        return layer

    made = run_layer(make, x, *tables, *([numbers] if places else []))[0]
    want = x.astype(np.complex128)
    for b, h, t, p in np.ndindex(2, 3, 5, size // 2):
        a, c = (2 * p, 2 * p + 1) if interleaved else (p, p + size // 2)
        turn = np.exp(1j * angle[numbers[b, t], p]) * complex(x[b, h, t, a], x[b, h, t, c])
        want[b, h, t, a], want[b, h, t, c] = turn.real, turn.imag
    np.testing.assert_allclose(made, want.real, atol=2e-6)


def test_rotary_embedding_of_an_odd_size_is_refused():
    net = network()
    x = net.add_input("x", trt.float32, (1, 1, 2, 8))
    table = net.add_input("t", trt.float32, (1, 2, 4))
    layer = net.add_rotary_embedding(x, table, table, False, 3)
    assert "3 elements to turn" in fails(net, layer)


@pytest.mark.parametrize("form", ["padded", "packed"])
def test_cache_update(form):
    """What runs over the end is left out."""
    cache = normal(3, 2, 6, 4)
    first = np.array([0, 3, 5], np.int32)
    counts = [2, 2, 2] if form == "padded" else [3, 1, 2]
    parts = [normal(2, n, 4) for n in counts]
    want = cache.copy()
    for b, part in enumerate(parts):
        for s in range(part.shape[1]):
            if first[b] + s < 6:
                want[b, :, first[b] + s] = part[:, s]
    if form == "padded":
        arrays = [cache, np.stack(parts), first]
    else:
        update = np.concatenate([p.transpose(1, 0, 2) for p in parts])
        arrays = [cache, update, first, np.cumsum([0, *counts]).astype(np.int32)]

    def make(net, cache, update, first, *ends):
        layer = net.add_kv_cache_update(cache, update, first, trt.KVCacheMode.LINEAR)
        if ends:
            layer.update_form = trt.AttentionIOForm.PACKED_NHD
            layer.update_lengths = ends[0]
        return layer

    assert run_layer(make, *arrays)[0].tolist() == want.tolist()


def test_cache_update_in_place():
    """Cache and output share an address, as TensorRT asks for; tokens come one by one."""
    net = network()
    cache = net.add_input("cache", trt.float32, (1, 1, 4, 2))
    update = net.add_input("update", trt.float32, (1, 1, 1, 2))
    first = net.add_input("first", trt.int32, (1,))
    layer = net.add_kv_cache_update(cache, update, first, trt.KVCacheMode.LINEAR)
    layer.get_output(0).name = "next"
    net.mark_output(layer.get_output(0))
    context = engine_of(net).create_execution_context()
    memory = np.zeros((1, 1, 4, 2), np.float32)
    token, place = np.zeros((1, 1, 1, 2), np.float32), np.zeros(1, np.int32)
    for name, array in {"cache": memory, "next": memory, "update": token, "first": place}.items():
        context.set_tensor_address(name, array.ctypes.data)
    for i in range(3):
        token[:], place[:] = i + 1, i
        assert context.execute_async_v3(0)
    assert memory[0, 0, :, 0].tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("swiglu", [None, (0.5, 1.7, 1.0)])
def test_mixture_of_experts(biased, swiglu):
    experts, size, inner, top = 4, 6, 5, 2
    x = normal(2, 3, size)
    chosen = np.stack([RNG.permutation(experts)[:top] for _ in range(6)]).reshape(2, 3, top)
    chosen = chosen.astype(np.int32)
    scores = RNG.random((2, 3, top)).astype(np.float32)
    weights = [normal(experts, size, inner), normal(experts, size, inner),
               normal(experts, inner, size)]  # fmt: skip
    biases = [normal(experts, inner), normal(experts, inner), normal(experts, size)]

    def make(net, x, chosen, scores):
        def tensor(array):
            return net.add_constant(array.shape, array).get_output(0)

        layer = net.add_moe(x, chosen, scores)
        layer.set_gated_weights(*map(tensor, weights), trt.MoEActType.SILU)
        if biased:
            layer.set_gated_biases(*map(tensor, biases))
        if swiglu:
            layer.set_swiglu_params(*swiglu)
        return layer

    made = run_layer(make, x, chosen, scores)[0]
    limit, alpha, beta = swiglu or (np.inf, 1.0, 0.0)
    want = np.zeros_like(x, np.float64)
    for b, t, n in np.ndindex(2, 3, top):
        e = chosen[b, t, n]
        offsets = [bias[e] if biased else 0 for bias in biases]
        gate = np.minimum(x[b, t] @ weights[0][e] + offsets[0], limit)
        up = np.clip(x[b, t] @ weights[1][e] + offsets[1], -limit, limit)
        hidden = (up + beta) * gate / (1 + np.exp(-alpha * gate))
        want[b, t] += scores[b, t, n] * (hidden @ weights[2][e] + offsets[2])
    np.testing.assert_allclose(made, want, atol=2e-5)


def test_an_expert_that_overflows_does_not_spoil_tokens_of_others():
    x = np.ones((1, 1, 1), np.float32)
    big = np.array([1, 1e38], np.float32).reshape(2, 1, 1)

    def make(net, x, chosen, scores):
        weights = net.add_constant((2, 1, 1), big).get_output(0)
        layer = net.add_moe(x, chosen, scores)
        layer.set_gated_weights(weights, weights, weights, trt.MoEActType.NONE)
        return layer

    ones = np.ones((1, 1, 1), np.float32)
    assert run_layer(make, x, np.zeros((1, 1, 1), np.int32), ones)[0].tolist() == [[[1.0]]]


def test_experts_without_weights_or_in_fp8_are_refused():
    net = network()
    x = net.add_input("x", trt.float32, (1, 2, 4))
    chosen = net.add_input("e", trt.int32, (1, 2, 1))
    scores = net.add_input("s", trt.float32, (1, 2, 1))
    layer = net.add_moe(x, chosen, scores)
    assert "without weights" in fails(net, layer)
    weights = net.add_constant((2, 4, 4), normal(2, 4, 4)).get_output(0)
    layer.set_gated_weights(weights, weights, weights, trt.MoEActType.SILU)
    layer.set_quantization_static(scores, trt.DataType.FP8)
    assert "experts in FP8" in fails(net, layer)


def test_a_collective_says_why_it_cannot_be():
    net = network()
    x = net.add_input("x", trt.float32, (2,))
    operation = trt.CollectiveOperation.ALL_REDUCE
    layer = net.add_dist_collective(x, operation, trt.ReduceOperation.SUM, -1, None)
    said = fails(net, layer)
    assert "ALL_REDUCE" in said
    assert "one process on one device" in said


@pytest.mark.parametrize("block", [(1, 4), (2, 4), (1, -1), (-1, -1)])
def test_rounding_in_blocks(block):
    x = normal(4, 8)
    x[0] = 0  # a block of zeros

    def make(net, x):
        return net.add_dynamic_quantize_v2(x, block, trt.int8, trt.float32)

    rounded, scales = run_layer(make, x)
    step = [n if b == -1 else b for b, n in zip(block, x.shape, strict=True)]
    assert scales.shape == (4 // step[0], 8 // step[1])
    for i, j in np.ndindex(*scales.shape):
        at = np.s_[i * step[0] : (i + 1) * step[0], j * step[1] : (j + 1) * step[1]]
        scale = np.abs(x[at]).max() / np.float32(127)
        assert scales[i, j] == pytest.approx(scale, rel=1e-6)
        want = np.rint(x[at] / scale) if scale else np.zeros_like(x[at])
        assert np.abs(rounded[at] - want).max() <= (1 if scale else 0)  # a tie may fall either way
        assert np.abs(rounded[at] * scale - x[at]).max() <= scale * 0.5001


def test_rounding_to_fp4_is_refused():
    net = network()
    x = net.add_input("x", trt.float32, (4, 16))
    layer = net.add_dynamic_quantize(x, 1, 16, trt.DataType.FP4, trt.DataType.FP8)
    assert layer.block_size == 16
    assert "blocks to FP4 with scales of FP8" in fails(net, layer)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_releases_have_what_they_have():
    from noria.trt import release

    net = network()
    before = release.current().name
    try:
        has = {}
        for number in ("8.6", "10.14", "10.16", "11"):
            release.set_version(number)
            has[number] = [n for n in ("add_attention", "add_attention_v2", "add_moe") if
                            hasattr(net, n)]  # fmt: skip
    finally:
        release.set_version(before)
    assert has == {
        "8.6": [], "10.14": ["add_attention"], "10.16": ["add_attention", "add_moe"],
        "11": ["add_attention", "add_attention_v2", "add_moe"],
    }  # fmt: skip


def test_a_small_language_model_with_a_cache():
    """Rotary embedding, cache and attention together: token by token is the same as all at
    once."""
    tokens, size = 5, 4
    q, k, v = normal(1, 2, tokens, size), normal(1, 1, tokens, size), normal(1, 1, tokens, size)
    angle = np.arange(tokens)[:, None] * np.array([1.0, 0.1])
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)

    def step_network(count):
        net = network()

        def given(name, kind, *shape):
            return net.add_input(name, kind, shape)

        def turned(x, places):
            tables = [net.add_constant(t.shape, t).get_output(0) for t in (cos, sin)]
            layer = net.add_rotary_embedding(x, *tables, False, 0)
            layer.set_input(3, places)
            return layer.get_output(0)

        places = given("places", trt.int32, 1, count)
        first, lengths = given("first", trt.int32, 1), given("lengths", trt.int32, 1)
        new_q = turned(given("q", trt.float32, 1, 2, count, size), places)
        new_k = turned(given("k", trt.float32, 1, 1, count, size), places)
        mode = trt.KVCacheMode.LINEAR
        sides = []
        for name, new in (("k", new_k), ("v", given("v", trt.float32, 1, 1, count, size))):
            cache = given(f"{name}_cache", trt.float32, 1, 1, tokens, size)
            kept = net.add_kv_cache_update(cache, new, first, mode).get_output(0)
            kept.name = f"{name}_next"
            net.mark_output(kept)
            sides.append(kept)
        layer = net.add_attention_v2(new_q, *sides, SOFTMAX, trt.CausalMaskKind.LOWER_RIGHT)
        layer.key_value_lengths = lengths
        layer.get_output(0).name = "y"
        net.mark_output(layer.get_output(0))
        return engine_of(net)

    empty = np.zeros((1, 1, tokens, size), np.float32)
    whole = execute(
        step_network(tokens), q=q, k=k, v=v, k_cache=empty, v_cache=empty, first=[0],
        lengths=[tokens], places=np.arange(tokens)[None],
    )["y"]  # fmt: skip
    engine, caches = step_network(1), [empty, empty]
    for t in range(tokens):
        at = np.s_[:, :, t : t + 1]
        made = execute(
            engine, q=q[at], k=k[at], v=v[at], k_cache=caches[0], v_cache=caches[1], first=[t],
            lengths=[t + 1], places=[[t]],
        )  # fmt: skip
        caches = [made["k_next"], made["v_next"]]
        np.testing.assert_allclose(made["y"], whole[at], atol=2e-6)


def experts(
    net, sizes=((2, 3, 6), (2, 3, 2), (2, 3, 2)), weights=((4, 6, 5), (4, 6, 5), (4, 5, 6))
):
    kinds = (trt.float32, trt.int32, trt.float32)
    tensors = [
        net.add_input(f"i{i}", k, s) for i, (k, s) in enumerate(zip(kinds, sizes, strict=True))
    ]
    layer = net.add_moe(*tensors)
    made = [net.add_constant(s, np.ones(s, np.float32)).get_output(0) for s in weights]
    layer.set_gated_weights(*made, trt.MoEActType.SILU)
    return layer


def ended(net):
    layer = padded(net, (2, 2, 5, 8))
    layer.key_value_lengths = net.add_input("ends", trt.int32, (1,) * 8)
    return layer


def padded(net, value):
    inputs = [(2, 4, 3, 8), (2, 2, 5, 8), value]
    tensors = [net.add_input(f"i{i}", trt.float32, s) for i, s in enumerate(inputs)]
    return net.add_attention_v2(*tensors, SOFTMAX, trt.CausalMaskKind.NONE)


def cache(net, shape):
    return net.add_kv_cache_update(
        net.add_input("c", trt.float32, shape), net.add_input("u", trt.float32, (2, 4, 3, 8)),
        net.add_input("w", trt.int32, (1,) * 8), trt.KVCacheMode.LINEAR,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda n: cache(n, (-1,) * 4), "write_indices: a tensor (1, 1, 1, 1, 1, 1, 1, 1)"),
        (lambda n: cache(n, (2, 4, 6, 8)), "with 8 axes; expected 1, [batch]"),
        (ended, "key_value_lengths: a tensor (1, 1, 1, 1, 1, 1, 1, 1)"),
        (lambda n: padded(n, (3,)), "padded tensors have 4 axes, not 1"),
        (lambda n: padded(n, ()), "padded tensors have 4 axes, not 0"),
        (lambda n: experts(n, ((), (2, 3, 2), (2, 3, 2))), "hidden_states: a tensor () with 0"),
        (lambda n: experts(n, ((2, 3, 6), (), (2, 3, 2))), "expected 3, [batch, tokens, top-k]"),
        (lambda n: experts(n, weights=((4, 6, 5), (4, 6), (4, 5, 6))), "the weights up: a tensor"),
        (lambda n: experts(n, weights=((4, 6, 5), (0,), (4, 5, 6))), "there are no weights"),
        (
            lambda n: n.add_ragged_softmax(
                n.add_input("x", trt.float32, ()), n.add_input("b", trt.int32, (2, 3, 1))
            ),
            "needs a tensor with an axis",
        ),
    ],
)
def test_shapes_that_cannot_be_are_told_in_words(make, told):
    log = Messages()
    net = network(log)
    out = make(net).get_output(0)
    tuple(out.shape)
    net.mark_output(out)
    builder = net.builder
    assert builder.build_serialized_network(net, builder.create_builder_config()) is None
    assert told in log.errors[-1]
    assert "Error:" not in log.errors[-1]

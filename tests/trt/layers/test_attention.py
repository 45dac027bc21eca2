"""Attention, rotary embeddings and key-value caches against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.trt as trt
from tests.trt.harness import engine_of, execute, network, run_layer

RNG = np.random.default_rng(11)
SOFTMAX = trt.AttentionNormalizationOp.SOFTMAX


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def reference(q, k, v, seen=None):
    """norm(Q Kᵀ) V with as many heads of keys as divide those of queries."""
    times = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, 1), np.repeat(v, times, 1)
    scores = q @ k.transpose(0, 1, 3, 2)
    scores = scores if seen is None else np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def attend(q, k, v, *, make=None, mask=None, **settings):
    net = network()
    feeds = {"q": q, "k": k, "v": v} | ({} if mask is None else {"mask": mask})
    tensors = {n: net.add_input(n, trt.DataType.of(a.dtype), a.shape) for n, a in feeds.items()}
    attention = net.add_attention(tensors["q"], tensors["k"], tensors["v"], SOFTMAX, False)
    if mask is not None:
        attention.mask = tensors["mask"]
    for name, value in settings.items():
        setattr(attention, name, value)
    if make is not None:
        make(net, attention)
    attention.get_output(0).name = "y"
    net.mark_output(attention.get_output(0))
    return execute(engine_of(net), **feeds)["y"]


@pytest.mark.parametrize("heads", [4, 2, 1])
def test_queries_share_heads_of_keys(heads) -> None:
    q, k, v = arrays((2, 4, 3, 8), (2, heads, 5, 8), (2, heads, 5, 6))
    np.testing.assert_allclose(attend(q, k, v), reference(q, k, v), atol=5e-6)


@pytest.mark.parametrize(("kind", "offset"), [("UPPER_LEFT", 0), ("LOWER_RIGHT", 2)])
def test_a_query_sees_no_position_behind_its_own(kind, offset) -> None:
    q, k, v = arrays((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    seen = np.arange(5) <= np.arange(3)[:, None] + offset
    made = attend(q, k, v, causal_kind=trt.CausalMaskKind[kind])
    np.testing.assert_allclose(made, reference(q, k, v, seen), atol=5e-6)


def test_masks_of_truth_and_of_numbers() -> None:
    q, k, v = arrays((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    seen = RNG.random((1, 2, 3, 5)) < 0.6
    seen[..., 0] = True
    want = reference(q, k, v, seen)
    np.testing.assert_allclose(attend(q, k, v, mask=seen), want, atol=5e-6)
    numbers = np.where(seen, 0, -1e9).astype(np.float32)
    np.testing.assert_allclose(attend(q, k, v, mask=numbers), want, atol=5e-6)


def test_weights_in_bytes() -> None:
    q, k, v = arrays((1, 1, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4))

    def quantise(net, attention):
        scale = net.add_constant((1,), np.float32([1 / 127])).get_output(0)
        attention.normalization_quantize_scale = scale
        attention.normalization_quantize_to_type = trt.int8

    made = attend(q, k, v, make=quantise)
    assert 0 < np.abs(made - reference(q, k, v)).max() < 0.05


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [8, 4])
def test_rotary_embeddings(interleaved, turned) -> None:
    (x,) = arrays((2, 3, 5, 8))
    angles = RNG.uniform(0, 6, (2, 5, turned // 2)).astype(np.float32)
    (made,) = run_layer(
        lambda net, x, c, s: net.add_rotary_embedding(x, c, s, interleaved, turned),
        x, np.cos(angles), np.sin(angles),
    )  # fmt: skip
    part = x[..., :turned]
    halves = (part[..., 0::2], part[..., 1::2]) if interleaved else np.split(part, 2, -1)
    number = (halves[0] + 1j * halves[1]) * np.exp(1j * angles)[:, None]
    want = x.copy()
    if interleaved:
        want[..., 0:turned:2], want[..., 1:turned:2] = number.real, number.imag
    else:
        want[..., :turned] = np.concatenate([number.real, number.imag], -1)
    np.testing.assert_allclose(made, want, atol=2e-6)


def test_rotary_embeddings_by_positions() -> None:
    (x,) = arrays((1, 2, 3, 4))
    angles = RNG.uniform(0, 6, (9, 2)).astype(np.float32)
    positions = np.array([[7, 0, 4]], np.int32)

    def make(net, x, c, s, p):
        layer = net.add_rotary_embedding(x, c, s, False, 0)
        layer.set_input(3, p)
        return layer

    (made,) = run_layer(make, x, np.cos(angles), np.sin(angles), positions)
    number = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angles[positions])[:, None]
    np.testing.assert_allclose(made, np.concatenate([number.real, number.imag], -1), atol=2e-6)


def test_an_update_is_written_from_its_position_on() -> None:
    cache, update = arrays((2, 3, 8, 4), (2, 3, 2, 4))
    first = np.array([0, 5], np.int32)
    (made,) = run_layer(lambda net, *t: net.add_kv_cache_update(*t), cache, update, first)
    want = cache.copy()
    want[0, :, 0:2], want[1, :, 5:7] = update[0], update[1]
    np.testing.assert_array_equal(made, want)


def test_heads_that_do_not_divide_are_refused_by_number() -> None:
    net = network()
    q, k = (net.add_input(n, trt.float32, (1, h, 3, 4)) for n, h in (("q", 4), ("k", 3)))
    net.mark_output(net.add_attention(q, k, k, SOFTMAX, False).get_output(0))
    assert net.builder.build_serialized_network(net, net.builder.create_builder_config()) is None
    assert "4 heads of queries and 3 of keys" in net.builder.logger.errors[-1]


def test_packed_sequences_are_refused_by_name() -> None:
    net = network()
    q = net.add_input("q", trt.float32, (1, 1, 3, 4))
    attention = net.add_attention(q, q, q, SOFTMAX, True)
    assert attention.causal
    assert attention.causal_kind == trt.CausalMaskKind.UPPER_LEFT
    with pytest.raises(AttributeError, match="query_form is refused: Headrace runs vision"):
        attention.query_form  # noqa: B018

"""BERT's plugins and DeBERTa's attention against plain loops in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard.driving import create, decomposed, run

RANDOM = np.random.default_rng(3)
UNITS, HEADS = 6, 2


def values(*shape: int) -> Any:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


def listed(*shape: int) -> list[float]:
    return [float(v) for v in values(*shape).ravel()]


def whole(numbers: Any) -> Any:
    return np.array(numbers, np.int32)


BETA, GAMMA, BIAS = listed(UNITS), listed(UNITS), listed(UNITS)
EMBEDDINGS = {
    "bert_embeddings_layernorm_beta": BETA,
    "bert_embeddings_layernorm_gamma": GAMMA,
    "bert_embeddings_word_embeddings": listed(9, UNITS),
    "bert_embeddings_token_type_embeddings": listed(2, UNITS),
    "bert_embeddings_position_embeddings": listed(5, UNITS),
}
TOKENS, KINDS = whole([[1, 8], [0, 3], [4, 4], [2, 7]]), whole([[0, 1], [0, 1], [1, 0], [1, 1]])
MASK = whole([[1, 1], [1, 1], [1, 0], [1, 1]])
ENDS = whole([0, 3, 3, 7])
PACKED = [whole([1, 0, 4, 2, 8, 3, 7]), whole([0, 0, 1, 1, 0, 0, 1]), ENDS, whole([0] * 4)]
NORM = {"beta": BETA, "gamma": GAMMA}
SIZES = {"hidden_size": UNITS, "num_heads": HEADS}
TYPED = {"type_id": 0, **SIZES}
EMB, SKIP, QKV = (
    f"Custom{name}PluginDynamic" for name in ("EmbLayerNorm", "SkipLayerNorm", "QKVToContext")
)
FIVE, FOUR, CHANNELS = (4, 2, UNITS, 1, 1), (7, UNITS, 1, 1), (1, UNITS, 7, 1)
VARIABLE = [values(7, 3 * UNITS, 1, 1), whole(0), ENDS, whole([0] * 4)]

EXAMPLES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    f"{EMB}:1": ([TOKENS, KINDS, MASK], EMBEDDINGS),
    f"{EMB}:2": (PACKED, EMBEDDINGS),
    f"{SKIP}:1": ([values(*FIVE), values(*FIVE)], {"type_id": 0, "ld": UNITS, **NORM}),
    f"{SKIP}:2": ([values(*FOUR), values(*FOUR)], {"type_id": 0, **NORM, "bias": BIAS}),
    f"{SKIP}:3": ([values(*CHANNELS), values(*CHANNELS)], NORM),
    f"{QKV}:1": ([values(4, 2, 3 * UNITS, 1, 1), whole([3, 4])], {**TYPED, "has_mask": 1}),
    f"{QKV}:2": (VARIABLE, {**TYPED, "has_mask": 1, "var_seqlen": 1}),
    f"{QKV}:3": ([values(1, 3 * UNITS, 7, 1), ENDS, whole([0] * 4)], SIZES),
    "CustomFCPluginDynamic": (
        [values(*FIVE)], {"out_dims": 3, "type_id": 0, "W": listed(UNITS, 3)},
    ),
    "CustomGeluPluginDynamic": ([values(*FIVE)], {"type_id": 0, "bias": BIAS}),
    "DisentangledAttention_TRT": (
        [values(2, 9, 9), values(2, 9, 8), values(2, 9, 8)], {"span": 4, "factor": 0.5},
    ),
}  # fmt: skip


def example(key: str) -> tuple[list[Any], dict[str, Any]]:
    return EXAMPLES[key]


def normalised(row: Any, epsilon: float = 0.0) -> list[float]:
    mean = sum(map(float, row)) / len(row)
    spread = math.sqrt(sum((float(v) - mean) ** 2 for v in row) / len(row) + epsilon)
    return [(float(v) - mean) / spread * g + b for v, g, b in zip(row, GAMMA, BETA, strict=True)]


def embedded(word: int, kind: int, place: int) -> Any:
    rows = [np.reshape(table, (-1, UNITS)) for table in list(EMBEDDINGS.values())[2:]]
    return rows[0][word] + rows[1][kind] + rows[2][place]


def attended(q: Any, k: Any, v: Any, count: int) -> Any:
    """One head: `count` words may be looked at; rows are words."""
    out = np.zeros(v.shape)
    for i, query in enumerate(q.astype(float)):
        scores = [float(query @ k[j].astype(float)) / math.sqrt(len(query)) for j in range(count)]
        raised = [math.exp(s - max(scores)) for s in scores]
        for j, share in enumerate(raised):
            out[i] += share / sum(raised) * v[j]
    return out


@pytest.mark.parametrize("version", ["1", "6"])
def test_embeddings(version: str) -> None:
    inputs, fields = example(f"{EMB}:1")
    rows, lengths = run(EMB, *inputs, version=version, **fields)
    assert rows.shape == (4, 2, UNITS, 1, 1)
    for s in range(4):
        for b in range(2):
            wanted = normalised(embedded(TOKENS[s, b], KINDS[s, b], s))
            np.testing.assert_allclose(rows[s, b, :, 0, 0], wanted, rtol=1e-4, atol=1e-5)
    assert lengths.tolist() == [[4], [2]]
    assert run(EMB, *inputs, version=version, **fields, output_fp16=1)[0].dtype == np.float16


@pytest.mark.parametrize("version", ["2", "3", "4", "5"])
def test_embeddings_of_sequences_of_any_length(version: str) -> None:
    rows, second = run(EMB, *PACKED, version=version, **EMBEDDINGS)
    places = [0, 1, 2, 0, 1, 2, 3]
    for s, place in enumerate(places):
        total = embedded(PACKED[0][s], PACKED[1][s], place)
        np.testing.assert_allclose(rows[s, :, 0, 0], normalised(total), rtol=1e-4, atol=1e-5)
        if version in "35":
            np.testing.assert_allclose(second[s, :, 0, 0], total, rtol=1e-6)
    assert second.shape == (rows.shape if version in "35" else ())


def test_tokens_and_sequences_beyond_the_tables_are_refused() -> None:
    beyond = TOKENS.copy()
    beyond[1, 1] = 9
    with pytest.raises(ModelError, match="words from 0 to 9"):
        run(EMB, beyond, KINDS, MASK, **EMBEDDINGS)
    ends = whole([0, 5, 3, 7])
    with pytest.raises(ModelError, match="sequences end at"):
        run(EMB, *PACKED[:2], ends, PACKED[3], version="2", **EMBEDDINGS)


@pytest.mark.parametrize("version", list("12345678"))
def test_skip_and_norm(version: str) -> None:
    base = str((int(version) - 1) % 4 + 1)
    (x, skip), fields = example(f"{SKIP}:{base}" if base != "4" else f"{SKIP}:3")
    outputs = run(SKIP, x, skip, version=version, **fields)
    epsilon = {"3": 2.0**-10, "4": 2.0**-23}.get(base, 0)
    total = x.astype(float) + skip
    axis = {"1": 2, "2": 1, "3": 1, "4": 1}[base]
    bias = np.array(fields.get("bias", [0.0] * UNITS))
    for row, got in zip(
        np.moveaxis(total, axis, -1).reshape(-1, UNITS),
        np.moveaxis(outputs[0], axis, -1).reshape(-1, UNITS),
        strict=True,
    ):
        np.testing.assert_allclose(got, normalised(row + bias, epsilon), rtol=1e-4, atol=1e-5)
    assert len(outputs) == (2 if base == "4" else 1)
    if base == "4":
        np.testing.assert_allclose(outputs[1], total, rtol=1e-6)


@pytest.mark.parametrize("version", ["1", "2", "4", "5"])
@pytest.mark.parametrize("mask", [None, [[3], [4]], [3, 0]])
def test_attention_of_sequences_of_one_length(version: str, mask: Any) -> None:
    x = example(f"{QKV}:1")[0][0]
    inputs = [x] if mask is None else [x, whole(mask)]
    fields = {**TYPED, "has_mask": int(mask is not None)}
    (out,) = run(QKV, *inputs, version=version, **fields)
    parts = x.reshape(4, 2, HEADS, 3, -1)
    for b in range(2):
        count = 4 if mask is None else int(np.ravel(mask)[b])
        for h in range(HEADS):
            wanted = attended(*(parts[:, b, h, part] for part in range(3)), count)
            got = out.reshape(4, 2, HEADS, -1)[:, b, h]
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", ["2", "5", "3", "6"])
def test_attention_of_sequences_of_any_length(version: str) -> None:
    inputs, fields = example(f"{QKV}:{2 if version in '25' else 3}")
    (out,) = run(QKV, *inputs, version=version, **fields)
    if version in "25":
        parts = inputs[0].reshape(7, HEADS, 3, -1).transpose(2, 1, 0, 3)
        found = out.reshape(7, HEADS, -1).transpose(1, 0, 2)
    else:
        parts = inputs[0].reshape(3, HEADS, -1, 7).transpose(0, 1, 3, 2)
        found = out.reshape(HEADS, -1, 7).transpose(0, 2, 1)
    for first, end in ((0, 3), (3, 7)):
        for h in range(HEADS):
            wanted = attended(*parts[:, h, first:end], end - first)
            np.testing.assert_allclose(found[h, first:end], wanted, rtol=1e-4, atol=1e-5)


def test_rows_times_a_matrix() -> None:
    (x,), fields = example("CustomFCPluginDynamic")
    (y,) = run("CustomFCPluginDynamic", x, **fields)
    matrix = np.reshape(fields["W"], (UNITS, 3))
    wanted = np.einsum("sbk,ko->sbo", x[..., 0, 0].astype(float), matrix)
    np.testing.assert_allclose(y[..., 0, 0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [None, BIAS])
def test_gelu(bias: Any) -> None:
    (x,), _ = example("CustomGeluPluginDynamic")
    (y,) = run("CustomGeluPluginDynamic", x, type_id=0, **({"bias": bias} if bias else {}))
    for i, (value, got) in enumerate(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)):
        z = value + (bias[i % UNITS] if bias else 0)
        inner = math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)
        assert got == pytest.approx(z / 2 * (1 + math.tanh(inner)), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("span", [1, 2, 4, 12])
def test_disentangled_attention(version: str, span: int) -> None:
    content, to_place, from_place = values(2, 9, 9), values(2, 9, 2 * span), values(2, 9, 2 * span)
    (out,) = run(
        "DisentangledAttention_TRT", content, to_place, from_place, version=version, span=span,
        factor=0.5,
    )  # fmt: skip

    def place(distance: int) -> int:
        middle = span // 2
        if middle and abs(distance) > middle:
            step = math.log(abs(distance) / middle) / math.log((2 * span - 1) / middle)
            step = math.ceil(step * (middle - 1) - 1e-6) + middle
            distance = step if distance > 0 else -step
        return min(max(distance + span, 0), 2 * span - 1)

    for b in range(2):
        for i in range(9):
            for j in range(9):
                at = place(i - j)
                total = content[b, i, j] + to_place[b, i, at] + from_place[b, j, at]
                assert out[b, i, j] == pytest.approx(0.5 * total, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "version", "wrong", "problem"),
    [
        (SKIP, "1", {"ld": 5}, "ld is for 5"),
        (SKIP, "2", {"bias": [1.0, 2.0]}, "bias is for 2"),
        (QKV, "1", {"num_heads": 4}, "6 hidden units for 4 heads"),
        (EMB, "1", {"bert_embeddings_layernorm_gamma": [1.0]}, "1 values of gamma"),
        (EMB, "1", {"bert_embeddings_word_embeddings": [1.0] * 7}, "expected rows of 6"),
        ("CustomFCPluginDynamic", "1", {"out_dims": 4}, "18 weights"),
    ],
)
def test_fields_that_contradict_each_other(
    name: str, version: str, wrong: dict[str, Any], problem: str
) -> None:
    fields = EXAMPLES.get(f"{name}:{version}") or EXAMPLES[name]
    with pytest.raises(ModelError) as caught:
        create(name, version, **{**fields[1], **wrong})
    assert problem in str(caught.value)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k(largest: int, axis: int) -> None:
    x = np.round(values(4, 5, 6) * 2)  # with equal values
    fields = {"type_id": 0, "k": 3, "is_largest": largest, "axis": axis}
    best, places = run("TopkLastDim", x, **fields)
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]).tolist()
    for row, some, at in zip(
        rows,
        np.moveaxis(best, axis, -1).reshape(-1, 3).tolist(),
        np.moveaxis(places, axis, -1).reshape(-1, 3).tolist(),
        strict=True,
    ):
        order = sorted(range(len(row)), key=lambda i: (-row[i] if largest else row[i], i))
        assert at == order[:3]
        assert some == [row[i] for i in order[:3]]
    nodes = decomposed("TopkLastDim", x, **fields)
    np.testing.assert_array_equal(nodes[0], best)
    np.testing.assert_array_equal(nodes[1], places)

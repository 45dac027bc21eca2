"""Plugins that move values, against plain loops; their ONNX nodes against them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ModelError
from tests.plugins.standard.driving import NEED_FIXED_AXES, create, decomposed, run

NEED_FIXED_AXES.update({"ScatterND"})


def numbered(*shape: int, dtype: Any = np.float32) -> Any:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def check_nodes(results: list[Any], name: str, *inputs: Any, **values: Any) -> None:
    nodes = decomposed(name, *inputs, **values)
    assert nodes is not None
    for a, b in zip(nodes, results, strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.integers(1, 7), st.integers(1, 7), st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 2.3]))
def test_resize_nearest(height: int, width: int, scale: float) -> None:
    x = numbered(2, 2, height, width)
    out_h, out_w = int(height * scale), int(width * scale)
    (y,) = run("ResizeNearest_TRT", x, scale=scale)
    assert y.shape == (2, 2, out_h, out_w)
    for i in range(out_h):
        for j in range(out_w):
            from_i, from_j = min(int(i / scale), height - 1), min(int(j / scale), width - 1)
            assert (y[:, :, i, j] == x[:, :, from_i, from_j]).all()
    if scale == int(scale):
        check_nodes([y], "ResizeNearest_TRT", x, scale=scale)
    else:
        assert decomposed("ResizeNearest_TRT", x, scale=scale) is None


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_flatten_concat(axis: int) -> None:
    shapes = [[2, 3, 4, 5], [2, 3, 4, 5]]
    shapes[1][axis] += 1
    inputs = [numbered(*s) for s in shapes]
    results = run("FlattenConcat_TRT", *inputs, axis=axis, ignoreBatch=0)
    wanted = [2, 1, 1, 1]
    wanted[axis] = sum(int(np.prod(s[1:])) for s in shapes)
    assert results[0].shape == tuple(wanted)
    for b in range(2):
        flat = [v for x in inputs for v in x[b].ravel().tolist()]
        assert results[0][b].ravel().tolist() == flat
    check_nodes(results, "FlattenConcat_TRT", *inputs, axis=axis, ignoreBatch=0)
    with pytest.raises(ModelError, match="of the inputs"):
        run("FlattenConcat_TRT", inputs[0], inputs[1], axis=axis % 3 + 1, ignoreBatch=0)


def test_batch_tile() -> None:
    a, b = numbered(3, 1, 1, 2), numbered(1, 2, 3, 4)
    # the second has a batch of its own, so the plugin is run by hand on its layer
    plugin = create("BatchTilePlugin_TRT")
    assert plugin.layer.shapes([a.shape, b.shape]) == [(3, 2, 3, 4)]
    (y,) = plugin.layer.compute([a, b])
    assert (y == np.concatenate([b, b, b])).all()
    check_nodes([y], "BatchTilePlugin_TRT", a, b)


def test_special_slice() -> None:
    x = numbered(2, 3, 6)
    results = run("SpecialSlice_TRT", x)
    assert (results[0] == x[:, :, [0, 1, 2, 3]]).all()
    check_nodes(results, "SpecialSlice_TRT", x)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_reorg(version: str, stride: int) -> None:
    x = numbered(2, 3, 6, 12)
    results = run("Reorg_TRT", x, version=version, stride=stride)
    y = results[0]
    assert y.shape == (2, 3 * stride**2, 6 // stride, 12 // stride)
    for c in range(3):
        for p in range(stride):
            for q in range(stride):
                for i in range(6 // stride):
                    for j in range(12 // stride):
                        want = x[:, c, i * stride + p, j * stride + q]
                        assert (y[:, (p * stride + q) * 3 + c, i, j] == want).all()
    check_nodes(results, "Reorg_TRT", x, version=version, stride=stride)
    with pytest.raises(ModelError, match="stride 5"):
        run("Reorg_TRT", x, version=version, stride=5)


def test_coord_conv() -> None:
    x = numbered(2, 1, 3, 5)
    results = run("CoordConvAC", x)
    (y,) = results
    assert (y[:, :1] == x).all()
    for i in range(3):
        for j in range(5):
            assert y[0, 1, i, j] == pytest.approx(-1 + 2 * i / 2)
            assert y[1, 2, i, j] == pytest.approx(-1 + 2 * j / 4)
    check_nodes(results, "CoordConvAC", x)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_split(axis: int, dtype: Any) -> None:
    x = numbered(2, 6, 6, dtype=dtype)
    results = run("Split", x, axis=axis, output_lengths=[1, 3, 2])
    at = 0
    for y, n in zip(results, [1, 3, 2], strict=True):
        want = x[:, at : at + n] if axis == 1 else x[:, :, at : at + n]
        assert y.dtype == dtype
        assert (y == want).all()
        at += n
    for opset in (11, 13, 18):
        if opset != 18:
            check_nodes(results, "Split", x, opset=opset, axis=axis, output_lengths=[1, 3, 2])
    with pytest.raises(ModelError, match="all pieces"):
        run("Split", x, axis=axis, output_lengths=[1, 3])
    with pytest.raises(ModelError, match="axis is 5"):
        run("Split", x, axis=5, output_lengths=[1, 3])


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_scatter_nd(index_type: Any) -> None:
    data = numbered(4, 3, 2)
    indices = np.array([[0, 1], [3, 2], [0, 1]], index_type)
    updates = -numbered(3, 2) - 1
    results = run("ScatterND", data, indices, updates)
    expected = data.copy()
    for row, update in zip(indices, updates, strict=True):
        expected[tuple(row)] = update
    assert (results[0] == expected).all()
    check_nodes(results, "ScatterND", data, indices, updates)
    with pytest.raises(ModelError, match="outside of data"):
        run("ScatterND", data, indices + 2, updates)
    with pytest.raises(ModelError, match="updates"):
        run("ScatterND", data, indices, updates[:, :1])


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min", "mean"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(version: str, reduction: str, axis: int) -> None:
    random = np.random.default_rng(axis + 5)
    data = random.integers(-5, 6, (4, 5)).astype(np.float32)
    indices = random.permuted(np.tile(np.arange(4), (3, 1)), axis=1)[:, :4].astype(np.int64)
    if axis == 0:
        indices = np.stack([random.permutation(4)[:3] for _ in range(4)], 1)
    if reduction != "none":
        indices[0] = indices[1]  # more than one for a place
    updates = random.integers(-5, 6, indices.shape).astype(np.float32)
    values = {"axis": axis, "reduction": reduction}
    results = run("ScatterElements", data, indices, updates, version=version, **values)
    expected, number = data.astype(float), np.ones(data.shape)
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            at = (indices[i, j], j) if axis == 0 else (i, indices[i, j])
            old, new = expected[at], updates[i, j]
            number[at] += 1
            expected[at] = {
                "none": new, "add": old + new, "mul": old * new, "max": max(old, new),
                "min": min(old, new), "mean": old + new,
            }[reduction]  # fmt: skip
    if reduction == "mean":
        expected /= number
    np.testing.assert_allclose(results[0], expected, rtol=1e-6)
    if reduction != "mean":
        check_nodes(results, "ScatterElements", data, indices, updates, version=version, **values)
    with pytest.raises(ModelError, match="outside of data"):
        run("ScatterElements", data, indices + 9, updates, version=version, **values)

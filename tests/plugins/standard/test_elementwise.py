"""Activations and normalisations against plain loops, and their ONNX nodes against them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headrace.errors import ModelError
from tests.plugins.standard.driving import create, decomposed, run

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(0, 2, (2, 4, 3, 5)).astype(np.float32)


def both(name: str, *inputs: Any, version: str = "1", opset: int = 18, **values: Any) -> Any:
    """The plugin's only output, checked against its ONNX nodes."""
    (result,) = run(name, *inputs, version=version, **values)
    nodes = decomposed(name, *inputs, version=version, opset=opset, **values)
    assert nodes is not None
    np.testing.assert_allclose(nodes[0], result, rtol=1e-5, atol=1e-6)
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_leaky_relu(dtype: Any) -> None:
    x = X.astype(dtype)
    y = run("LReLU_TRT", x, negSlope=0.25)[0]
    assert y.dtype == dtype
    expected = [v * 0.25 if v < 0 else v for v in x.astype(np.float32).ravel().tolist()]
    np.testing.assert_array_equal(y.ravel(), np.array(expected, dtype))
    both("LReLU_TRT", X, negSlope=0.25)


@pytest.mark.parametrize("opset", [9, 18])
def test_clip(opset: int) -> None:
    y = both("Clip_TRT", X, opset=opset, clipMin=-0.5, clipMax=1.5)
    assert y.ravel().tolist() == [min(max(v, -0.5), 1.5) for v in X.ravel().tolist()]
    with pytest.raises(ModelError, match="clipMin"):
        create("Clip_TRT", clipMin=1.0, clipMax=1.0)


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("opset", [11, 13])
def test_normalize(across: int, shared: int, opset: int) -> None:
    weights = [2.0] if shared else [1.0, 2.0, 3.0, 4.0]
    y = both(
        "Normalize_TRT", X, opset=opset, weights=weights, acrossSpatial=across,
        channelShared=shared, nbWeights=1, eps=0.1,
    )  # fmt: skip
    for b in range(2):
        for c in range(4):
            for i in range(3):
                for j in range(5):
                    part = X[b] if across else X[b, :, i, j]
                    norm = math.sqrt((part.astype(float) ** 2).sum() + 0.1)
                    scale = weights[0 if shared else c]
                    expected = X[b, c, i, j] / norm
                    expected = expected / scale if across and not shared else expected * scale
                    assert y[b, c, i, j] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("relu", [0, 1])
def test_instance_normalization(version: str, relu: int) -> None:
    values: dict[str, Any] = {
        "epsilon": 0.01, "scales": [1.0, -2.0, 0.5, 3.0], "bias": [0.0, 1.0, -1.0, 0.5],
        "relu": relu, "alpha": 0.1,
    }  # fmt: skip
    y = both("InstanceNormalization_TRT", X, version=version, **values)
    for b in range(2):
        for c in range(4):
            part = X[b, c].astype(float)
            z = (part - part.mean()) / math.sqrt(part.var() + 0.01)
            z = z * values["scales"][c] + values["bias"][c]
            if relu:
                z = np.where(z < 0, 0.1 * z, z)
            np.testing.assert_allclose(y[b, c], z, rtol=1e-4, atol=1e-5)
    flat = both("InstanceNormalization_TRT", X[:, :, 0], version=version, **values)
    assert flat.shape == (2, 4, 5)
    with pytest.raises(ModelError, match="channels and scales"):
        run("InstanceNormalization_TRT", X[:, :3], version=version, **values)


def test_group_normalization() -> None:
    scale, bias = (RANDOM.normal(0, 1, 4).astype(np.float32) for _ in range(2))
    y = both("GroupNormalizationPlugin", X, scale, bias, eps=0.01, num_groups=2)
    for b in range(2):
        for c in range(4):
            part = X[b, c // 2 * 2 : c // 2 * 2 + 2].astype(float)
            z = (X[b, c] - part.mean()) / math.sqrt(part.var() + 0.01) * scale[c] + bias[c]
            np.testing.assert_allclose(y[b, c], z, rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match="4 channels in 3 groups"):
        run("GroupNormalizationPlugin", X, scale, bias, eps=0.01, num_groups=3)


def test_region() -> None:
    num, classes = 3, 4
    x = RANDOM.normal(0, 3, (2, num * (5 + classes), 2, 3)).astype(np.float32)
    y = both("Region_TRT", x, num=num, coords=4, classes=classes)
    for b in range(2):
        for n in range(num):
            for i in range(2):
                for j in range(3):
                    first = n * (5 + classes)
                    old, new = (t[b, first : first + 5 + classes, i, j] for t in (x, y))
                    for k in (0, 1, 4):
                        assert new[k] == pytest.approx(1 / (1 + math.exp(-old[k])), rel=1e-5)
                    assert new[2:4].tolist() == old[2:4].tolist()
                    assert new[5:].sum() == pytest.approx(1, rel=1e-5)
                    powers = np.exp(old[5:].astype(float))
                    np.testing.assert_allclose(new[5:], powers / powers.sum(), rtol=1e-4)
    with pytest.raises(ModelError, match="channels"):
        run("Region_TRT", x, num=2, coords=4, classes=classes)
    with pytest.raises(ModelError, match="softmax tree"):
        create("Region_TRT", num=num, coords=4, classes=classes, smTree=[1])

"""The functions that stand in for cuBLAS and cuDNN, against NumPy; calls that none can do."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace._core import _native
from headrace.custom.stand_ins import supported
from headrace.errors import PluginError
from headrace.plugins import DataType, PluginFieldCollection, get_plugin_registry
from headrace.plugins.drivers import add_layer
from headrace.plugins.registry import PluginRegistry
from tests.plugins.life_cycles import live_on
from tests.trt.host.conftest import Compile, _registry_as_before, compile_for_tensorrt, opened
from tests.trt.host.test_plugins import Open

__all__ = ["_registry_as_before", "compile_for_tensorrt", "opened"]  # fixtures
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.skipif(not supported(), reason="no stand-ins for this machine")
TYPES = [(np.float32, 0, 1e-5), (np.float16, 2, 2e-3)]
"""NumPy's type, its number, and how exact results are."""


def ask(function: str, *arguments: object) -> int:
    """Call a function by its name; arrays are passed by their addresses, floats behind one."""
    library = "libcublas.so.12" if function.startswith("cublas") else "libcudnn.so.9"
    code = ctypes.CFUNCTYPE(ctypes.c_int)(_native.stand_in_target(function, library))
    held: list[Array] = []
    passed: list[Any] = []
    for one in arguments:
        if isinstance(one, np.ndarray):
            passed.append(ctypes.c_void_p(one.__array_interface__["data"][0]))
        elif isinstance(one, np.generic):
            held.append(np.array(one))
            passed.append(ctypes.c_void_p(held[-1].__array_interface__["data"][0]))
        else:
            passed.append(one)
    return int(code(*passed))


def made(kind: str, *settings: object, how: str = "") -> ctypes.c_void_p:
    """Create a descriptor, and set it."""
    out = ctypes.c_void_p()
    assert ask(f"cudnnCreate{kind}Descriptor", ctypes.byref(out)) == 0
    assert ask(f"cudnnSet{how or kind}Descriptor", out, *settings) == 0
    return out


def image(array: Array, number: int) -> ctypes.c_void_p:
    return made("Tensor", 0, number, *array.shape, how="Tensor4d")


def random(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def columns(matrix: Array, operation: int) -> tuple[Array, int]:
    """A matrix as cuBLAS has it, columns first with one row to spare, and its leading dimension."""
    laid = matrix.T if operation else matrix
    out = np.zeros((laid.shape[1], laid.shape[0] + 1), laid.dtype)
    out[:, :-1] = laid.T
    return out, laid.shape[0] + 1


@pytest.mark.parametrize(("dtype", "_number", "exact"), TYPES)
@pytest.mark.parametrize(("op_a", "op_b"), list(itertools.product((0, 1), repeat=2)))
def test_products(dtype: Any, _number: int, exact: float, op_a: int, op_b: int) -> None:
    a, b, before = random(4, 7, dtype=dtype), random(7, 5, dtype=dtype), random(5, 4, dtype=dtype)
    (at_a, lda), (at_b, ldb) = columns(a, op_a), columns(b, op_b)
    wanted = 0.5 * (a.astype("f8") @ b.astype("f8")) + 2.0 * before.T
    sizes = op_a, op_b, 4, 5, 7, dtype(0.5)
    c = before.copy()
    name = "cublasSgemm_v2" if dtype is np.float32 else "cublasHgemm"
    assert ask(name, None, *sizes, at_a, lda, at_b, ldb, dtype(2.0), c, 4) == 0
    np.testing.assert_allclose(c.T, wanted, rtol=exact, atol=10 * exact)
    many = np.full((3, 5, 4), np.nan, dtype)  # without beta, what is there is not read
    steps = ctypes.c_longlong(0), ctypes.c_longlong(20)
    strided = "cublasSgemmStridedBatched" if dtype is np.float32 else "cublasHgemmStridedBatched"
    arguments = at_a, lda, steps[0], at_b, ldb, steps[0], dtype(0.0), many, 4, steps[1], 3
    assert ask(strided, None, *sizes, *arguments) == 0
    np.testing.assert_allclose(
        many, np.broadcast_to(wanted.T - 2.0 * before, many.shape), rtol=exact, atol=10 * exact
    )


@pytest.mark.parametrize("compute", [0, 68])
def test_products_of_halves_in_floats(compute: int) -> None:
    a, b, c = random(3, 6, dtype="f2"), random(6, 2, dtype="f2"), np.zeros((2, 3), np.float32)
    (at_a, lda), (at_b, ldb) = columns(a, 0), columns(b, 0)
    one, none = np.float32(1), np.float32(0)
    given = one, at_a, 2, lda, at_b, 2, ldb, none, c, 0, 3, compute, -1
    assert ask("cublasGemmEx", None, 0, 0, 3, 2, 6, *given) == 0
    np.testing.assert_allclose(c.T, a.astype("f4") @ b.astype("f4"), rtol=1e-5, atol=1e-5)
    assert ask("cublasGemmEx", None, 0, 0, 3, 2, 6, *given[:2], 3, *given[3:]) == 15  # INT8


def test_vectors_and_transposition() -> None:
    a, x, y = random(3, 4), random(8), np.zeros(6, np.float32)
    at_a, lda = columns(a, 0)
    one, none = np.float32(1), np.float32(0)
    assert ask("cublasSgemv_v2", None, 0, 3, 4, one, at_a, lda, x, 2, none, y, 2) == 0
    np.testing.assert_allclose(y, np.stack([a @ x[::2], np.zeros(3)], 1).ravel(), rtol=1e-5)
    out = np.zeros((3, 4), np.float32)
    assert ask("cublasSgeam", None, 1, 0, 4, 3, one, at_a, lda, none, at_a, 4, out, 4) == 0
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize(("dtype", "number", "exact"), TYPES)
@pytest.mark.parametrize(("algorithm", "mode"), [(0, 1), (1, 0), (2, 1)])
def test_softmax(dtype: Any, number: int, exact: float, algorithm: int, mode: int) -> None:
    x = random(2, 5, 3, 4, dtype=dtype)
    y, one, none = np.empty_like(x), np.float32(1), np.float32(0)
    of = image(x, number)
    assert ask("cudnnSoftmaxForward", None, algorithm, mode, one, of, x, none, of, y) == 0
    axes = 1 if mode else (1, 2, 3)
    wanted = np.exp(x.astype("f8"))
    wanted /= wanted.sum(axes, keepdims=True)
    np.testing.assert_allclose(y, np.log(wanted) if algorithm == 2 else wanted, exact, exact)


ACTIVATIONS = [
    pytest.param(0, lambda x: 1 / (1 + np.exp(-x)), id="sigmoid"),
    pytest.param(1, lambda x: np.maximum(x, 0), id="relu"),
    pytest.param(2, np.tanh, id="tanh"),
    pytest.param(3, lambda x: np.clip(x, 0, 0.5), id="clipped relu"),
    pytest.param(4, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), id="elu"),
    pytest.param(6, lambda x: x / (1 + np.exp(-0.5 * x)), id="swish"),
]


@pytest.mark.parametrize(("mode", "function"), ACTIVATIONS)
def test_activations(mode: int, function: Any) -> None:
    x, before = random(2, 3, 4, 5), random(2, 3, 5, 4).reshape(2, 3, 4, 5)
    y, of = before.copy(), image(x, 0)
    how = made("Activation", mode, 0, ctypes.c_double(0.5))
    two, one = np.float32(2), np.float32(1)
    assert ask("cudnnActivationForward", None, how, two, of, x, one, of, y) == 0
    np.testing.assert_allclose(y, 2 * function(x.astype("f8")) + before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spatial", [0, 1])
def test_normalisation_and_bias(spatial: int) -> None:
    x = random(2, 3, 4, 5)
    shape = (1, 3, 1, 1) if spatial else (1, 3, 4, 5)
    factors, bias, mean, variance = (random(*shape, i)[..., 0] for i in (1, 2, 3, 4))
    parts = [np.ascontiguousarray(p) for p in (factors, bias, mean, np.abs(variance))]
    y, of, small = np.empty_like(x), image(x, 0), made("Tensor", 0, 0, *shape, how="Tensor4d")
    one, none = np.float32(1), np.float32(0)
    given = spatial, one, none, of, x, of, y, small, *parts, ctypes.c_double(1e-3)
    assert ask("cudnnBatchNormalizationForwardInference", None, *given) == 0
    wanted = parts[0] * (x - parts[2]) / np.sqrt(parts[3] + 1e-3) + parts[1]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    assert ask("cudnnAddTensor", None, one, small, parts[1], one, of, y) == 0
    np.testing.assert_allclose(y, wanted + parts[1], rtol=1e-4, atol=1e-5)


def windows(x: Array, size: tuple[int, int], step: int, border: int, fill: float) -> Array:
    edge = ((0, 0), (0, 0), (border, border), (border, border))
    padded = np.pad(x, edge, constant_values=fill)
    all_of = np.lib.stride_tricks.sliding_window_view(padded, size, (2, 3))
    return all_of[:, :, ::step, ::step]


@pytest.mark.parametrize(
    ("mode", "reduce", "fill"), [(0, np.nanmax, np.nan), (1, np.mean, 0.0), (2, np.nanmean, np.nan)]
)
def test_pooling(mode: int, reduce: Any, fill: float) -> None:
    x = random(2, 3, 6, 7)
    wanted = reduce(windows(x, (3, 2), 2, 1, fill), (4, 5))
    how = made("Pooling", mode, 0, 3, 2, 1, 1, 2, 2, how="Pooling2d")
    told = [ctypes.c_int() for _ in range(4)]
    of = image(x, 0)
    assert ask("cudnnGetPooling2dForwardOutputDim", how, of, *map(ctypes.byref, told)) == 0
    assert tuple(n.value for n in told) == wanted.shape
    y = np.empty(wanted.shape, np.float32)
    given = how, np.float32(1), of, x, np.float32(0), image(y, 0), y
    assert ask("cudnnPoolingForward", None, *given) == 0
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("correlation", [0, 1])
def test_convolution(groups: int, correlation: int) -> None:
    x, w = random(2, 4, 6, 7), random(6, 4 // groups, 3, 2)
    seen = windows(x, (3, 2), 2, 1, 0.0)  # n, c, h, w, 3, 2
    filters = w if correlation else w[:, :, ::-1, ::-1]
    parts = zip(np.split(seen, groups, 1), np.split(filters, groups), strict=True)
    wanted = np.concatenate([np.einsum("nchwij,kcij->nkhw", s, f) for s, f in parts], 1)
    how = made("Convolution", 1, 1, 2, 2, 1, 1, correlation, 0, how="Convolution2d")
    assert ask("cudnnSetConvolutionGroupCount", how, groups) == 0
    factors = made("Filter", 0, 0, *w.shape, how="Filter4d")
    told = [ctypes.c_int() for _ in range(4)]
    sizes = how, image(x, 0), factors
    assert ask("cudnnGetConvolution2dForwardOutputDim", *sizes, *map(ctypes.byref, told)) == 0
    assert tuple(n.value for n in told) == wanted.shape
    y = np.empty(wanted.shape, np.float32)
    given = np.float32(1), image(x, 0), x, factors, w, how, 0, None, ctypes.c_size_t(0)
    assert ask("cudnnConvolutionForward", None, *given, np.float32(0), image(y, 0), y) == 0
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("library", "function", "there"),
    [
        ("libcudnn.so.8", "cudnnGetVersion", True),
        ("libcublas.so.11", "cublasSgetrfBatched", False),
    ],
)
def test_a_plugin_that_calls_what_is_not_there_is_an_error_that_names_it(
    compile_for_tensorrt: Compile, opened: Open, tmp_path: Path, library: str, function: str,
    there: bool,
) -> None:  # fmt: skip
    stub = tmp_path / library
    empty = ["g++", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{library}", "-o", str(stub)]
    subprocess.run(empty, check=True)
    flags = f"-DCALLS={function}", "-Wl,--no-as-needed", str(stub)
    opened(compile_for_tensorrt("compiled_abuses.cpp", 8, *flags))
    creator = get_plugin_registry().find("Abuse")
    assert creator is not None
    registry = PluginRegistry()
    registry.register_creator(creator)
    plugin = creator.create_plugin("layer", PluginFieldCollection([]))
    layer = add_layer(plugin, layer="a", input_types=[DataType.FLOAT], implicit_batch=False)
    if there:
        result = live_on(layer, registry, profiles=1, contexts=1)[0]
        np.testing.assert_array_equal(result.ravel(), np.arange(result.size))
        return
    with pytest.raises(PluginError, match=f"{function} of {library}") as raised:
        live_on(layer, registry, profiles=1, contexts=1)
    assert "enqueue" in str(raised.value)

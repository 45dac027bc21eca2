"""Runtimes: each runs a small model."""

from __future__ import annotations

import importlib.util

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from headrace._core.environment import damages
from headrace._core.errors import HeadraceError
from headrace._core.gpu.cuda import why_no_gpu
from headrace._core.types import Array
from headrace.diagnose.doctor.checks import Check
from headrace.engine.backends import (
    GPU_RUNTIMES,
    PACKAGES,
    RunnerOptions,
    get_backend,
    how_to_install,
)
from headrace.engine.backends.onnxruntime_package import CPU_FIX, gpu_fix, packages

_BATCH, _SIZE, _TOLERANCE = 2, 8, 1e-3
_OPSET, _IR_VERSION = 13, 8  # old enough for every runtime


def engine_check(name: str) -> Check:
    """Run a convolution and an activation on a runtime, and compare it with NumPy."""
    needs = PACKAGES.get(name, ())
    if needs and not any(importlib.util.find_spec(package) for package in needs):
        return Check("engine", name, "absent", "not installed", how_to_install(name))
    if name in GPU_RUNTIMES and (reason := why_no_gpu()) is not None:
        return Check("engine", name, "absent", reason)
    rng = np.random.default_rng(7)
    image = rng.random((_BATCH, 3, _SIZE, _SIZE), np.float32) - 0.5
    weights = rng.random((4, 3, 1, 1), np.float32) - 0.5
    expected = np.maximum(np.einsum("oi,nihw->nohw", weights[:, :, 0, 0], image), 0)
    try:
        backend = get_backend(name)
        runner = backend.open(_model(weights), RunnerOptions(max_batch=_BATCH))
        try:
            (output,) = runner.run({"image": image})
            device = runner.device
        finally:
            runner.close()
    except HeadraceError as error:
        return Check.of("engine", name, "problem", error)
    off = float(np.abs(np.asarray(output) - expected).max())
    if not off <= _TOLERANCE:
        text = f"a small model gave wrong results: off by {off:.3g}"
        return Check("engine", name, "problem", text, how_to_install(name))
    return Check("engine", name, "ok", f"{backend.version()}, ran a small model on {device}")


def package_checks(*, gpu: bool) -> list[Check]:
    """Check that the needed packages are whole and that one alone brings ONNX Runtime.

    Args:
        gpu: True if there is one to use.
    """
    checks = []
    if lines := damages():
        text = "; ".join(lines[:-1])
        checks.append(Check("engine", "needed packages", "problem", text, (lines[-1],)))
    installed = packages()
    if len(installed) <= 1:
        return checks
    names = " and ".join(f"{name} {number}" for name, number in installed.items())
    text = f"{names} are installed and write to one folder: one damages the other"
    fix = gpu_fix() if gpu else CPU_FIX
    return [*checks, Check("engine", "packages", "problem", text, (fix,))]


def _model(weights: Array) -> bytes:
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "weights"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["found"]),
        ],
        "doctor",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (_BATCH, 3, _SIZE, _SIZE))],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, (_BATCH, 4, _SIZE, _SIZE))],
        [numpy_helper.from_array(weights, "weights")],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    data: bytes = model.SerializeToString()
    return data

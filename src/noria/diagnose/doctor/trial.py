"""`python -m noria.diagnose.doctor.trial RUNTIME`: run a small model and print the outcome."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from noria._core.errors import NoriaError
from noria.engine.backends import RunOptions, get_backend

OUTCOME = "outcome of the trial: "
"""Begins the line with the outcome."""
_BATCH, _SIZE, _TOLERANCE = 2, 8, 1e-3
_OPSET, _IR_VERSION = 13, 8  # old enough for every runtime


def trial(name: str) -> dict[str, Any]:
    """Run a convolution and an activation on a runtime, and compare it with NumPy.

    Returns:
        `version` and `device`; or `error`, with `fix`: lines that tell how to mend it.
    """
    rng = np.random.default_rng(7)
    picture = rng.random((_BATCH, 3, _SIZE, _SIZE), np.float32) - 0.5
    weights = rng.random((4, 3, 1, 1), np.float32) - 0.5
    expected = np.maximum(np.einsum("oi,nihw->nohw", weights[:, :, 0, 0], picture), 0)
    try:
        backend = get_backend(name)
        runner = backend.open(_model(weights), RunOptions(max_batch=_BATCH))
        try:
            (found,) = runner.run({"picture": picture})
            device = runner.device
        finally:
            runner.close()
    except NoriaError as error:
        return {"error": error.found, "fix": error.fix}
    off = float(np.abs(np.asarray(found) - expected).max())
    if not off <= _TOLERANCE:
        return {"error": f"a small model gave wrong results: off by {off:.3g}", "fix": []}
    return {"version": backend.version(), "device": device}


def _model(weights: np.ndarray[Any, Any]) -> bytes:
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["picture", "weights"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["found"]),
        ],
        "doctor",
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, (_BATCH, 3, _SIZE, _SIZE))],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, (_BATCH, 4, _SIZE, _SIZE))],
        [numpy_helper.from_array(weights, "weights")],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    data: bytes = model.SerializeToString()
    return data


if __name__ == "__main__":
    print(f"\n{OUTCOME}{json.dumps(trial(sys.argv[1]))}", flush=True)  # a package may print, too

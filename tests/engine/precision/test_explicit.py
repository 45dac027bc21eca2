"""Exports build with TensorRT, which takes every type from the graph. Without it: skipped.

TensorRT-RTX (`pip install tensorrt_rtx`) builds without a GPU.
"""

from pathlib import Path

import numpy as np
import pytest

from headrace._core.gpu.cuda import why_no_gpu
from headrace.engine.backends import RunnerOptions, get_backend
from headrace.engine.precision import export
from headrace.engine.precision.collect import ActivationRunner
from headrace.engine.precision.lower import graph_precision
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.engine.precision.graphs import network_of, small_net

EXAMPLES = Path(__file__).parents[3] / "examples" / "conveyor"
PRECISIONS = ["fp16", "bf16", "int8", "best"]


@pytest.fixture(scope="module")
def tensorrt():
    try:
        backend = get_backend("tensorrt")
    except EngineError as error:
        pytest.skip(str(error))
    if why_no_gpu() and not backend.version().startswith("tensorrt_rtx"):
        pytest.skip("TensorRT builds on a GPU only")
    return backend


def scales_of(network):
    """Ranges seen on noise: whether a graph builds does not depend on how good they are."""
    axes = [d if isinstance(d, int) else 1 for d in network.inputs[0].shape]
    image = np.random.default_rng(0).random(axes, np.float32)
    runner = ActivationRunner(network, threads=1)
    try:
        seen = runner.run(image)
    finally:
        runner.close()
    return {name: float(np.abs(values).max()) / 127 for name, values in seen.items()}


def builds(tensorrt, network):
    scales = scales_of(network)
    for precision in PRECISIONS:
        made = export(network, precision, scales)
        assert graph_precision(made.network) == precision
        assert tensorrt.compile(made.to_bytes(), RunnerOptions(max_batch=2))


def test_a_small_network(tensorrt):
    builds(tensorrt, network_of(small_net()))


@pytest.mark.parametrize("name", ["detector", "classifier"])
def test_models_of_the_demo(tensorrt, name):
    builds(tensorrt, network_from_onnx(EXAMPLES / f"{name}.onnx"))


@pytest.mark.data
def test_yolox(tensorrt, data_dir):
    builds(tensorrt, network_from_onnx(data_dir / "models" / "yolox_nano.onnx"))

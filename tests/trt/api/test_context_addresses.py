"""Addresses of a GPU's memory: those of bindings, and of a calibrator's batches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.custom.compile.toolchain import gpu_present
from tests.custom.gpu import KINDS, Gpu, driver

pytestmark = pytest.mark.skipif("HEADRACE_SANITIZED" in os.environ, reason="its runtime is there")
START = """
import ctypes, json
import numpy as np
from headrace import trt
from headrace._core.gpu.cuda import Memory, Stream, driver

class Log(trt.ILogger):
    said = []
    def log(self, severity, text):
        if severity <= trt.ILogger.ERROR:
            self.said.append(text)

logger = Log()
SHAPE = (2, 3, 4, 4)
X = np.linspace(-1, 1, 96, dtype=np.float32).reshape(SHAPE)

def on_gpu(array):
    memory = Memory(array.nbytes)
    driver().call("cuMemcpyHtoD_v2", ctypes.c_void_p(memory.pointer),
                  ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
    return memory

def from_gpu(memory, shape, dtype=np.float32):
    array = np.empty(shape, dtype)
    driver().call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_void_p(memory.pointer), ctypes.c_size_t(array.nbytes))
    return array

def build(calibrator=None):
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    x = network.add_input("x", trt.float32, SHAPE)
    relu = network.add_activation(x, trt.ActivationType.RELU)
    relu.get_output(0).name = "y"
    network.mark_output(relu.get_output(0))
    config = builder.create_builder_config()
    if calibrator is not None:
        config.set_flag(trt.BuilderFlag.INT8)
        config.int8_calibrator = calibrator
    return trt.Runtime(logger).deserialize_cuda_engine(
        builder.build_serialized_network(network, config))
"""
BINDINGS = """
context = build().create_execution_context()
said = {}
there, out = on_gpu(X), on_gpu(np.full(SHAPE, 9, np.float32))
said["v2"] = context.execute_v2([there.pointer, out.pointer])
said["why"] = list(Log.said)
said["v2 values"] = bool(np.array_equal(from_gpu(out, SHAPE), np.maximum(X, 0)))

# one tensor on each side; what is queued comes first
late, stream = X * 2, Stream()
stream.upload(late.ctypes.data, late.nbytes, there.pointer)
mixed = np.zeros(SHAPE, np.float32)
context.set_tensor_address("x", there.pointer)
context.set_tensor_address("y", mixed.ctypes.data)
said["v3"] = context.execute_async_v3(stream.handle)
said["v3 values"] = bool(np.array_equal(mixed, np.maximum(late, 0)))
said["errors"] = list(Log.said)

# what the stream has for the output comes before it is written
out2, zeros = on_gpu(np.full(SHAPE, 9, np.float32)), np.zeros(SHAPE, np.float32)
stream.upload(zeros.ctypes.data, zeros.nbytes, out2.pointer)
context.set_tensor_address("x", X.ctypes.data)
context.set_tensor_address("y", out2.pointer)
said["output"] = context.execute_async_v3(stream.handle)
stream.wait()
said["output"] &= bool(np.array_equal(from_gpu(out2, SHAPE), np.maximum(X, 0)))
stream.upload(late.ctypes.data, late.nbytes, there.pointer)
said["async v2"] = context.execute_async_v2([there.pointer, out.pointer], stream.handle)
said["async v2"] &= bool(np.array_equal(from_gpu(out, SHAPE), np.maximum(late, 0)))
context.set_tensor_address("y", mixed.ctypes.data)
said["made-up stream"] = context.execute_async_v2([there.pointer, out.pointer], 2)

if hasattr(driver().library, "cuLive"):  # the stand-in: eight bytes before its memory's end
    context.set_tensor_address("x", there.pointer + 4096 - 8)
    said["too small"] = context.execute_async_v3(stream.handle)
    said["told"] = Log.said[len(said["errors"]):]
print(json.dumps(said))
"""
CALIBRATES = """
class Calibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self, give):
        super().__init__()
        self.left, self.give, self.kept = 2, give, []
    def get_batch_size(self):
        return 2
    def get_batch(self, names):
        if not self.left:
            return None
        self.left -= 1
        self.kept.append(self.give(X * (2 - self.left)))
        held = self.kept[-1]
        return [held.ctypes.data if isinstance(held, np.ndarray) else held.pointer]
    def read_calibration_cache(self):
        return None
    def write_calibration_cache(self, cache):
        self.table = bytes(cache).decode()

tables = []
for give in (lambda array: array, on_gpu):
    calibrator = Calibrator(give)
    assert build(calibrator) is not None, Log.said
    tables.append(calibrator.table)
print(json.dumps(tables))
"""


@pytest.fixture(scope="session", params=KINDS)
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    if request.param == "gpu" and not gpu_present():
        pytest.skip("no GPU")
    return Gpu(Path("unused"), driver(tmp_path_factory) if request.param == "stand-in" else None)


@pytest.mark.sampled
def test_bindings_may_be_there(gpu: Gpu, tmp_path: Path) -> None:
    said = gpu.run(START + BINDINGS, cwd=tmp_path)
    assert said["v2"] is True, said["why"]
    assert said["v2 values"] is True
    assert said["v3"] is True
    assert said["v3 values"] is True
    assert said["errors"] == []
    assert said["output"] is True
    assert said["async v2"] is True
    assert said["made-up stream"] is True
    if gpu.driver is not None:
        assert said["too small"] is False
        (told,) = said["told"]
        assert "input 'x' at 0x" in told
        assert "cuMemcpyDtoH_v2: invalid argument" in told


@pytest.mark.slow
@pytest.mark.sampled
def test_batches_may_be_there(gpu: Gpu, tmp_path: Path) -> None:
    host, there = gpu.run(START + CALIBRATES, cwd=tmp_path)
    assert "x: " in host
    assert there == host

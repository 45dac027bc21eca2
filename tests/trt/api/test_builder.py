"""Calibration, refitting, inspection, progress, errors, and the stand-ins of CUDA's packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace.trt as trt
from headrace.errors import HeadraceError
from tests.trt import script_data as data
from tests.trt.harness import engine_of, execute, network

rng = np.random.default_rng(9)


def two_convolutions():
    net = network()
    x = net.add_input("x", trt.float32, (2, 3, 16, 16))
    for i in range(2):
        w = data.floats(8, x.shape[1], 3, 3) * np.float32(0.2)
        layer = net.add_convolution_nd(x, 8, (3, 3), w)
        layer.name = f"conv{i}"
        x = net.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)
    x.name = "y"
    net.mark_output(x)
    return net


class Calibrator(trt.IInt8EntropyCalibrator2):
    def __init__(self, batches, table=None):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.batches, self.table, self.written, self.asked = list(batches), table, None, []
        self.kept = None

    def get_batch_size(self):
        return 2

    def get_batch(self, names):
        self.asked.append(list(names))
        if not self.batches:
            return None
        self.kept = self.batches.pop(0)
        return [self.kept.ctypes.data]

    def read_calibration_cache(self):
        return self.table

    def write_calibration_cache(self, cache):
        self.written = bytes(cache)


def int8(net, calibrator):
    config = net.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    return config


def test_calibrator_is_asked_and_its_table_used():
    net = two_convolutions()
    batches = [data.floats(2, 3, 16, 16) for _ in range(3)]
    x = batches[0].copy()
    exact = execute(engine_of(net), x=x)["y"]
    calibrator = Calibrator(batches)
    engine = engine_of(net, int8(net, calibrator))
    assert calibrator.asked == [["x"]] * 4
    lines = calibrator.written.decode().splitlines()
    assert lines[0] == "TRT-8601-EntropyCalibration2"
    scales = dict(line.rsplit(": ", 1) for line in lines[1:])
    assert {"x", "conv0_output", "y"} <= set(scales)
    made = execute(engine, x=x)["y"]
    assert not np.array_equal(made, exact)  # it is computed in INT8
    assert np.abs(made - exact).mean() < 0.05 * np.abs(exact).mean()
    again = Calibrator([], table=calibrator.written)
    engine_of(net, int8(net, again))
    assert again.asked == []
    assert again.written is None


def test_table_of_another_algorithm_is_not_used():
    net = two_convolutions()
    table = b"TRT-8601-MinMaxCalibration\nx: 3c010a14\n"
    calibrator = Calibrator([data.floats(2, 3, 16, 16)], table)
    engine_of(net, int8(net, calibrator))
    assert len(calibrator.asked) == 2
    assert any("does not match" in m for _, m in net.builder.logger.said)


def test_calibrator_that_fails_ends_the_build(capsys):
    class Broken(Calibrator):
        def get_batch(self, names):
            raise RuntimeError("no images")

    net = two_convolutions()
    config = int8(net, Broken([]))
    assert net.builder.build_serialized_network(net, config) is None
    assert "get_batch raised RuntimeError: no images" in net.builder.logger.errors[-1]
    assert "Exception caught in get_batch()" in capsys.readouterr().err


def test_int8_without_scales_is_told():
    net = two_convolutions()
    engine_of(net, int8(net, None))
    assert any("neither a calibrator nor a dynamic range" in m for _, m in net.builder.logger.said)


def test_refit_replaces_weights_by_layer_and_by_name():
    net = network()
    x = net.add_input("x", trt.float32, (1, 1, 2, 2))
    kernel = np.ones((1, 1, 1, 1), np.float32)
    layer = net.add_convolution_nd(x, 1, (1, 1), kernel, np.zeros(1, np.float32))
    layer.name = "conv"
    assert net.set_weights_name(kernel, "the kernel")
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = engine_of(net, config)
    assert engine.refittable
    refitter = trt.Refitter(engine, net.builder.logger)
    assert refitter.get_all() == (["conv", "conv"], [trt.WeightsRole.KERNEL, trt.WeightsRole.BIAS])
    assert refitter.get_all_weights() == ["the kernel"]
    assert refitter.set_named_weights("the kernel", np.full(1, 3, np.float32))
    assert refitter.set_weights("conv", trt.WeightsRole.BIAS, np.full(1, 0.5, np.float32))
    assert not refitter.set_named_weights("nothing", np.ones(1, np.float32))
    assert not refitter.set_named_weights("the kernel", np.ones(2, np.float32))
    assert refitter.refit_cuda_engine()
    ones = np.ones((1, 1, 2, 2))
    assert (execute(engine, x=ones)["y"] == 3.5).all()
    again = trt.Runtime(net.builder.logger).deserialize_cuda_engine(engine.serialize())
    assert (execute(again, x=ones)["y"] == 3.5).all()
    plain = engine_of(net)
    assert not trt.Refitter(plain, net.builder.logger).refit_cuda_engine()


def test_the_exponent_of_a_scale_layer_is_no_weight_to_refit():
    """WeightsRole has no member for it."""
    net = network()
    x = net.add_input("x", trt.float32, (1, 1, 2, 2))
    one, two = np.ones(1, np.float32), np.full(1, 2, np.float32)
    layer = net.add_scale(x, trt.ScaleMode.UNIFORM, shift=one, scale=two, power=two)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    config = net.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = engine_of(net, config)
    refitter = trt.Refitter(engine, net.builder.logger)
    assert set(refitter.get_all()[1]) == {trt.WeightsRole.SCALE, trt.WeightsRole.SHIFT}
    assert refitter.set_weights(layer.name, trt.WeightsRole.SCALE, 2 * two)
    assert refitter.refit_cuda_engine()
    assert (execute(engine, x=np.ones((1, 1, 2, 2)))["y"] == 25).all()


def test_inspector():
    net = two_convolutions()
    config = net.builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    inspector = engine_of(net, config).create_engine_inspector()
    form = trt.LayerInformationFormat
    found = json.loads(inspector.get_engine_information(form.JSON))
    assert found["Bindings"] == ["x", "y"]
    assert [layer["LayerType"] for layer in found["Layers"]] == ["CONVOLUTION", "ACTIVATION"] * 2
    assert inspector.get_layer_information(0, form.ONELINE).startswith("conv0 [CONVOLUTION]: x ->")
    assert inspector.get_layer_information(9, form.JSON) == ""
    names = json.loads(engine_of(net).create_engine_inspector().get_engine_information(form.JSON))
    assert names["Layers"][0] == "conv0"


class Monitor(trt.IProgressMonitor):
    def __init__(self, stop=False):
        trt.IProgressMonitor.__init__(self)
        self.stop, self.seen, self.open = stop, [], []

    def phase_start(self, phase_name, parent_phase, num_steps):
        assert parent_phase is None or parent_phase in self.open
        self.open.append(phase_name)
        self.seen.append(phase_name)

    def step_complete(self, phase_name, step):
        assert phase_name == self.open[-1]
        return not self.stop

    def phase_finish(self, phase_name):
        assert self.open.pop() == phase_name


@pytest.mark.parametrize("stop", [False, True])
def test_progress_monitor(stop):
    net = two_convolutions()
    config = net.builder.create_builder_config()
    config.progress_monitor = monitor = Monitor(stop)
    made = net.builder.build_serialized_network(net, config)
    assert (made is None) == stop
    assert monitor.seen == ["Building Engine"]
    assert monitor.open == []


def test_error_recorder_and_profiler():
    class Recorder(trt.IErrorRecorder):
        def __init__(self):
            trt.IErrorRecorder.__init__(self)

    class Times(trt.IProfiler):
        def __init__(self):
            trt.IProfiler.__init__(self)
            self.times = []

        def report_layer_time(self, layer_name, ms):
            self.times.append((layer_name, ms))

    net = two_convolutions()
    engine = engine_of(net)
    context = engine.create_execution_context()
    context.error_recorder = recorder = Recorder()
    assert not context.execute_v2([0, 0])
    assert recorder.num_errors() == 1
    assert "no address" in recorder.get_error_desc(0)
    context.profiler = times = Times()
    x, y = np.zeros((2, 3, 16, 16), np.float32), np.zeros((2, 8, 12, 12), np.float32)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    ((name, ms),) = times.times
    assert name == "Unnamed Network 0"
    assert ms > 0


def test_data_dependent_outputs_need_an_allocator():
    net = network()
    x = net.add_input("x", trt.float32, (2, 3))
    layer = net.add_non_zero(x)
    layer.get_output(0).name = "y"
    net.mark_output(layer.get_output(0))
    engine = engine_of(net)
    context = engine.create_execution_context()
    assert context.get_tensor_shape("y") == (2, -1)
    assert context.get_max_output_size("y") == -1
    made = execute(engine, x=np.array([[0, 1, 0], [1, 0, 1]]))["y"]
    assert made.tolist() == [[0, 1, 1], [1, 0, 2]]


def test_dla_is_refused_without_fallback():
    net = two_convolutions()
    config = net.builder.create_builder_config()
    config.default_device_type = trt.DeviceType.DLA
    assert net.builder.build_serialized_network(net, config) is None
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    assert net.builder.build_serialized_network(net, config) is not None


SCRIPT = """
import sys
import numpy as np
import tensorrt as trt
from tensorrt import Logger
import tensorrt_lean, tensorrt_dispatch, tensorrt_rtx
import pycuda.autoinit
import pycuda.driver as cuda
from cuda import cuda as driver, cudart
from cuda.bindings import runtime
import cupy as cp
assert tensorrt_rtx.Builder is trt.Builder and Logger is trt.Logger
host = np.arange(6, dtype=np.float32)
block = cuda.mem_alloc(host.nbytes)
cuda.memcpy_htod_async(block, host, cuda.Stream())
err, other = cudart.cudaMalloc(host.nbytes)
assert err == cudart.cudaError_t.cudaSuccess
kind = cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice
(err,) = runtime.cudaMemcpy(other, int(block), host.nbytes, kind)
view = cp.ndarray((2, 3), cp.float32, cp.cuda.MemoryPointer(
    cp.cuda.UnownedMemory(other, host.nbytes, None), 0))
view *= 2
back = np.empty(6, np.float32)
cuda.memcpy_dtoh(back, other)
assert back.tolist() == [0, 2, 4, 6, 8, 10], back
assert cudart.cudaMemcpy(other, int(block), 10**6, kind)[0] != cudart.cudaError_t.cudaSuccess
assert cudart.cudaFree(other)[0] == 0 and cudart.cudaFree(other)[0] != 0
assert driver.cuLaunchKernel()[0] != driver.CUresult.CUDA_SUCCESS
err, event = cudart.cudaEventCreate()
assert cudart.cudaStreamWaitEvent(0, event, cudart.cudaEventWaitDefault)[0] == 0
flags = cudart.cudaHostAllocPortable | cudart.cudaHostAllocWriteCombined
assert cudart.cudaHostAlloc(4, flags)[0] == 0
assert cp.asnumpy(cp.pad(cp.ones(2), 1)).tolist() == [0, 1, 1, 0]
print(trt.__version__, sys.argv[1:], __name__)
sys.exit(3)
"""


def test_exec_runs_scripts_and_gives_their_exit_code(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", "--trt-version", "10.3", "script.py", "--a",
         "-h"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout.strip() == "10.3.0 ['--a', '-h'] __main__"


def test_the_page_shows_what_runs(capsys):
    page = Path(__file__).parents[3] / "docs" / "trt.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    exec(compile(code, str(page), "exec"), {})
    assert capsys.readouterr().out.strip() == "(2, 8, 15, 15)"


def test_exec_of_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", "no.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "there is no such script" in done.stderr


class Allocation:
    """As the objects of pycuda's `mem_alloc`."""

    def __init__(self, array):
        self.array = array

    def __int__(self):
        return self.array.ctypes.data


class Tensor:
    """As PyTorch's."""

    def data_ptr(self):
        return 0

    def __int__(self):
        raise ValueError("only one element tensors can be converted to Python scalars")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((2, 3, 16, 16), np.float32), r"numpy.ndarray is no address\n.*\n.*ctypes\.data"),
        (np.zeros(1), r"ctypes\.data"),
        (Tensor(), r"Tensor is no address\n.*\n.*data_ptr\(\)"),
        (None, r"None is no address\n.*\n.*allocate"),
        (1.5, "a float is no address"),
        ("12", "a str is no address"),
    ],
)
def test_what_is_no_address_is_refused(given, words):
    context = engine_of(two_convolutions()).create_execution_context()
    y = np.zeros((2, 8, 12, 12), np.float32)
    with pytest.raises(HeadraceError, match=words) as caught:
        context.execute_v2([given, y.ctypes.data])
    assert isinstance(caught.value, TypeError)  # what TensorRT raises
    assert "binding 0" in str(caught.value)
    name = context.engine.get_tensor_name(0)
    assert repr(name) in str(caught.value)
    for call in (
        lambda: context.execute_async_v2([y.ctypes.data, given], 0),
        lambda: context.set_tensor_address(name, given),
    ):
        with pytest.raises(TypeError, match="is no address"):
            call()
    assert context.get_tensor_address(name) == 0


def test_objects_that_are_addresses():
    context = engine_of(two_convolutions()).create_execution_context()
    x, y = np.ones((2, 3, 16, 16), np.float32), np.zeros((2, 8, 12, 12), np.float32)
    assert context.execute_v2([Allocation(x), np.uint64(y.ctypes.data)])
    assert y.any()

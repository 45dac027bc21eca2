"""Backends for GPUs, as far as a machine without one can tell; with one, they run."""

import ctypes
import sys
import weakref

import numpy as np
import onnxruntime as ort
import pytest

from headrace._core.gpu import cuda, cuda_tensors
from headrace.engine import BuildOptions, Plan, build
from headrace.engine.backends import RunnerOptions, get_backend, installed_backends
from headrace.engine.backends import onnxruntime_cuda as ort_cuda
from headrace.engine.plan import COMPILED_BLOB
from headrace.engine.session import Session
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.engine.backends.test_backends import convolutions, images
from tests.network.onnx_models import save

NO_GPU = cuda.why_no_gpu()
without_gpu = pytest.mark.skipif(NO_GPU is None, reason="there is a GPU")


@without_gpu
def test_without_a_gpu_they_say_so_and_take_no_part():
    assert not {"onnxruntime-cuda", "tensorrt"} & set(installed_backends())
    with pytest.raises(EngineError, match="onnxruntime-cuda cannot run here: ") as caught:
        get_backend("onnxruntime-cuda").open(b"", RunnerOptions())
    assert "nvidia-smi" in str(caught.value)
    assert "--backend onnxruntime" in str(caught.value)


class FakeBinding:
    """Notes what was bound where, and computes on the CPU."""

    def __init__(self, session, log):
        self.session, self.log = session, log
        self.feeds, self.outputs, self.places = {}, [], {}

    def bind_cpu_input(self, name, array):
        self.log.append(("host input", name))
        self.feeds[name] = array

    def bind_ortvalue_input(self, name, value):
        self.log.append(("device input", name, value.data_ptr()))
        self.feeds[name] = value.numpy()

    def bind_output(self, name, device, number=0, dtype=None, shape=None, address=None):
        self.log.append(("output", name, device, number))
        self.outputs.append(name)
        if address is not None:
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            buffer = (ctypes.c_ubyte * size).from_address(address)
            self.places[name] = np.frombuffer(buffer, dtype).reshape(shape)

    def synchronize_inputs(self):
        self.log.append("inputs waited for")

    def synchronize_outputs(self):
        self.log.append("outputs waited for")

    def get_outputs(self):
        return [ort.OrtValue.ortvalue_from_numpy(a) for a in self.results]


class FakeSession:
    """An `InferenceSession` that says it is on the GPU."""

    def __init__(self, model, settings, providers):
        FakeSession.providers = providers
        self._real = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        self.get_inputs, self.get_outputs = self._real.get_inputs, self._real.get_outputs
        self.log = []

    def get_providers(self):
        return [FakeSession.providers[0][0], "CPUExecutionProvider"]

    def io_binding(self):
        return FakeBinding(self, self.log)

    def run_with_iobinding(self, binding, run_options):
        self.log.append("run")
        binding.results = self._real.run(binding.outputs, binding.feeds, run_options)
        for name, result in zip(binding.outputs, binding.results, strict=True):
            if name in binding.places:
                binding.places[name][:] = result


class HostPool:
    """Memory of the host in the place of pinned memory."""

    def take(self, dtype, shape):
        return np.full(shape, np.nan, dtype)


@pytest.fixture
def fake_ort(monkeypatch):
    """onnxruntime-cuda as if there were a GPU."""

    class Fake:
        __version__ = ort.__version__
        InferenceSession = FakeSession
        OrtValue = ort.OrtValue
        set_default_logger_severity = staticmethod(lambda level: None)
        RunOptions = ort.RunOptions

        @staticmethod
        def get_available_providers():
            return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    monkeypatch.setattr(ort_cuda, "ort", Fake)
    monkeypatch.setattr(ort_cuda, "why_no_gpu", lambda: None)
    monkeypatch.setattr(ort_cuda, "PinnedPool", HostPool)


class OnGpu:
    """A tensor that says it is on the GPU, and is not."""

    def __init__(self, array, device=(2, 0)):
        self._array, self._device = array, device
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack__(self, **_):
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return self._device


def opened(folder, **options):
    network = network_from_onnx(save(convolutions(), folder / "m.onnx"))
    return build(network, BuildOptions(max_batch=4, runtime="onnxruntime-cuda", **options))


def test_device_tensors_are_bound_where_they_are(fake_ort, tmp_path):
    x = images(2)
    expected = get_backend("onnxruntime").open(
        convolutions().SerializeToString(), RunnerOptions()
    ).run({"x": x})  # fmt: skip
    with opened(tmp_path).open_session() as session:
        assert isinstance(session, Session)
        assert session.device == "cuda:0"
        log = session._runner._session.log

        outputs = session.run({"x": x})
        assert log[0] == ("host input", "x")
        assert ("output", "y", "cpu", 0) in log
        np.testing.assert_allclose(outputs["y"], expected[0], rtol=1e-5, atol=1e-6)

        log.clear()
        tensor = OnGpu(x)
        outputs = session.run({"x": tensor}, to_host=False)
        assert log[0] == ("device input", "x", x.ctypes.data)  # the same memory: not a copy
        assert {("output", "y", "cuda", 0), ("output", "p", "cuda", 0)} <= set(log)
        assert log.index("inputs waited for") < log.index("run") < log.index("outputs waited for")
        assert outputs["y"].shape == (2, 8, 8, 12)
        np.testing.assert_allclose(np.from_dlpack(outputs["y"]), expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(outputs["p"]), expected[1], rtol=1e-5, atol=1e-6)

        later = session.submit({"x": tensor}, to_host=False).result(30)
        assert later["p"].shape == (2, 8)
    options = FakeSession.providers[0][1]
    assert options["use_tf32"] == 0


@pytest.mark.parametrize(("precision", "cores"), [("fp32", 0), ("fp16", 1)])
def test_fp16_has_tensor_cores_and_fp32_is_not_rounded_for_them(
    fake_ort, tmp_path, precision, cores
):
    opened(tmp_path, precision=precision).open_session().close()
    assert FakeSession.providers[0][1]["use_tf32"] == cores


def test_tensors_elsewhere_and_of_the_wrong_shape_are_refused(fake_ort, tmp_path):
    with opened(tmp_path).open_session() as session:
        with pytest.raises(EngineError, match="input 'x' is on cuda:1"):
            session.run({"x": OnGpu(images(1), (2, 1))})
        with pytest.raises(EngineError, match="has shape 1x3x4x4"):
            session.run({"x": OnGpu(np.zeros((1, 3, 4, 4), np.float32))})
        host = session.run({"x": OnGpu(images(1), (3, 0))})  # pinned memory is the host's
        assert isinstance(host["y"], np.ndarray)


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_a_cpu_engine_refuses_device_tensors(backend, tmp_path):
    if backend not in installed_backends():
        pytest.skip("not installed")
    network = network_from_onnx(save(convolutions(), tmp_path / "m.onnx"))
    with build(network, BuildOptions(runtime=backend)).open_session() as session:
        with pytest.raises(EngineError, match="input 'x' is on cuda:0") as caught:
            session.run({"x": OnGpu(images(1))})
        assert "copy it to the host" in str(caught.value)
        outputs = session.run({"x": images(1)}, to_host=False)
        assert isinstance(outputs["y"], np.ndarray)


def test_a_silent_fall_back_to_the_cpu_is_refused(fake_ort, monkeypatch, tmp_path):
    monkeypatch.setattr(FakeSession, "get_providers", lambda self: ["CPUExecutionProvider"])
    with pytest.raises(EngineError, match="cannot use the GPU"):
        opened(tmp_path)


# DLPack. Host memory stands in for the GPU's: it is never looked at.


class FakeStream:
    handle = 7


class FakeMemory:
    gpu = 0

    def __init__(self, size_bytes):
        self.array = np.zeros(size_bytes, np.uint8)
        self.pointer = self.array.ctypes.data


@pytest.mark.parametrize("kind", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1,), (), (0, 3)])
def test_tensors_go_out_and_come_in(monkeypatch, kind, shape):
    monkeypatch.setattr(cuda_tensors, "Memory", FakeMemory)
    tensor = cuda_tensors.CudaTensor(shape, np.dtype(kind))
    assert tensor.__dlpack_device__() == (2, 0)
    taken = cuda_tensors.Imported(tensor, FakeStream())
    assert (taken.shape, taken.dtype, taken.pointer) == (shape, np.dtype(kind), tensor.pointer)
    counts = [sys.getrefcount(tensor.memory)]
    del taken
    counts.append(sys.getrefcount(tensor.memory))
    tensor.__dlpack__()  # an unused capsule gives back what it holds
    counts.append(sys.getrefcount(tensor.memory))
    assert counts == [counts[0], counts[0] - 1, counts[0] - 1]
    interface = tensor.__cuda_array_interface__
    assert interface["data"][0] == tensor.pointer
    assert interface["shape"] == shape


def test_a_capsule_that_was_taken_is_given_back_by_its_deleter(monkeypatch):
    monkeypatch.setattr(cuda_tensors, "Memory", FakeMemory)
    monkeypatch.setattr(cuda_tensors, "DEVICE_KIND", 1)  # so that NumPy takes it
    tensor = cuda_tensors.CudaTensor((2, 2), np.dtype(np.float32))
    memory = weakref.ref(tensor.memory)
    array = np.from_dlpack(tensor)
    assert np.array_equal(array, np.zeros((2, 2)))
    del tensor
    assert memory() is not None
    del array
    assert memory() is None


class Strided:
    def __init__(self, array):
        self._array = array

    def __dlpack__(self, stream):
        assert stream == 7
        return self._array.__dlpack__()


def test_tensors_that_are_not_contiguous_are_refused():
    grid = np.zeros((4, 6), np.float32)
    assert cuda_tensors.Imported(Strided(grid), FakeStream()).pointer == grid.ctypes.data
    part = grid[2:]
    assert cuda_tensors.Imported(Strided(part), FakeStream()).pointer == part.ctypes.data
    with pytest.raises(EngineError, match="not C-contiguous"):
        cuda_tensors.Imported(Strided(grid[:, ::2]), FakeStream())
    with pytest.raises(EngineError, match="not C-contiguous"):
        cuda_tensors.Imported(Strided(grid.T), FakeStream())
    with pytest.raises(EngineError, match="DLPack type"):
        cuda_tensors.Imported(Strided(np.zeros(2, np.complex64)), FakeStream())


# TensorRT, where it is installed.


@pytest.fixture
def tensorrt():
    try:
        return get_backend("tensorrt")
    except EngineError as error:
        pytest.skip(str(error))


def test_tensorrt_builds_and_keeps_its_engine(tensorrt, tmp_path, data_dir):
    if NO_GPU and not tensorrt.version().startswith("tensorrt_rtx"):
        pytest.skip("TensorRT builds on a GPU only")
    for path in (
        save(convolutions(), tmp_path / "m.onnx"),
        data_dir / "models" / "version-RFB-320.onnx",
        data_dir / "models" / "yolox_nano.onnx",
    ):
        plan = build(network_from_onnx(path), BuildOptions(max_batch=4, runtime="tensorrt"))
        plan.save(tmp_path / "m.engine")
        loaded = Plan.load(tmp_path / "m.engine")
        assert loaded.blobs[COMPILED_BLOB] == plan.blobs[COMPILED_BLOB]
        assert loaded.header.runtime.name == "tensorrt"
        if NO_GPU:
            assert "cannot run here" in plan.decisions[-1].sentence
            with pytest.raises(EngineError, match="tensorrt cannot run here: "):
                loaded.open_session()


def test_tensorrt_builds_the_pieces_between_plugins(tensorrt, tmp_path):
    """Plugins run on the host: what lies between them is built, and kept in the plan."""
    from tests.plugins.models import conv_plugin_conv, registry

    if NO_GPU and not tensorrt.version().startswith("tensorrt_rtx"):
        pytest.skip("TensorRT builds on a GPU only")
    path = save(conv_plugin_conv()[0], tmp_path / "m.onnx")
    options = BuildOptions(max_batch=4, runtime="tensorrt", registry=registry())
    plan = build(network_from_onnx(path), options)
    plan.save(tmp_path / "m.engine")
    pieces = [data for name, data in Plan.load(tmp_path / "m.engine").blobs.items()
              if name.startswith("piece ")]  # fmt: skip
    assert len(pieces) == 2
    assert {bytes(data[1:4]) for data in pieces} == {b"trt"}


def test_tensorrt_names_what_it_does_not_know(tensorrt, tmp_path):
    from onnx import helper

    from tests.network.onnx_models import model_of

    model = model_of(
        [helper.make_node("Unheard", ["x"], ["y"], "odd", domain="custom")],
        [helper.make_tensor_value_info("x", 1, ["n", 3, 4, 6])],
        [helper.make_tensor_value_info("y", 1, ["n", 3, 4, 6])],
        domains=["custom"],
    )
    network = network_from_onnx(save(model, tmp_path / "m.onnx"))
    with pytest.raises(EngineError, match="Unheard"):
        build(network, BuildOptions(runtime="tensorrt"))


@pytest.mark.skipif(NO_GPU is not None, reason=NO_GPU or "")
@pytest.mark.parametrize("name", ["tensorrt", "onnxruntime-cuda"])
def test_on_a_gpu_they_agree_with_the_cpu(name):
    if name not in installed_backends():
        pytest.skip("not installed")
    model = convolutions().SerializeToString()
    expected = get_backend("onnxruntime").open(model, RunnerOptions(optimization="none"))
    runner = get_backend(name).open(model, RunnerOptions(max_batch=4))
    for count in (4, 1, 3):
        feeds = {"x": images(count)}
        reference = expected.run(feeds)
        kept = runner.run(feeds, to_host=False)
        again = runner.run(feeds)
        for ours, device, theirs in zip(again, kept, reference, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
            assert np.array_equal(np.asarray(device), ours)

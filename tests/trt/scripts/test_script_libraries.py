"""What scripts open with ctypes under `headrace exec`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace._core._native import LentMemory
from headrace.trt.scripts.shims import cupy
from tests.trt import script_data as data


def headrace_exec(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(source)
    return subprocess.run(
        [sys.executable, "-m", "headrace", "exec", *options, "script.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


TWIN = """
import ctypes, os
import tensorrt as trt
before = trt.get_plugin_registry().get_creator("CustomHardmax", "1")
{load}
after = trt.get_plugin_registry().get_creator("CustomHardmax", "1")
print(before is None, after is not None)
"""


@pytest.mark.parametrize(
    "load",
    [
        "ctypes.CDLL(os.path.join('build', 'libhardmax.so'))",
        "ctypes.CDLL('build/libhardmax.so', winmode=0)",
        "ctypes.cdll.LoadLibrary('build/libhardmax.so')",
        "trt.get_plugin_registry().load_library('build/libhardmax.so')",
    ],
)
@pytest.mark.sampled
def test_a_twin_stands_for_a_library(tmp_path, load):
    (tmp_path / "hardmax.py").write_text(data.HARDMAX)
    done = headrace_exec(tmp_path, TWIN.format(load=load), "--plugins", "libhardmax.so=hardmax.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_plugins_are_there_from_the_start(tmp_path):
    (tmp_path / "hardmax.py").write_text(data.HARDMAX)
    done = headrace_exec(tmp_path, TWIN.format(load=""), "--plugins", "hardmax.py")
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.parametrize("given", ["libswish.so", "libgpu.so=libswish.so"])
@pytest.mark.sampled
@pytest.mark.slow
def test_compiled_plugins_are_loaded(tmp_path, given):
    from headrace.custom.compile.build_library import compile_library

    example = Path(__file__).parents[3] / "examples" / "11_cpp_plugin"
    compile_library([example / "swish.cpp"], tmp_path / "libswish.so")
    load = "" if given == "libswish.so" else "import ctypes; ctypes.CDLL('libgpu.so')"
    source = f"""
import tensorrt as trt
{load}
print(trt.get_plugin_registry().get_creator("Swish_TRT", "1") is not None)
"""
    done = headrace_exec(tmp_path, source, "--plugins", given)
    assert done.stdout.split() == ["True"], done.stderr


def test_a_file_that_is_no_plugins_is_refused(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08")
    done = headrace_exec(tmp_path, "print('ran')", "--plugins", "model.onnx")
    assert done.returncode != 0
    assert "or a library of plugins that headrace compile made" in done.stderr
    assert "ran" not in done.stdout


def test_other_libraries_are_opened(tmp_path):
    source = "import ctypes; print(ctypes.CDLL(None).abs(-3), ctypes.CDLL('libc.so.6').abs(-4))"
    assert headrace_exec(tmp_path, source).stdout.split() == ["3", "4"]
    done = headrace_exec(tmp_path, "import ctypes; ctypes.CDLL('build/libnone.so')")
    assert "libnone.so" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("given", ["none.py", "libx.so=none.py"])
@pytest.mark.sampled
def test_a_file_that_is_not_there(tmp_path, given):
    done = headrace_exec(tmp_path, "", "--plugins", given)
    assert done.returncode != 0
    assert "none.py: there is no such file of plugins" in done.stderr


CUDA = """
import ctypes
cuda = ctypes.CDLL("libcudart.so")
a, b, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(a), ctypes.c_size_t(8)) == 0
assert cuda.cudaMalloc(ctypes.pointer(b), 8) == 0
assert a.value and b.value and a.value != b.value
assert cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
text = ctypes.create_string_buffer(b"1234567")
assert cuda.cudaMemcpy(a, ctypes.cast(text, ctypes.c_void_p), ctypes.c_size_t(8),
                       ctypes.c_int(1)) == 0
assert cuda.cudaMemcpyAsync(b, a, 8, 3, stream) == 0
assert cuda.cudaMemset(a, 0, 4) == 0
assert cuda.cudaStreamSynchronize(stream) == 0
print(ctypes.string_at(b.value).decode(), ctypes.string_at(a.value + 4).decode())
print(cuda.cudaMemcpy(b, a, 9, 3), cuda.cudaMemcpy(None, a, 8, 3), cuda.cudaFree(a),
      cuda.cudaFree(a), cuda.cudaFree(None))
count = ctypes.c_int()
cuda.cudaGetDeviceCount(ctypes.byref(count))
print(count.value)
try:
    cuda.cudaLaunchKernel
except AttributeError:
    print("no kernels")
"""


def test_the_cuda_runtime_is_the_hosts_memory(tmp_path):
    done = headrace_exec(tmp_path, CUDA)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["1234567 567", "1 1 0 1 0", "1", "no kernels"]


def test_a_cupy_array_on_an_input_is_read_only():
    """Plugins wrap inputs and outputs alike."""
    memory = {name: np.arange(4, dtype=np.float32) for name in ("input", "output")}
    blocks = [(m.ctypes.data, m.ctypes.data + m.nbytes, n == "output", n)
              for n, m in memory.items()]  # fmt: skip
    with LentMemory(blocks):
        made = {}
        for name, array in memory.items():
            whole = cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, None)
            pointer = cupy.cuda.MemoryPointer(whole, 0)
            made[name] = cupy.ndarray(np.int64(4), np.float32, memptr=pointer)
        made["output"][:] = made["input"] * 2
        with pytest.raises(ValueError, match="read-only"):
            made["input"][:] = 0
    assert memory["output"].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("name", ["compiler", "elementwise"])
def test_modules_for_kernels_say_why_they_are_not_there(tmp_path, name):
    source = (
        f"import pycuda.driver\ntry:\n    import pycuda.{name}\nexcept ImportError as e: print(e)"
    )
    done = headrace_exec(tmp_path, source)
    assert f"no module named 'pycuda.{name}' under headrace exec: it comp" in done.stdout


GPUARRAY = """
import numpy as np, pycuda.autoinit, pycuda.gpuarray as gpuarray
import tensorrt.tensorrt as inner, tensorrt as trt, ctypes
a = gpuarray.to_gpu(np.arange(6, dtype=np.float32).reshape(2, 3))
b = 2 * a + gpuarray.zeros((2, 3), np.float32)
b[0] = 7
print(b.get().tolist(), b.shape, b.dtype, b.ptr == int(b.gpudata) != a.ptr, len(b))
b[1].set(np.arange(3))
b[:, 2].fill(5)
c = gpuarray.to_gpu(np.zeros((2, 2), np.float32))[1]  # keeps the memory of the whole
c[0] = 9
print(b.get().tolist(), b[1, 1].get(), int(b[1].gpudata) - b.ptr, b[[1]].shape, c.get().tolist())
print(gpuarray.sum(b).get(), gpuarray.max(a).get(), gpuarray.dot(a.ravel(), a.ravel()).get())
print(inner.float32 is trt.float32, bool(ctypes.CDLL("libnvinfer_plugin.so.8")))
"""


def test_gpu_arrays_compute_in_the_hosts_memory(tmp_path):
    done = headrace_exec(tmp_path, GPUARRAY)
    assert done.stdout.splitlines() == [
        "[[7.0, 7.0, 7.0], [6.0, 8.0, 10.0]] (2, 3) float32 True 2",
        "[[7.0, 7.0, 5.0], [0.0, 1.0, 5.0]] 1.0 12 (1, 3) [9.0, 0.0]",
        "25.0 5.0 55.0",
        "True True",
    ], done.stderr


@pytest.mark.slow
def test_a_module_runs_by_its_name(tmp_path):
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import sys, tensorrt\nprint(__name__, sys.argv[1:], tensorrt.__version__)\n1 / 0\n"
    )
    command = [sys.executable, "-m", "headrace", "exec", "-m", "tool", "--flag"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "__main__ ['--flag'] 8.6.1\n"
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].endswith('__main__.py", line 3, in <module>')
    command[-2] = "no.such"
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "no.such: there is no such module" in done.stderr

"""The headers of the TensorRT and CUDA family: every generation compiles, links nothing, runs."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.binary.elf import ElfFile
from headrace.custom import include_dir
from tests.custom.conftest import Compile

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wl,-z,defs")


@pytest.mark.parametrize("major", [5, 7, 8, 10])
@pytest.mark.sampled
def test_every_generation_compiles_and_needs_nothing(compile_parser: Compile, major: int) -> None:
    path = compile_parser("trt_surface.cpp", f"-DNV_TENSORRT_MAJOR={major}", *STRICT)
    elf = ElfFile.read(path)
    assert "headrace_headers_tensorrt" in elf.exported()
    undefined = {s.name for s in elf.symbols if not s.defined and s.name}
    foreign = {n for n in undefined if re.search("cuda|cublas|cudnn|nvinfer|nvonnx|headrace", n)}
    assert foreign == {"headrace_host_api_1"}
    assert not [n for n in elf.needed if re.search("cuda|cublas|nv", n)]


def test_a_parser_alone_asks_nothing_of_a_host(compile_parser: Compile) -> None:
    elf = ElfFile.read(compile_parser("zoo.cpp"))
    assert "headrace_host_api_1" not in {s.name for s in elf.symbols}


@pytest.mark.slow
def test_a_parser_alone_pays_for_no_plugins(compile_parser: Compile, tmp_path: Path) -> None:
    exported = ElfFile.read(compile_parser("zoo.cpp", "-O0")).exported()
    named = {n for n in exported if re.search("headrace|nvinfer1", n)}
    assert {n for n in named if not n.startswith("headrace_is_detector_")} == {
        "headrace_abi_box_bytes_28",
        "headrace_headers_revision",
        "headrace_headers_tensorrt",
    }
    source = tmp_path / "a.cpp"
    source.write_text('#include "nvdsinfer_custom_impl.h"\n#include "NvInferPlugin.h"\n')
    command = ["g++", "-std=c++11", "-M", f"-I{include_dir()}", str(source)]
    included = {Path(p).name for p in subprocess.check_output(command, text=True).split()}
    assert {"string", "vector", "cstring", "builder.h", "registry.h"} <= included
    assert not included & {"algorithm", "functional", "iostream", "map", "memory", "mutex"}


OWN_ENTRY = """
#include <NvInferPlugin.h>
extern "C" bool initLibNvInferPlugins(void *, const char *name) { return name[0] == 'x'; }
extern "C" bool asked() { return initLibNvInferPlugins(nullptr, "x"); }
"""


def test_a_source_may_define_the_entry_of_the_plugin_library(tmp_path: Path) -> None:
    source, library = tmp_path / "own.cpp", tmp_path / "libown.so"
    source.write_text(OWN_ENTRY)
    command = ["g++", "-O0", "-shared", "-fPIC", f"-I{include_dir()}", str(source)]
    subprocess.run([*command, "-o", str(library)], check=True)
    assert "initLibNvInferPlugins" in ElfFile.read(library).exported()
    ask = ctypes.CDLL(str(library)).asked
    ask.restype = ctypes.c_bool
    assert ask()


@pytest.mark.slow
def test_another_generation_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text('#include "NvInfer.h"\n')
    command = ["g++", "-fsyntax-only", f"-I{include_dir()}", "-DNV_TENSORRT_MAJOR=12", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "NV_TENSORRT_MAJOR must be 5 to 11" in done.stderr


@pytest.mark.slow
def test_memory_and_half_floats(compile_parser: Compile) -> None:
    library = ctypes.CDLL(str(compile_parser("trt_surface.cpp", "-DNV_TENSORRT_MAJOR=8", *STRICT)))
    library.surface_memory.restype = ctypes.c_float
    assert library.surface_memory() == 31
    half, single = library.surface_half, library.surface_float
    half.argtypes, half.restype = [ctypes.c_float], ctypes.c_uint16
    single.argtypes, single.restype = [ctypes.c_uint16], ctypes.c_float
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    back = np.array([single(int(b)) for b in every.view(np.uint16)[::7]], np.float32)
    np.testing.assert_array_equal(back, every[::7].astype(np.float32))
    rng = np.random.default_rng(3)
    values = (rng.normal(size=4000) * 10.0 ** rng.uniform(-9, 6, 4000)).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal([half(float(v)) for v in values], expected)


@pytest.mark.slow
def test_without_a_host_calls_fail_quietly(compile_parser: Compile) -> None:
    path = compile_parser("trt_surface.cpp", "-DNV_TENSORRT_MAJOR=8", *STRICT)
    code = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); "
        "library.surface_without_host.restype = ctypes.c_bool; "
        "sys.exit(0 if library.surface_without_host() else 1)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 0


NVIDIAS = """
#ifndef NV_INFER_H
#define NV_INFER_H
#define NV_INFER_RUNTIME_H
#include <cstdint>
namespace nvinfer1 {
enum class DataType : int32_t { kFLOAT = 0 };
class Dims { public: int32_t nbDims; };
class IBuilder; class IBuilderConfig; class ICudaEngine; class INetworkDefinition;
}
#define NV_TENSORRT_MAJOR 10
#endif
"""


@pytest.mark.parametrize(
    "order", [("real/NvInfer.h", "NvInfer.h"), ("NvInfer.h", "real/NvInfer.h")]
)
def test_nvidias_own_header_may_come_before_or_after(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "NvInfer.h").write_text(NVIDIAS)
    source = tmp_path / "a.cpp"
    lines = [f"#include <{name}>" for name in (*order, "nvdsinfer_custom_impl.h", "nvds_version.h")]
    source.write_text("\n".join([*lines, "nvinfer1::ICudaEngine *engine; nvinfer1::Dims dims;\n"]))
    command = ["g++", "-fsyntax-only", f"-I{include_dir()}", f"-I{tmp_path}", str(source)]
    subprocess.run(command, check=True)


def test_half_of_nvidias_headers_are_an_error_that_names_the_folder(tmp_path: Path) -> None:
    source = tmp_path / "a.cpp"
    source.write_text(f"{NVIDIAS}\n#include <NvInferPlugin.h>\n")
    command = ["g++", "-fsyntax-only", f"-I{include_dir()}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    (line,) = [s for s in done.stderr.splitlines() if "error:" in s]
    assert "name the folder of NVIDIA's headers by -I" in line


def test_the_header_of_cublaslt_needs_no_integers_of_the_toolkits(tmp_path: Path) -> None:
    """A toolkit without cuBLAS has its own header of the runtime, which names none."""
    (tmp_path / "cuda_runtime_api.h").write_text("typedef struct CUstream_st *cudaStream_t;\n")
    (tmp_path / "cuda_fp16.h").write_text("struct __half { float value; };\n")
    source = tmp_path / "a.cpp"
    source.write_text("#include <cublasLt.h>\n")
    command = ["g++", "-fsyntax-only", f"-I{tmp_path}", f"-I{include_dir()}", str(source)]
    subprocess.run(command, check=True)


LIBRARIES = """
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nvml.h>
#include <curand.h>
extern "C" int factors(float *a, int n, int *pivots) {
    int info = 0;
    cublasSgetrfBatched(nullptr, n, &a, n, pivots, &info, 1);
    return info;
}
extern "C" int inverse(const float *a, int n, const int *pivots, float *out) {
    int info = 0;
    cublasSgetriBatched(nullptr, n, &a, n, pivots, &out, n, &info, 1);
    return info;
}
template <typename Compute>
static int product(int n, const void *a, const void *b, void *c, cudaDataType type, Compute how) {
    const float one = 1, zero = 0;
    return cublasGemmEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, type, n, b, type, n,
                        &zero, c, type, n, how, CUBLAS_GEMM_ALGO23);
}
extern "C" int products(int n, const void *a, const void *b, void *c, int type, int old) {
    const auto kind = static_cast<cudaDataType>(type);
    return old ? product(n, a, b, c, kind, CUDA_R_32F)
               : product(n, a, b, c, kind, CUBLAS_COMPUTE_32F);
}
extern "C" int batches(int n, const float *a, float *c) {
    const float one = 1, zero = 0;
    const void *both[] = {a, a};
    void *into[] = {c, c + n * n};
    return cublasGemmStridedBatchedEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a,
                                      CUDA_R_32F, n, 0, a, CUDA_R_32F, n, 0, &zero, c, CUDA_R_32F,
                                      n, n * n, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) ||
           cublasGemmBatchedEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, both, CUDA_R_32F,
                               n, both, CUDA_R_32F, n, &one, into, CUDA_R_32F, n, 2,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
extern "C" int halves(int n, const __half *a, const __half *b, __half *c) {
    const __half half = 0.5f, one = 1.0f;
    const float two = 2, zero = 0;
    const __half *both[] = {a, b};
    __half *into[] = {c + 3 * n * n, c + 4 * n * n};
    return cublasHgemm(nullptr, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &half, a, n, b, n, &one, c, n) ||
           cublasHgemmStridedBatched(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &half, a, n, n * n,
                                     b, n, -n * n, &one, c + n * n, n, n * n, 2) ||
           cublasHgemmBatched(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, both, n, both, n,
                              &one, into, n, 2) ||
           cublasGemmStridedBatchedEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &two, a,
                                      CUDA_R_16F, n, n * n, b, CUDA_R_16F, n, -n * n, &zero,
                                      c + 5 * n * n, CUDA_R_16F, n, n * n, 2, CUDA_R_32F,
                                      CUBLAS_GEMM_DEFAULT);
}
static const char *named(cublasStatus_t) { return "a status"; }
#ifdef CUBLAS_API_H_
static const char *listed(cublasStatus_t status) { return named(status); }
#endif
#ifdef __DRIVER_TYPES_H__
static const char *listed(cudaError_t error) { return cudaGetErrorName(error); }
#endif
extern "C" int driver(unsigned int *words, size_t count) {
    const char *text = listed(CUBLAS_STATUS_SUCCESS), *why = listed(cudaSuccess);
    CUmodule module;
    float *made = nullptr;
    cudaEvent_t event;
    if (cudaEventCreate(&event, cudaEventDisableTiming) || cudaEventDestroy(event)) return 1;
    if (cudaMallocAsync(&made, sizeof(float), nullptr) || cudaFreeAsync(made, nullptr)) return 1;
    int shared = 0, threads = 0;
    cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
    cudaError_enum error = cuMemsetD32Async(CUdeviceptr(words), 7, count, nullptr);
    if (shared != 65536 || threads != 1024 || error != CUDA_SUCCESS) return 1;
    return cuGetErrorName(error, &text) || cuGetErrorString(error, &why) ||
           nvmlInit() == NVML_SUCCESS || cudaProfilerStart() != cudaSuccess ||
           cuModuleLoadData(&module, words) != CUDA_ERROR_NOT_SUPPORTED;
}
extern "C" int others() {
    curandGenerator_t numbers;
    cublasLtMatmulPreference_t preference;
    cudnnSpatialTransformerDescriptor_t spatial;
    cublasLtMatmulDesc_t product;
    cublasLtMatmulAlgo_t algorithm;
    int ids[1], count = 0;
    if (cublasLtMatmulDescCreate(&product, CUDA_R_16F) == CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetIds(nullptr, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F,
                                 CUDA_R_16F, CUDA_R_16F, 1, ids, &count) == CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, ids,
                                             sizeof(ids), nullptr) == CUBLAS_STATUS_SUCCESS)
        return 1;
    return curandCreateGenerator(&numbers, CURAND_RNG_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS ||
           cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS ||
           cudnnCreateSpatialTransformerDescriptor(&spatial) == CUDNN_STATUS_SUCCESS;
}
"""


def test_libraries_of_cuda_compute_what_they_can_and_name_the_rest(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(LIBRARIES)
    flags = ["-std=c++11", "-shared", "-fPIC", *STRICT, f"-I{include_dir()}"]
    subprocess.run(["g++", *flags, str(source), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    a = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], np.float32, order="F")
    pivots = np.zeros(3, np.int32)
    found = a.copy(order="F")
    at = ctypes.c_void_p
    assert library.factors(at(found.ctypes.data), 3, at(pivots.ctypes.data)) == 0
    moved = a.copy()
    for row, pivot in enumerate(pivots - 1):
        moved[[row, pivot]] = moved[[pivot, row]]
    lower = np.tril(found, -1) + np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(lower @ np.triu(found), moved, rtol=1e-6)
    assert np.abs(np.tril(found, -1)).max() <= 1
    inverse = np.zeros((3, 3), np.float32, order="F")
    places = [at(m.ctypes.data) for m in (found, pivots, inverse)]
    assert library.inverse(places[0], 3, *places[1:]) == 0
    np.testing.assert_allclose(inverse @ a, np.eye(3), atol=1e-5)
    singular = np.ones((2, 2), np.float32, order="F")
    assert library.factors(at(singular.ctypes.data), 2, at(pivots.ctypes.data)) == 2
    for old in (0, 1):
        c = np.zeros((3, 3), np.float32, order="F")
        given = [at(m.ctypes.data) for m in (a, a, c)]
        assert library.products(3, *given, 0, old) == 0
        np.testing.assert_array_equal(c, a @ a)
    assert library.products(3, *given, 3, 0) == 15  # INT8
    many = np.arange(18).reshape(2, 3, 3).astype(np.float16)
    c = np.ones((7, 3, 3), np.float16)
    assert library.halves(3, *(at(m.ctypes.data) for m in (many, many[1], c))) == 0
    x, y = (m.T.astype(np.float32) for m in many)
    half = [0.5 * (x.T @ y), 0.5 * (x @ y), 0.5 * (y @ x), x @ x, y @ y, 2 * (x @ y), 2 * (y @ x)]
    for i, wanted in enumerate(half):
        np.testing.assert_allclose(c[i].T, wanted + (i < 5), rtol=1e-3)
    words = np.zeros(4, np.uint32)
    assert library.driver(at(words.ctypes.data), ctypes.c_size_t(3)) == 0
    assert words.tolist() == [7, 7, 7, 0]
    two = np.zeros((3, 3, 2), np.float32, order="F")
    assert library.batches(3, given[0], at(two.ctypes.data)) == 0
    for i in range(2):
        np.testing.assert_array_equal(two[..., i], 2 * (a @ a))
    assert library.others() == 0
    said = capfd.readouterr().err
    named = ("cublasGemmEx", "cuModuleLoadData",
             "curandCreateGenerator", "cublasLtMatmulPreferenceCreate",
             "cudnnCreateSpatialTransformerDescriptor")  # fmt: skip
    for name in named:
        assert f"headrace: {name}" in said

"""Parts of the headers that public sources need: each in a source of its own that compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.toolchain import include_dir
from headrace.errors import CustomLibraryError
from tests.profiles import slow

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

META = """
#include "nvdsinfer_custom_impl.h"
#include "gstnvdsmeta.h"
#include "nvdsmeta.h"
#include "gstnvdsinfer.h"
static NvOSD_RectParams rect_of(const NvDsObjectMeta &object) { return object.rect_params; }
static guint outputs(const NvDsInferTensorMeta *meta) { return meta->num_output_layers; }
extern "C" bool Mine(std::vector<NvDsInferLayerInfo> const &layers, NvDsInferNetworkInfo const &,
                     NvDsInferParseDetectionParams const &,
                     std::vector<NvDsInferObjectDetectionInfo> &objects) {
    NvDsObjectMeta meta{};
    meta.object_id = UNTRACKED_OBJECT_ID;
    objects.push_back({0, rect_of(meta).left, 0, 1, 1, static_cast<float>(layers.size())});
    NvDsInferTensorMeta tensors{};
    return outputs(&tensors) == 0;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(Mine)
"""
GRAPHS = """
#include <cuda_runtime_api.h>
int main() {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess) return 1;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) return 2;
    if (cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0) == cudaSuccess) return 3;
    if (cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess) return 4;
    return cudaGraphLaunch(exec, stream) == cudaSuccess ? 5 : 0;
}
"""
MACROS = """
#include "nvdsinfer_custom_impl.h"
extern "C" bool A(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
                  NvDsInferParseDetectionParams const &,
                  std::vector<NvDsInferObjectDetectionInfo> &);
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(A)
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(A);
extern "C" bool B(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &, float,
                  std::vector<NvDsInferAttribute> &, std::string &);
CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE(B)
"""
CALLS = """
#include "NvInfer.h"
void f(nvinfer1::IExecutionContext *c, void **b, cudaStream_t s) {
    c->setOptimizationProfile(0);
    c->enqueue(1, b, s, nullptr), c->execute(1, b);
    c->enqueueV2(b, s, nullptr), c->executeV2(b), c->enqueueV3(s);
}
"""
DERIVED = """
#include "NvInfer.h"
struct Memory : nvinfer1::IHostMemory {};
struct Plugin : nvinfer1::IPluginV2IOExt {};  // no clone of its own
"""
STREAMS = """
#include "NvInfer.h"
struct Reader : nvinfer1::IStreamReader {
    int64_t read(void *, int64_t) override { return 0; }
};
struct Memory : nvinfer1::IOutputAllocator {
    void *reallocateOutput(char const *, void *, uint64_t, uint64_t) noexcept override { return 0; }
    void notifyShape(char const *, nvinfer1::Dims const &) noexcept override {}
};
bool f(nvinfer1::IExecutionContext *c, Memory &m, nvinfer1::IRuntime *r, Reader &reader) {
    return c->setOutputAllocator("x", &m) && r->deserializeCudaEngine(reader);
}
"""
HALF = """
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__host__ __device__ inline float back(half h) { return __half2float(h); }
__half there() { return __float2half(1.5f); }
void memory(void *p, void *q) {
    cudaSetDeviceFlags(cudaDeviceMapHost);
    cudaHostAlloc(&p, 4, cudaHostAllocWriteCombined | cudaHostAllocMapped);
    cudaHostGetDevicePointer(&q, p, 0);
}
"""
REGISTRY = """
#include "NvInfer.h"
using namespace nvinfer1;
void f(IPluginRegistry *r, IPluginRegistry::PluginLibraryHandle h) { r->deregisterLibrary(h); }
bool g(IBuilderConfig *c, ICudaEngine *e, ILogger &l) {
    ITimingCache *cache = c->createTimingCache(nullptr, 0);
    return c->setTimingCache(*cache, false) && createInferRefitter(*e, l);
}
struct Selector : IAlgorithmSelector {
    int32_t selectAlgorithms(IAlgorithmContext const &layer, IAlgorithm const *const *choices,
                             int32_t count, int32_t *selection) noexcept override {
        IAlgorithmIOInfo const *first = choices[0]->getAlgorithmIOInfoByIndex(0);
        selection[0] = first->getDataType() == DataType::kFLOAT && layer.getNbInputs() == 1;
        return choices[0]->getAlgorithmVariant().getTactic() < count;
    }
    void reportAlgorithms(IAlgorithmContext const *const *layers, IAlgorithm const *const *,
                          int32_t) noexcept override {
        layers[0]->getDimensions(0, OptProfileSelector::kOPT);
    }
} selector;
void h(IBuilderConfig *c) { c->setAlgorithmSelector(&selector); }
"""
VERSION = """
#include "nvds_version.h"
int version = NVDS_VERSION_MAJOR * 100 + NVDS_VERSION_MINOR;
"""
SOURCES = {
    "metadata": META, "graphs": GRAPHS, "macros": MACROS, "calls": CALLS, "derived": DERIVED,
    "streams": STREAMS, "half": HALF, "registry": REGISTRY, "version": VERSION,
}  # fmt: skip


FEW = ["metadata"]  # the others are compiled by other tests, too, or with them


@pytest.mark.parametrize("name", [*FEW, *(slow(name) for name in SOURCES if name not in FEW)])
def test_it_compiles(tmp_path: Path, name: str) -> None:
    source = tmp_path / f"{name}.cpp"
    source.write_text(SOURCES[name])
    command = ["g++", "-std=c++17", "-Wall", "-fsyntax-only", f"-I{include_dir()}", str(source)]
    subprocess.run(command, check=True)


@pytest.mark.slow
def test_nothing_is_captured_on_a_cpu(tmp_path: Path) -> None:
    source = tmp_path / "graphs.cpp"
    source.write_text(GRAPHS)
    command = ["g++", f"-I{include_dir()}", str(source), "-o", str(tmp_path / "graphs")]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "graphs"]).returncode == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("void f(NvDsFrameMeta *f) { nvds_add_obj_meta_to_frame(f, 0, 0); }", "-l nvds_meta"),
        ("#include <gstnvstreammeta.h>", "leave it out of"),
        ("#include <opencv2/nothing.hpp>", "libopencv-dev"),
        ("namespace cv { void imread(int); }\nvoid f() { cv::imread(1); }", "libopencv-dev"),
        ("#include <app/nvdsinfer_own.h>", "-I <folder>"),  # the project's own
    ],
)
def test_what_belongs_elsewhere_is_named(tmp_path: Path, line: str, words: str) -> None:
    source = tmp_path / "parser.cpp"
    source.write_text(f"#include <nvdsmeta.h>\n{line}\n")
    with pytest.raises(CustomLibraryError, match=words):
        compile_library([source], tmp_path / "lib.so")

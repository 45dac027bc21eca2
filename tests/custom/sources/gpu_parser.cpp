// A parser whose kernel doubles four numbers for each box: compiled by nvcc for a GPU; FAKE_GPU: by
// calls of a driver (tests/trt/host/sources/fake_gpu.cpp). There 666 is a fault of the kernel, and 667 an
// endless loop in it.
#include <cstdlib>
#include <thread>
#include <vector>

#include "nvdsinfer_custom_impl.h"

namespace {

#ifdef __CUDACC__
__global__ void doubleEach(const float *x, float *y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    if (x[i] == 666.0f) y = nullptr;
    while (static_cast<const volatile float *>(x)[i] == 667.0f) {
    }
    y[i] = x[i] * 2;
}

bool onGpu(const float *from, bool fromGpu, float *to, int count) {
    float *there = nullptr;
    const size_t size = sizeof(float) * count;
    if (cudaMalloc(reinterpret_cast<void **>(&there), 2 * size) != cudaSuccess) return false;
    cudaMemcpy(there, from, size, fromGpu ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice);
    doubleEach<<<(count + 255) / 256, 256>>>(there, there + count, count);
    const bool done = cudaMemcpy(to, there + count, size, cudaMemcpyDeviceToHost) == cudaSuccess;
    cudaFree(there);
    return done;
}
#else
extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(void **, size_t);
int cuMemFree_v2(void *);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuMemcpyHtoDAsync_v2(void *, const void *, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, const void *, size_t, void *);
int cuScale(const void *, void *, size_t, float, void *);
}

bool onGpu(const float *from, bool fromGpu, float *to, int count) {
    void *context = nullptr, *there = nullptr, *stream = nullptr;
    const size_t size = sizeof(float) * static_cast<size_t>(count);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuMemAlloc_v2(&there, 2 * size) || cuStreamCreate(&stream, 0))
        return false;
    float *results = static_cast<float *>(there) + count;
    if (!fromGpu) cuMemcpyHtoDAsync_v2(there, from, size, stream);
    cuScale(fromGpu ? from : there, results, static_cast<size_t>(count), 2.0f, stream);
    cuMemcpyDtoHAsync_v2(to, results, size, stream);
    const bool done = cuStreamSynchronize(stream) == 0;
    cuStreamDestroy_v2(stream);
    cuMemFree_v2(there);
    return done;
}
#endif

bool parse(const std::vector<NvDsInferLayerInfo> &layers, bool fromGpu,
           std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const int count = static_cast<int>(layers[0].inferDims.numElements);
    std::vector<float> values(static_cast<size_t>(count));
    bool done = false;
    const auto work = [&] {
        done = onGpu(static_cast<const float *>(layers[0].buffer), fromGpu, values.data(), count);
    };
    if (std::getenv("GPU_PARSER_THREAD"))  // CUDA has another context of the driver there
        std::thread(work).join();
    else
        work();
    if (!done) return false;
    for (size_t i = 0; i + 3 < values.size(); i += 4) {
        NvDsInferObjectDetectionInfo box{};
        box.left = values[i];
        box.top = values[i + 1];
        box.width = values[i + 2];
        box.height = values[i + 3];
        box.detectionConfidence = 0.9f;
        objects.push_back(box);
    }
    return true;
}

}  // namespace

extern "C" bool ParseOnGpu(std::vector<NvDsInferLayerInfo> const &layers,
                           NvDsInferNetworkInfo const &, NvDsInferParseDetectionParams const &,
                           std::vector<NvDsInferObjectDetectionInfo> &objects) {
    return parse(layers, false, objects);
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseOnGpu);

// Its layers are in the GPU's memory.
extern "C" bool ParseOnGpu_cuda(std::vector<NvDsInferLayerInfo> const &layers,
                                NvDsInferNetworkInfo const &,
                                NvDsInferParseDetectionParams const &,
                                std::vector<NvDsInferObjectDetectionInfo> &objects) {
    return parse(layers, true, objects);
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseOnGpu_cuda);

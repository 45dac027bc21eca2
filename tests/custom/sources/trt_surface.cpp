// Touches every header of the TensorRT and CUDA family; compiled once per generation.
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "NvCaffeParser.h"
#include "NvInferPlugin.h"
#include "NvInferPluginBase.h"
#include "NvOnnxParser.h"
#include "NvUffParser.h"
#include "nvdsinfer_custom_impl.h"

#if NV_TENSORRT_MAJOR >= 10
static_assert(sizeof(nvinfer1::Dims) == 72, "64-bit axes");
static_assert(sizeof(nvinfer1::PluginTensorDesc) == 88, "");
#elif NV_TENSORRT_MAJOR >= 8
static_assert(sizeof(nvinfer1::Dims) == 36, "32-bit axes");
static_assert(sizeof(nvinfer1::PluginTensorDesc) == 48, "");
#else
static_assert(sizeof(nvinfer1::Dims) == 68, "32-bit axes and their types");
#endif
static_assert(sizeof(nvinfer1::Weights) == 24, "");
static_assert(sizeof(nvinfer1::PluginField) == 24, "");
static_assert(sizeof(nvinfer1::PluginFieldCollection) == 16, "");
static_assert(sizeof(nvinfer1::DimsExprs) == 72, "");
static_assert(sizeof(nvinfer1::Permutation) == 32, "");

using namespace nvinfer1;

// Overrides with and without noexcept, as sources of the generations write them.
#if NV_TENSORRT_MAJOR >= 8
#define NOTHROW noexcept
#define OUTPUTS void *const *
#else
#define NOTHROW
#define OUTPUTS void **
#endif

class Twice : public IPluginV2 {
public:
    const char *getPluginType() const NOTHROW override { return "Twice"; }
    const char *getPluginVersion() const NOTHROW override { return "1"; }
    int getNbOutputs() const NOTHROW override { return 1; }
    Dims getOutputDimensions(int, const Dims *in, int) NOTHROW override { return in[0]; }
    bool supportsFormat(DataType type, PluginFormat format) const NOTHROW override {
        return type == DataType::kFLOAT && format == PluginFormat::kNCHW;
    }
    void configureWithFormat(const Dims *, int, const Dims *, int, DataType, PluginFormat,
                             int) NOTHROW override {}
    int initialize() NOTHROW override { return 0; }
    void terminate() NOTHROW override {}
    size_t getWorkspaceSize(int) const NOTHROW override { return 0; }
    int enqueue(int, const void *const *, OUTPUTS, void *, cudaStream_t) NOTHROW override {
        return 0;
    }
    size_t getSerializationSize() const NOTHROW override { return 0; }
    void serialize(void *) const NOTHROW override {}
    void destroy() NOTHROW override { delete this; }
    IPluginV2 *clone() const NOTHROW override { return new Twice; }
    void setPluginNamespace(const char *) NOTHROW override {}
    const char *getPluginNamespace() const NOTHROW override { return ""; }
};

class TwiceCreator : public IPluginCreator {
public:
    const char *getPluginName() const NOTHROW override { return "Twice"; }
    const char *getPluginVersion() const NOTHROW override { return "1"; }
    const PluginFieldCollection *getFieldNames() NOTHROW override { return nullptr; }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) NOTHROW override {
        return new Twice;
    }
    IPluginV2 *deserializePlugin(const char *, const void *, size_t) NOTHROW override {
        return new Twice;
    }
    void setPluginNamespace(const char *) NOTHROW override {}
    const char *getPluginNamespace() const NOTHROW override { return ""; }
};
REGISTER_TENSORRT_PLUGIN(TwiceCreator);

// Host memory behaves as device memory would.
extern "C" float surface_memory() {
    float *device = nullptr, host[4] = {1, 2, 3, 4}, back[4] = {};
    cudaStream_t stream;
    if (cudaMalloc(&device, sizeof(host)) || cudaStreamCreate(&stream)) return -1;
    cudaMemcpyAsync(device, host, sizeof(host), cudaMemcpyHostToDevice, stream);
    cublasHandle_t blas;
    cublasCreate(&blas);
    cublasScopy(blas, 2, device, 2, back, 1);
    cublasDestroy(blas);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    const bool aligned = reinterpret_cast<uintptr_t>(device) % 256 == 0;
    cudaFree(device);
    return aligned ? back[0] + 10 * back[1] : -2;  // 1 and 3
}

extern "C" uint16_t surface_half(float value) { return __float2half(value).bits; }
extern "C" float surface_float(uint16_t bits) {
    __half half;
    half.bits = bits;
    return __half2float(half);
}

// Without a host, calls fail as the original's: null and false.
extern "C" bool surface_without_host() {
    ILogger *logger = nullptr;
    return createInferBuilder(*logger) == nullptr && getPluginRegistry() == nullptr &&
           !initLibNvInferPlugins(nullptr, "");
}

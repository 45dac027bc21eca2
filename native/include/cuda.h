/* CUDA's driver interface without a driver: memory is the host's and is copied and filled; modules,
 * links and kernels are named and fail. Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUDA_H
#define HEADRACE_CUDA_H

#include "cuda_runtime_api.h"
#include "library_types.h"

#define CUDA_VERSION CUDART_VERSION
#define CUDA_CB
#define CUDAAPI

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;
typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
} CUdevice_attribute;
typedef enum CUfunction_attribute_enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
} CUfunction_attribute;
typedef enum CUjit_option_enum {
    CU_JIT_MAX_REGISTERS = 0,
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_LOG_VERBOSE = 12
} CUjit_option;
typedef enum CUjitInputType_enum {
    CU_JIT_INPUT_CUBIN = 0,
    CU_JIT_INPUT_PTX = 1,
    CU_JIT_INPUT_FATBINARY = 2,
    CU_JIT_INPUT_OBJECT = 3,
    CU_JIT_INPUT_LIBRARY = 4
} CUjitInputType;
typedef enum CUtensorMapDataType_enum { CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0 } CUtensorMapDataType;
typedef enum CUtensorMapInterleave_enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 } CUtensorMapInterleave;
typedef enum CUtensorMapSwizzle_enum { CU_TENSOR_MAP_SWIZZLE_NONE = 0 } CUtensorMapSwizzle;
typedef enum CUtensorMapL2promotion_enum {
    CU_TENSOR_MAP_L2_PROMOTION_NONE = 0
} CUtensorMapL2promotion;
typedef enum CUtensorMapFloatOOBfill_enum {
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
} CUtensorMapFloatOOBfill;

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUtensorMap_st {
    cuuint64_t opaque[16];
} CUtensorMap;
typedef struct CUlaunchAttribute_st CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

static inline CUresult headrace_driver_result(cudaError_t error) {
    return error == cudaSuccess ? CUDA_SUCCESS : (CUresult)error; /* the same numbers */
}
static inline CUresult headrace_driver_text(const char *text, const char **out) {
    *out = text;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static inline CUresult cuGetErrorName(CUresult error, const char **text) {
    switch (error) {
    case CUDA_SUCCESS: return headrace_driver_text("CUDA_SUCCESS", text);
    case CUDA_ERROR_INVALID_VALUE: return headrace_driver_text("CUDA_ERROR_INVALID_VALUE", text);
    case CUDA_ERROR_OUT_OF_MEMORY: return headrace_driver_text("CUDA_ERROR_OUT_OF_MEMORY", text);
    case CUDA_ERROR_INVALID_DEVICE: return headrace_driver_text("CUDA_ERROR_INVALID_DEVICE", text);
    case CUDA_ERROR_NOT_SUPPORTED: return headrace_driver_text("CUDA_ERROR_NOT_SUPPORTED", text);
    default: return headrace_driver_text("CUDA_ERROR_UNKNOWN", text);
    }
}
static inline CUresult cuGetErrorString(CUresult error, const char **text) {
    return headrace_driver_text(cudaGetErrorString((cudaError_t)error), text);
}
static inline CUresult cuInit(unsigned int flags) {
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static inline CUresult cuDriverGetVersion(int *version) {
    return headrace_driver_result(cudaDriverGetVersion(version));
}
static inline CUresult cuDeviceGetCount(int *count) {
    return headrace_driver_result(cudaGetDeviceCount(count));
}
static inline CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = 0;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
static inline CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    return headrace_driver_result(
        cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)which, device));
}

#define HEADRACE_AT(address) ((void *)(uintptr_t)(address))
static inline CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
    void *memory = NULL;
    const CUresult result = headrace_driver_result(cudaMalloc(&memory, size));
    *address = (CUdeviceptr)(uintptr_t)memory;
    return result;
}
static inline CUresult cuMemFree(CUdeviceptr address) {
    return headrace_driver_result(cudaFree(HEADRACE_AT(address)));
}
static inline CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
    return headrace_driver_result(cudaMemcpy(HEADRACE_AT(to), from, size, cudaMemcpyDefault));
}
static inline CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
    return headrace_driver_result(cudaMemcpy(to, HEADRACE_AT(from), size, cudaMemcpyDefault));
}
static inline CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyHtoD(to, HEADRACE_AT(from), size);
}
static inline CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size,
                                         CUstream stream) {
    (void)stream;
    return cuMemcpyHtoD(to, from, size);
}
static inline CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    (void)stream;
    return cuMemcpyDtoH(to, from, size);
}
static inline CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
                                         CUstream stream) {
    (void)stream;
    return cuMemcpyDtoD(to, from, size);
}
static inline CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
    return headrace_driver_result(cudaMemset(HEADRACE_AT(to), value, count));
}
static inline CUresult cuMemsetD32(CUdeviceptr to, unsigned int value, size_t count) {
    unsigned int *const words = (unsigned int *)HEADRACE_AT(to);
    size_t i;
    for (i = 0; i < count; ++i) words[i] = value;
    return CUDA_SUCCESS;
}
static inline CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                                       CUstream stream) {
    (void)stream;
    return cuMemsetD8(to, value, count);
}
static inline CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count,
                                        CUstream stream) {
    (void)stream;
    return cuMemsetD32(to, value, count);
}
#undef HEADRACE_AT
static inline CUresult cuStreamSynchronize(CUstream stream) {
    return headrace_driver_result(cudaStreamSynchronize(stream));
}

#ifdef __cplusplus
#define HEADRACE_DRIVER(name, ...)             \
    static inline CUresult name(__VA_ARGS__) { \
        headrace_not_computed(#name);          \
        return CUDA_ERROR_NOT_SUPPORTED;       \
    }
HEADRACE_DRIVER(cuModuleLoad, CUmodule *, const char *)
HEADRACE_DRIVER(cuModuleLoadData, CUmodule *, const void *)
HEADRACE_DRIVER(cuModuleUnload, CUmodule)
HEADRACE_DRIVER(cuModuleGetFunction, CUfunction *, CUmodule, const char *)
HEADRACE_DRIVER(cuLinkCreate, unsigned int, CUjit_option *, void **, CUlinkState *)
HEADRACE_DRIVER(cuLinkAddData, CUlinkState, CUjitInputType, void *, size_t, const char *,
                unsigned int, CUjit_option *, void **)
HEADRACE_DRIVER(cuLinkAddFile, CUlinkState, CUjitInputType, const char *, unsigned int,
                CUjit_option *, void **)
HEADRACE_DRIVER(cuLinkComplete, CUlinkState, void **, size_t *)
HEADRACE_DRIVER(cuLinkDestroy, CUlinkState)
HEADRACE_DRIVER(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)
HEADRACE_DRIVER(cuOccupancyMaxActiveClusters, int *, CUfunction, const CUlaunchConfig *)
HEADRACE_DRIVER(cuTensorMapEncodeTiled, CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                CUtensorMapFloatOOBfill)
HEADRACE_DRIVER(cuLaunchKernel, CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
                unsigned int, unsigned int, unsigned int, CUstream, void **, void **)
HEADRACE_DRIVER(cuLaunchKernelEx, const CUlaunchConfig *, CUfunction, void **, void **)
HEADRACE_DRIVER(cuLaunchCooperativeKernel, CUfunction, unsigned int, unsigned int, unsigned int,
                unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void **)
#undef HEADRACE_DRIVER
#endif

#endif /* HEADRACE_CUDA_H */

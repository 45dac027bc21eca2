/* The CUDA runtime on a machine without one: device memory is host memory, a stream runs at once.
 *
 * Enough for the host side of custom libraries: plugins that allocate, copy and free. There are no
 * kernels; give them as functions in C++ beside. Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUDA_RUNTIME_API_H
#define HEADRACE_CUDA_RUNTIME_API_H

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vector_types.h"

#define __DRIVER_TYPES_H__ /* sources ask by it whether they may name the types */

#ifndef CUDART_VERSION
#define CUDART_VERSION 12000
#endif
#ifndef CUDART_CB
#define CUDART_CB
#endif
#ifndef CUDARTAPI
#define CUDARTAPI
#endif

/* Marks of functions: on the host all functions are the host's. */
#ifndef __CUDACC__
#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaDeviceScheduleAuto 0x00
#define cudaDeviceScheduleSpin 0x01
#define cudaDeviceScheduleYield 0x02
#define cudaDeviceScheduleBlockingSync 0x04
#define cudaDeviceMapHost 0x08
#define cudaDeviceLmemResizeToMax 0x10
#define cudaMemAttachGlobal 0x01

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrTotalConstantMemory = 9,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrCanMapHostMemory = 19,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrStreamPrioritiesSupported = 78,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxRegistersPerMultiprocessor = 82,
    cudaDevAttrManagedMemory = 83,
    cudaDevAttrConcurrentManagedAccess = 89,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106,
    cudaDevAttrMaxPersistingL2CacheSize = 108,
    cudaDevAttrMemoryPoolsSupported = 115
};
enum cudaLimit {
    cudaLimitStackSize = 0,
    cudaLimitPrintfFifoSize = 1,
    cudaLimitMallocHeapSize = 2,
    cudaLimitPersistingL2CacheSize = 6
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
};
typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
};

/* Memory of a device begins on such a boundary and is rounded up to it; sources rely on that. */
#define HEADRACE_CUDA_GRANULE 512

static inline const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    default: return "unknown error";
    }
}
static inline const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    default: return "cudaErrorUnknown";
    }
}
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }

static inline cudaError_t cudaMalloc(void **pointer, size_t size) {
    const size_t rounded =
        (size + HEADRACE_CUDA_GRANULE - 1) / HEADRACE_CUDA_GRANULE * HEADRACE_CUDA_GRANULE;
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = NULL;
    if (size == 0) return cudaSuccess;
    if (rounded < size) return cudaErrorMemoryAllocation;
    return posix_memalign(pointer, HEADRACE_CUDA_GRANULE, rounded) ? cudaErrorMemoryAllocation
                                                                   : cudaSuccess;
}
static inline cudaError_t cudaFree(void *pointer) {
    free(pointer);
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **pointer, size_t size) {
    return cudaMalloc(pointer, size);
}
static inline cudaError_t cudaFreeHost(void *pointer) { return cudaFree(pointer); }
static inline cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags) {
    (void)flags;
    return cudaMalloc(pointer, size);
}
static inline cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
    (void)flags;
    *device = host;
    return cudaSuccess;
}
static inline cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags) {
    (void)flags;
    return cudaMalloc(pointer, size);
}
static inline cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
    (void)stream;
    return cudaMalloc(pointer, size);
}
static inline cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    (void)stream;
    return cudaFree(pointer);
}
static inline cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    *available = *total = (size_t)1 << 33;
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size,
                                     enum cudaMemcpyKind kind) {
    (void)kind;
    if (size) memmove(to, from, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}
static inline cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from,
                                       size_t from_pitch, size_t width, size_t height,
                                       enum cudaMemcpyKind kind) {
    size_t row;
    for (row = 0; row < height; ++row)
        cudaMemcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                            size_t from_pitch, size_t width, size_t height,
                                            enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
static inline cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                              int from_device, size_t size, cudaStream_t stream) {
    if (to_device || from_device) return cudaErrorInvalidDevice;
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}
/* What is asked for may be read on the host and on the device. */
static inline cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                   const void *pointer) {
    attributes->type = cudaMemoryTypeManaged;
    attributes->device = 0;
    attributes->devicePointer = attributes->hostPointer = (void *)pointer;
    return cudaSuccess;
}
static inline cudaError_t cudaMemset(void *to, int value, size_t size) {
    if (size) memset(to, value, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    (void)stream;
    return cudaMemset(to, value, size);
}

static inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    *stream = (cudaStream_t)malloc(1);
    return *stream ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    (void)flags;
    return cudaStreamCreate(stream);
}
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
                                                       int priority) {
    (void)flags, (void)priority;
    return cudaStreamCreate(stream);
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free((void *)stream);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned int flags) {
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void(CUDART_CB *function)(void *),
                                             void *data) {
    (void)stream;
    function(data);
    return cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = (cudaEvent_t)calloc(1, sizeof(struct timespec));
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    (void)flags;
    return cudaEventCreate(event);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free((void *)event);
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    struct timespec now;
    (void)stream;
    timespec_get(&now, TIME_UTC);
    memcpy((void *)event, &now, sizeof(now));
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventQuery(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    struct timespec a, b;
    memcpy(&a, (const void *)start, sizeof(a));
    memcpy(&b, (const void *)end, sizeof(b));
    *ms = (float)((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6);
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
static inline cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
static inline cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
static inline cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    (void)flags;
    return cudaSuccess;
}
/* Nothing here has such limits. */
static inline cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    (void)limit, (void)value;
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    (void)value, (void)limit;
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
    *flags = 0;
    return cudaSuccess;
}

/* Work runs when it is called, so that nothing can be captured; programs then run it themselves. */
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                                 enum cudaStreamCaptureMode mode) {
    (void)stream, (void)mode;
    return cudaErrorStreamCaptureUnsupported;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    (void)stream;
    *graph = NULL;
    return cudaErrorStreamCaptureUnsupported;
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                enum cudaStreamCaptureStatus *status) {
    (void)stream;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
#ifdef __cplusplus
/* Its last parameters differ between releases of CUDA. */
template <typename... More>
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, More...) {
    (void)graph;
    *exec = nullptr;
    return cudaErrorInvalidValue;
}
#endif
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    (void)graph, (void)stream;
    return cudaErrorInvalidValue;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return graph ? cudaErrorInvalidValue : cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    return graph ? cudaErrorInvalidValue : cudaSuccess;
}

static inline cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                                 int device) {
    (void)device;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = INT_MAX; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 49152; break;
    case cudaDevAttrTotalConstantMemory:
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 7; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 5; break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMaxPersistingL2CacheSize:
    case cudaDevAttrMemoryPoolsSupported: *value = 0; break;
    default: *value = 1;
    }
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    (void)device;
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, "host memory (headrace)");
    properties->totalGlobalMem = (size_t)1 << 33;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = 7;
    properties->minor = 5;
    properties->multiProcessorCount = 1;
    properties->canMapHostMemory = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int *version) {
    return cudaRuntimeGetVersion(version);
}

#endif /* HEADRACE_CUDA_RUNTIME_API_H */

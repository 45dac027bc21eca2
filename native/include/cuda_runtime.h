// The C++ side of the CUDA runtime, see cuda_runtime_api.h. Part of headrace, Apache-2.0.
#ifndef HEADRACE_CUDA_RUNTIME_H
#define HEADRACE_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
#define HEADRACE_VECTOR_MAKERS(type, name)                                 \
    static inline name##2 make_##name##2(type x, type y) {                 \
        name##2 v = {x, y};                                                \
        return v;                                                          \
    }                                                                      \
    static inline name##3 make_##name##3(type x, type y, type z) {         \
        name##3 v = {x, y, z};                                             \
        return v;                                                          \
    }                                                                      \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { \
        name##4 v = {x, y, z, w};                                          \
        return v;                                                          \
    }
HEADRACE_VECTOR_MAKERS(unsigned char, uchar)
HEADRACE_VECTOR_MAKERS(int, int)
HEADRACE_VECTOR_MAKERS(unsigned int, uint)
HEADRACE_VECTOR_MAKERS(float, float)
#undef HEADRACE_VECTOR_MAKERS

template <typename T>
static inline cudaError_t cudaMalloc(T **pointer, size_t size) {
    return cudaMalloc(reinterpret_cast<void **>(pointer), size);
}
template <typename T>
static inline cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream) {
    return cudaMallocAsync(reinterpret_cast<void **>(pointer), size, stream);
}
template <typename T>
static inline cudaError_t cudaMallocHost(T **pointer, size_t size, unsigned int = 0) {
    return cudaMallocHost(reinterpret_cast<void **>(pointer), size);
}
template <typename T>
static inline cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned int flags) {
    return cudaHostAlloc(reinterpret_cast<void **>(pointer), size, flags);
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags) {
    return cudaEventCreateWithFlags(event, flags);
}
template <typename T>
static inline cudaError_t cudaMallocManaged(T **pointer, size_t size,
                                            unsigned int flags = cudaMemAttachGlobal) {
    return cudaMallocManaged(reinterpret_cast<void **>(pointer), size, flags);
}
template <typename T>
static inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags) {
    return cudaHostGetDevicePointer(reinterpret_cast<void **>(device), host, flags);
}
#endif

#endif  // HEADRACE_CUDA_RUNTIME_H

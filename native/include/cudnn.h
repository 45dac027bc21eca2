/* Types of cuDNN that plugins name; its functions say that they are not there.
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUDNN_H
#define HEADRACE_CUDNN_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdlib.h>

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1,
    CUDNN_STATUS_NOT_SUPPORTED = 9
} cudnnStatus_t;
typedef enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_DOUBLE = 1, CUDNN_DATA_HALF = 2 } cudnnDataType_t;
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;

struct cudnnContext;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;

static inline const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
static inline cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    *handle = (cudnnHandle_t)malloc(1);
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}
static inline cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    free((void *)handle);
    return CUDNN_STATUS_SUCCESS;
}
static inline cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    (void)handle, (void)stream;
    return CUDNN_STATUS_SUCCESS;
}
static inline cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor) {
    *descriptor = NULL;
    return CUDNN_STATUS_NOT_SUPPORTED;
}
static inline cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
    (void)descriptor;
    return CUDNN_STATUS_SUCCESS;
}

typedef enum { CUDNN_SAMPLER_BILINEAR = 0 } cudnnSamplerType_t;
typedef struct cudnnSpatialTransformerStruct *cudnnSpatialTransformerDescriptor_t;

#if defined(__cplusplus) && defined(HEADRACE_CUDA_RUNTIME_API_H)
#define HEADRACE_CUDNN(name, ...)                   \
    static inline cudnnStatus_t name(__VA_ARGS__) { \
        headrace_not_computed(#name);               \
        return CUDNN_STATUS_NOT_SUPPORTED;          \
    }
#elif defined(__cplusplus) /* beside CUDA's own runtime cuDNN itself is linked */
#define HEADRACE_CUDNN(name, ...) extern "C" cudnnStatus_t name(__VA_ARGS__);
#else
#define HEADRACE_CUDNN(name, ...) extern cudnnStatus_t name(__VA_ARGS__);
#endif
HEADRACE_CUDNN(cudnnCreateSpatialTransformerDescriptor, cudnnSpatialTransformerDescriptor_t *)
HEADRACE_CUDNN(cudnnDestroySpatialTransformerDescriptor, cudnnSpatialTransformerDescriptor_t)
HEADRACE_CUDNN(cudnnSetSpatialTransformerNdDescriptor, cudnnSpatialTransformerDescriptor_t,
               cudnnSamplerType_t, cudnnDataType_t, int, const int *)
HEADRACE_CUDNN(cudnnSpatialTfGridGeneratorForward, cudnnHandle_t,
               cudnnSpatialTransformerDescriptor_t, const void *, void *)
HEADRACE_CUDNN(cudnnSpatialTfSamplerForward, cudnnHandle_t, cudnnSpatialTransformerDescriptor_t,
               const void *, cudnnTensorDescriptor_t, const void *, const void *, const void *,
               cudnnTensorDescriptor_t, void *)
HEADRACE_CUDNN(cudnnSetTensor4dDescriptor, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
               cudnnDataType_t, int, int, int, int)
HEADRACE_CUDNN(cudnnSetTensorNdDescriptorEx, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
               cudnnDataType_t, int, const int *)
#undef HEADRACE_CUDNN

#endif /* HEADRACE_CUDNN_H */

/* Types of cuDNN that plugins name; its functions say that they are not there.
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUDNN_H
#define HEADRACE_CUDNN_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdlib.h>

#define CUDNN_H_
#define CUDNN_MAJOR 8
#define CUDNN_MINOR 9
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION 8900

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1,
    CUDNN_STATUS_ALLOC_FAILED = 2,
    CUDNN_STATUS_BAD_PARAM = 3,
    CUDNN_STATUS_INTERNAL_ERROR = 4,
    CUDNN_STATUS_INVALID_VALUE = 5,
    CUDNN_STATUS_ARCH_MISMATCH = 6,
    CUDNN_STATUS_MAPPING_ERROR = 7,
    CUDNN_STATUS_EXECUTION_FAILED = 8,
    CUDNN_STATUS_NOT_SUPPORTED = 9,
    CUDNN_STATUS_LICENSE_ERROR = 10,
    CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING = 11,
    CUDNN_STATUS_RUNTIME_IN_PROGRESS = 12,
    CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 13,
    CUDNN_STATUS_VERSION_MISMATCH = 14
} cudnnStatus_t;
typedef enum {
    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_DOUBLE = 1,
    CUDNN_DATA_HALF = 2,
    CUDNN_DATA_INT8 = 3,
    CUDNN_DATA_INT32 = 4,
    CUDNN_DATA_INT8x4 = 5,
    CUDNN_DATA_UINT8 = 6,
    CUDNN_DATA_UINT8x4 = 7,
    CUDNN_DATA_INT8x32 = 8,
    CUDNN_DATA_BFLOAT16 = 9,
    CUDNN_DATA_INT64 = 10,
    CUDNN_DATA_BOOLEAN = 11,
    CUDNN_DATA_FP8_E4M3 = 12,
    CUDNN_DATA_FP8_E5M2 = 13,
    CUDNN_DATA_FAST_FLOAT_FOR_FP8 = 14
} cudnnDataType_t;
typedef enum {
    CUDNN_TENSOR_NCHW = 0,
    CUDNN_TENSOR_NHWC = 1,
    CUDNN_TENSOR_NCHW_VECT_C = 2
} cudnnTensorFormat_t;
typedef enum {
    CUDNN_BATCHNORM_PER_ACTIVATION = 0,
    CUDNN_BATCHNORM_SPATIAL = 1,
    CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2
} cudnnBatchNormMode_t;
typedef enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 } cudnnNanPropagation_t;
typedef enum {
    CUDNN_POOLING_MAX = 0,
    CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
    CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2
} cudnnPoolingMode_t;
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t;

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
HEADRACE_CUDNN(cudnnSetTensorNdDescriptor, cudnnTensorDescriptor_t, cudnnDataType_t, int,
               const int *, const int *)
HEADRACE_CUDNN(cudnnDeriveBNTensorDescriptor, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
               cudnnBatchNormMode_t)
HEADRACE_CUDNN(cudnnBatchNormalizationForwardInference, cudnnHandle_t, cudnnBatchNormMode_t,
               const void *, const void *, cudnnTensorDescriptor_t, const void *,
               cudnnTensorDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, const void *,
               const void *, const void *, double)
HEADRACE_CUDNN(cudnnBatchNormalizationForwardTraining, cudnnHandle_t, cudnnBatchNormMode_t,
               const void *, const void *, cudnnTensorDescriptor_t, const void *,
               cudnnTensorDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, const void *,
               double, void *, void *, double, void *, void *)
HEADRACE_CUDNN(cudnnCreatePoolingDescriptor, cudnnPoolingDescriptor_t *)
HEADRACE_CUDNN(cudnnDestroyPoolingDescriptor, cudnnPoolingDescriptor_t)
HEADRACE_CUDNN(cudnnSetPooling2dDescriptor, cudnnPoolingDescriptor_t, cudnnPoolingMode_t,
               cudnnNanPropagation_t, int, int, int, int, int, int)
HEADRACE_CUDNN(cudnnPoolingForward, cudnnHandle_t, cudnnPoolingDescriptor_t, const void *,
               cudnnTensorDescriptor_t, const void *, const void *, cudnnTensorDescriptor_t, void *)
#undef HEADRACE_CUDNN

#endif /* HEADRACE_CUDNN_H */

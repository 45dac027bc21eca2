/* The few functions of cuBLAS that plugins of sample libraries call, on host memory; column-major.
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUBLAS_V2_H
#define HEADRACE_CUBLAS_V2_H

#include <cuda_runtime_api.h>

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
/* Which way a product is computed; there is one here. */
typedef enum {
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO1 = 1,
    CUBLAS_GEMM_ALGO2 = 2,
    CUBLAS_GEMM_ALGO3 = 3,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
} cublasGemmAlgo_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1 } cublasMath_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;

struct cublasContext;
typedef struct cublasContext *cublasHandle_t;

#ifdef HEADRACE_CUDA_RUNTIME_API_H
static inline cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    *handle = (cublasHandle_t)malloc(1);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
static inline cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    free((void *)handle);
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    (void)handle, (void)stream;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                                     cublasPointerMode_t mode) {
    (void)handle, (void)mode;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x, int incx,
                                            float *y, int incy) {
    int i;
    (void)handle;
    for (i = 0; i < n; ++i) y[(size_t)i * (size_t)incy] = x[(size_t)i * (size_t)incx];
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha,
                                            float *x, int incx) {
    int i;
    (void)handle;
    for (i = 0; i < n; ++i) x[(size_t)i * (size_t)incx] *= *alpha;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                                            const float *x, int incx, float *y, int incy) {
    int i;
    (void)handle;
    for (i = 0; i < n; ++i) y[(size_t)i * (size_t)incy] += *alpha * x[(size_t)i * (size_t)incx];
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t opa,
                                            cublasOperation_t opb, int m, int n, int k,
                                            const float *alpha, const float *a, int lda,
                                            const float *b, int ldb, const float *beta, float *c,
                                            int ldc) {
    int row, column, i;
    (void)handle;
    for (column = 0; column < n; ++column) {
        for (row = 0; row < m; ++row) {
            float sum = 0.0f;
            float *to = c + row + (size_t)column * (size_t)ldc;
            for (i = 0; i < k; ++i)
                sum += a[opa == CUBLAS_OP_N ? row + (size_t)i * (size_t)lda
                                            : i + (size_t)row * (size_t)lda] *
                       b[opb == CUBLAS_OP_N ? i + (size_t)column * (size_t)ldb
                                            : column + (size_t)i * (size_t)ldb];
            *to = *alpha * sum + (*beta == 0.0f ? 0.0f : *beta * *to);
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
#else /* beside CUDA's own runtime memory is the GPU's: cuBLAS itself is linked */
#ifdef __cplusplus
#define HEADRACE_CUBLAS extern "C"
#else
#define HEADRACE_CUBLAS extern
#endif
HEADRACE_CUBLAS cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
HEADRACE_CUBLAS cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
HEADRACE_CUBLAS cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
HEADRACE_CUBLAS cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                                       cublasPointerMode_t mode);
HEADRACE_CUBLAS cublasStatus_t cublasScopy_v2(cublasHandle_t handle, int n, const float *x,
                                              int incx, float *y, int incy);
HEADRACE_CUBLAS cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *alpha,
                                              float *x, int incx);
HEADRACE_CUBLAS cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha,
                                              const float *x, int incx, float *y, int incy);
HEADRACE_CUBLAS cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t opa,
                                              cublasOperation_t opb, int m, int n, int k,
                                              const float *alpha, const float *a, int lda,
                                              const float *b, int ldb, const float *beta, float *c,
                                              int ldc);
#endif

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasScopy cublasScopy_v2
#define cublasSscal cublasSscal_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSgemm cublasSgemm_v2

#endif /* HEADRACE_CUBLAS_V2_H */

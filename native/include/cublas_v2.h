/* The few functions of cuBLAS that plugins of sample libraries call, on host memory; column-major.
 * Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUBLAS_V2_H
#define HEADRACE_CUBLAS_V2_H

#include <cuda_runtime_api.h>
#include <library_types.h>

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
    CUBLAS_GEMM_ALGO4 = 4,
    CUBLAS_GEMM_ALGO5 = 5,
    CUBLAS_GEMM_ALGO6 = 6,
    CUBLAS_GEMM_ALGO7 = 7,
    CUBLAS_GEMM_ALGO8 = 8,
    CUBLAS_GEMM_ALGO9 = 9,
    CUBLAS_GEMM_ALGO10 = 10,
    CUBLAS_GEMM_ALGO11 = 11,
    CUBLAS_GEMM_ALGO12 = 12,
    CUBLAS_GEMM_ALGO13 = 13,
    CUBLAS_GEMM_ALGO14 = 14,
    CUBLAS_GEMM_ALGO15 = 15,
    CUBLAS_GEMM_ALGO16 = 16,
    CUBLAS_GEMM_ALGO17 = 17,
    CUBLAS_GEMM_ALGO18 = 18,
    CUBLAS_GEMM_ALGO19 = 19,
    CUBLAS_GEMM_ALGO20 = 20,
    CUBLAS_GEMM_ALGO21 = 21,
    CUBLAS_GEMM_ALGO22 = 22,
    CUBLAS_GEMM_ALGO23 = 23,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO1_TENSOR_OP = 101,
    CUBLAS_GEMM_ALGO2_TENSOR_OP = 102,
    CUBLAS_GEMM_ALGO3_TENSOR_OP = 103,
    CUBLAS_GEMM_ALGO4_TENSOR_OP = 104,
    CUBLAS_GEMM_ALGO5_TENSOR_OP = 105,
    CUBLAS_GEMM_ALGO6_TENSOR_OP = 106,
    CUBLAS_GEMM_ALGO7_TENSOR_OP = 107,
    CUBLAS_GEMM_ALGO8_TENSOR_OP = 108,
    CUBLAS_GEMM_ALGO9_TENSOR_OP = 109,
    CUBLAS_GEMM_ALGO10_TENSOR_OP = 110,
    CUBLAS_GEMM_ALGO11_TENSOR_OP = 111,
    CUBLAS_GEMM_ALGO12_TENSOR_OP = 112,
    CUBLAS_GEMM_ALGO13_TENSOR_OP = 113,
    CUBLAS_GEMM_ALGO14_TENSOR_OP = 114,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef cudaDataType cublasDataType_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
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
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    (void)handle, (void)mode;
    return CUBLAS_STATUS_SUCCESS;
}
/* Products of other types than FP32 are not computed. */
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa,
                                          cublasOperation_t opb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, const void *b, cudaDataType type_b, int ldb,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    const int how = (int)compute;
    (void)algorithm;
    if (type_a != CUDA_R_32F || type_b != CUDA_R_32F || type_c != CUDA_R_32F ||
        (how != CUDA_R_32F && how != CUBLAS_COMPUTE_32F && how != CUBLAS_COMPUTE_32F_PEDANTIC))
        return headrace_not_computed("cublasGemmEx with types other than CUDA_R_32F"),
               CUBLAS_STATUS_NOT_SUPPORTED;
    return cublasSgemm_v2(handle, opa, opb, m, n, k, (const float *)alpha, (const float *)a, lda,
                          (const float *)b, ldb, (const float *)beta, (float *)c, ldc);
}
static inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType type_a, int lda, long long step_a, const void *b,
    cudaDataType type_b, int ldb, long long step_b, const void *beta, void *c, cudaDataType type_c,
    int ldc, long long step_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    int i;
    for (i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) /* FP32, or the call fails */
        status = cublasGemmEx(handle, opa, opb, m, n, k, alpha, (const float *)a + i * step_a,
                              type_a, lda, (const float *)b + i * step_b, type_b, ldb, beta,
                              (float *)c + i * step_c, type_c, ldc, compute, algorithm);
    return status;
}
static inline cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *const a[], cudaDataType type_a, int lda, const void *const b[],
    cudaDataType type_b, int ldb, const void *beta, void *const c[], cudaDataType type_c, int ldc,
    int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    int i;
    for (i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
        status = cublasGemmEx(handle, opa, opb, m, n, k, alpha, a[i], type_a, lda, b[i], type_b,
                              ldb, beta, c[i], type_c, ldc, compute, algorithm);
    return status;
}
/* L and U of each matrix, with rows exchanged for the largest pivot where they are asked for. */
static inline cublasStatus_t cublasSgetrfBatched(cublasHandle_t handle, int n, float *const *list,
                                                 int lda, int *pivots, int *info, int count) {
    int one, i, row, column;
    (void)handle;
    if (n < 0 || lda < (n > 1 ? n : 1) || count < 0) return CUBLAS_STATUS_INVALID_VALUE;
    for (one = 0; one < count; ++one) {
        float *const a = list[one];
        info[one] = 0;
        for (i = 0; i < n; ++i) {
            float *const at = a + (size_t)i * (size_t)lda;
            int best = i;
            for (row = i + 1; pivots && row < n; ++row)
                if ((at[row] < 0 ? -at[row] : at[row]) > (at[best] < 0 ? -at[best] : at[best]))
                    best = row;
            if (pivots) pivots[(size_t)one * (size_t)n + (size_t)i] = best + 1;
            if (at[best] == 0.0f) {
                if (!info[one]) info[one] = i + 1;
                continue;
            }
            for (column = 0; best != i && column < n; ++column) {
                float *const to = a + (size_t)column * (size_t)lda;
                const float kept = to[i];
                to[i] = to[best];
                to[best] = kept;
            }
            for (row = i + 1; row < n; ++row) at[row] /= at[i];
            for (column = i + 1; column < n; ++column) {
                float *const to = a + (size_t)column * (size_t)lda;
                for (row = i + 1; row < n; ++row) to[row] -= at[row] * to[i];
            }
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
HEADRACE_CUBLAS cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
HEADRACE_CUBLAS cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa,
                                            cublasOperation_t opb, int m, int n, int k,
                                            const void *alpha, const void *a, cudaDataType type_a,
                                            int lda, const void *b, cudaDataType type_b, int ldb,
                                            const void *beta, void *c, cudaDataType type_c, int ldc,
                                            cublasComputeType_t compute,
                                            cublasGemmAlgo_t algorithm);
HEADRACE_CUBLAS cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType type_a, int lda, long long step_a, const void *b,
    cudaDataType type_b, int ldb, long long step_b, const void *beta, void *c, cudaDataType type_c,
    int ldc, long long step_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
HEADRACE_CUBLAS cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *const a[], cudaDataType type_a, int lda, const void *const b[],
    cudaDataType type_b, int ldb, const void *beta, void *const c[], cudaDataType type_c, int ldc,
    int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
HEADRACE_CUBLAS cublasStatus_t cublasSgetrfBatched(cublasHandle_t handle, int n, float *const *list,
                                                   int lda, int *pivots, int *info, int count);
#endif

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasScopy cublasScopy_v2
#define cublasSscal cublasSscal_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSgemm cublasSgemm_v2

#ifdef __cplusplus /* releases up to 10 name the type that is computed in */
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa,
                                          cublasOperation_t opb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, const void *b, cudaDataType type_b, int ldb,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                        type_c, ldc,
                        compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                        : compute == CUDA_R_32F ? CUBLAS_COMPUTE_32F
                        : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                                : CUBLAS_COMPUTE_32I,
                        algorithm);
}
#endif

#endif /* HEADRACE_CUBLAS_V2_H */

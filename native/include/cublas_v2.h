/* The functions of cuBLAS that plugins call, on host memory; column-major. Products of FP32 and, in
 * C++, FP16 are summed in FP32. Part of headrace, Apache-2.0. Valid C and C++11.
 */
#ifndef HEADRACE_CUBLAS_V2_H
#define HEADRACE_CUBLAS_V2_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#ifdef __cplusplus
#include <cuda_fp16.h>
#endif

#define CUBLAS_API_H_ /* sources ask by it whether they may name the types */

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
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
    CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;

struct cublasContext;
typedef struct cublasContext *cublasHandle_t;

#ifdef HEADRACE_CUDA_RUNTIME_API_H
#define HEADRACE_CUBLAS(name, parameters, ...)     \
    static inline cublasStatus_t name parameters { \
        (void)handle;                              \
        __VA_ARGS__;                               \
    }
#define HEADRACE_CUBLAS_DONE(...) \
    __VA_ARGS__;                  \
    return CUBLAS_STATUS_SUCCESS

static inline float headrace_blas_at(const void *matrix, cudaDataType type, size_t i) {
#ifdef __cplusplus
    if (type == CUDA_R_16F) return ((const __half *)matrix)[i];
#endif
    (void)type;
    return ((const float *)matrix)[i];
}
static inline void headrace_blas_put(void *matrix, cudaDataType type, size_t i, float value) {
#ifdef __cplusplus
    if (type == CUDA_R_16F) {
        ((__half *)matrix)[i] = value;
        return;
    }
#endif
    (void)type;
    ((float *)matrix)[i] = value;
}
/* Whether products of matrices of such types are computed. */
static inline int headrace_blas_has(cudaDataType type) {
#ifdef __cplusplus
    if (type == CUDA_R_16F) return 1;
#endif
    return type == CUDA_R_32F;
}
static inline cublasStatus_t headrace_blas_product(cublasOperation_t opa, cublasOperation_t opb,
                                                   int m, int n, int k, float alpha, const void *a,
                                                   cudaDataType type_a, int lda, const void *b,
                                                   cudaDataType type_b, int ldb, float beta,
                                                   void *c, cudaDataType type_c, int ldc) {
    int row, column, i;
    for (column = 0; column < n; ++column) {
        for (row = 0; row < m; ++row) {
            const size_t to = row + (size_t)column * (size_t)ldc;
            float sum = 0.0f;
            for (i = 0; i < k; ++i)
                sum += headrace_blas_at(a, type_a,
                                        opa == CUBLAS_OP_N ? row + (size_t)i * (size_t)lda
                                                           : i + (size_t)row * (size_t)lda) *
                       headrace_blas_at(b, type_b,
                                        opb == CUBLAS_OP_N ? i + (size_t)column * (size_t)ldb
                                                           : column + (size_t)i * (size_t)ldb);
            sum *= alpha; /* without beta what is there is not read */
            if (beta != 0.0f) sum += beta * headrace_blas_at(c, type_c, to);
            headrace_blas_put(c, type_c, to, sum);
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t headrace_blas_typed(const char *name, cublasOperation_t opa,
                                                 cublasOperation_t opb, int m, int n, int k,
                                                 const void *alpha, const void *a,
                                                 cudaDataType type_a, int lda, const void *b,
                                                 cudaDataType type_b, int ldb, const void *beta,
                                                 void *c, cudaDataType type_c, int ldc,
                                                 cublasComputeType_t compute) {
    const int how = (int)compute;
    const int halves = how == CUBLAS_COMPUTE_16F || how == CUBLAS_COMPUTE_16F_PEDANTIC;
    const int floats = how == CUBLAS_COMPUTE_32F || how == CUBLAS_COMPUTE_32F_PEDANTIC ||
                       (how >= CUBLAS_COMPUTE_32F_FAST_16F && how <= CUBLAS_COMPUTE_32F_FAST_TF32);
    const cudaDataType factor = halves ? CUDA_R_16F : CUDA_R_32F;
    if (!headrace_blas_has(type_a) || !headrace_blas_has(type_b) || !headrace_blas_has(type_c) ||
        !headrace_blas_has(factor) || !(halves || floats))
        return headrace_not_computed(name), CUBLAS_STATUS_NOT_SUPPORTED;
    return headrace_blas_product(opa, opb, m, n, k, headrace_blas_at(alpha, factor, 0), a, type_a,
                                 lda, b, type_b, ldb, headrace_blas_at(beta, factor, 0), c, type_c,
                                 ldc);
}
static inline const void *headrace_blas_next(const void *matrix, cudaDataType type, long long by) {
    return (const char *)matrix + by * (type == CUDA_R_16F ? 2 : 4);
}
/* The largest magnitude's place, counted from 1. */
static inline int headrace_blas_largest(int n, const float *x, int step) {
    int i, best = 0;
    for (i = 1; i < n; ++i) {
        const float one = x[(size_t)i * (size_t)step], other = x[(size_t)best * (size_t)step];
        if ((one < 0 ? -one : one) > (other < 0 ? -other : other)) best = i;
    }
    return n > 0 ? best + 1 : 0;
}
/* L and U of each matrix, with rows exchanged for the largest pivot where they are asked for. */
static inline cublasStatus_t headrace_blas_factors(int n, float *const *list, int lda, int *pivots,
                                                   int *info, int count) {
    int one, i, row, column;
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
/* The inverses of matrices that headrace_blas_factors made of theirs. */
static inline cublasStatus_t headrace_blas_inverses(int n, const float *const *list, int lda,
                                                    const int *pivots, float *const *out, int ldc,
                                                    int *info, int count) {
    int one, column, row, i;
    if (n < 0 || lda < (n > 1 ? n : 1) || ldc < (n > 1 ? n : 1) || count < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (one = 0; one < count; ++one) {
        const float *const a = list[one];
        info[one] = 0;
        for (i = n; i > 0; --i)
            if (a[(size_t)(i - 1) * ((size_t)lda + 1)] == 0.0f) info[one] = i;
        for (column = 0; column < n && !info[one]; ++column) {
            float *const x = out[one] + (size_t)column * (size_t)ldc;
            for (row = 0; row < n; ++row) x[row] = row == column ? 1.0f : 0.0f;
            for (row = 0; pivots && row < n; ++row) {
                const int other = pivots[(size_t)one * (size_t)n + (size_t)row] - 1;
                const float kept = x[row];
                x[row] = x[other];
                x[other] = kept;
            }
            for (row = 0; row < n; ++row)
                for (i = 0; i < row; ++i) x[row] -= a[row + (size_t)i * (size_t)lda] * x[i];
            for (row = n - 1; row >= 0; --row) {
                for (i = row + 1; i < n; ++i) x[row] -= a[row + (size_t)i * (size_t)lda] * x[i];
                x[row] /= a[row + (size_t)row * (size_t)lda];
            }
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
#else /* beside CUDA's own runtime memory is the GPU's: cuBLAS itself is linked */
#ifdef __cplusplus
#define HEADRACE_CUBLAS(name, parameters, ...) extern "C" cublasStatus_t name parameters;
#else
#define HEADRACE_CUBLAS(name, parameters, ...) extern cublasStatus_t name parameters;
#endif
#endif

HEADRACE_CUBLAS(cublasDestroy_v2, (cublasHandle_t handle),
                HEADRACE_CUBLAS_DONE(free((void *)handle)))
HEADRACE_CUBLAS(cublasSetStream_v2, (cublasHandle_t handle, cudaStream_t stream),
                HEADRACE_CUBLAS_DONE((void)stream))
HEADRACE_CUBLAS(cublasGetStream_v2, (cublasHandle_t handle, cudaStream_t *stream),
                HEADRACE_CUBLAS_DONE(*stream = 0))
HEADRACE_CUBLAS(cublasSetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t mode),
                HEADRACE_CUBLAS_DONE((void)mode))
HEADRACE_CUBLAS(cublasGetPointerMode_v2, (cublasHandle_t handle, cublasPointerMode_t *mode),
                HEADRACE_CUBLAS_DONE(*mode = CUBLAS_POINTER_MODE_HOST))
HEADRACE_CUBLAS(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode),
                HEADRACE_CUBLAS_DONE((void)mode))
HEADRACE_CUBLAS(cublasGetMathMode, (cublasHandle_t handle, cublasMath_t *mode),
                HEADRACE_CUBLAS_DONE(*mode = CUBLAS_DEFAULT_MATH))
HEADRACE_CUBLAS(cublasSetWorkspace_v2, (cublasHandle_t handle, void *workspace, size_t bytes),
                HEADRACE_CUBLAS_DONE((void)workspace, (void)bytes))
HEADRACE_CUBLAS(cublasScopy_v2,
                (cublasHandle_t handle, int n, const float *x, int incx, float *y, int incy),
                HEADRACE_CUBLAS_DONE(int i;
                                     for (i = 0; i < n; ++i)
                                         y[(size_t)i * (size_t)incy] = x[(size_t)i * (size_t)incx]))
HEADRACE_CUBLAS(cublasSscal_v2,
                (cublasHandle_t handle, int n, const float *alpha, float *x, int incx),
                HEADRACE_CUBLAS_DONE(int i;
                                     for (i = 0; i < n; ++i) x[(size_t)i * (size_t)incx] *= *alpha))
HEADRACE_CUBLAS(cublasDscal_v2,
                (cublasHandle_t handle, int n, const double *alpha, double *x, int incx),
                HEADRACE_CUBLAS_DONE(int i;
                                     for (i = 0; i < n; ++i) x[(size_t)i * (size_t)incx] *= *alpha))
HEADRACE_CUBLAS(cublasSaxpy_v2,
                (cublasHandle_t handle, int n, const float *alpha, const float *x, int incx,
                 float *y, int incy),
                HEADRACE_CUBLAS_DONE(int i; for (i = 0; i < n; ++i) y[(size_t)i * (size_t)incy] +=
                                            *alpha * x[(size_t)i * (size_t)incx]))
HEADRACE_CUBLAS(cublasSasum_v2,
                (cublasHandle_t handle, int n, const float *x, int incx, float *result),
                HEADRACE_CUBLAS_DONE(int i; *result = 0.0f; for (i = 0; i < n; ++i) {
                    const float one = x[(size_t)i * (size_t)incx];
                    *result += one < 0 ? -one : one;
                }))
HEADRACE_CUBLAS(cublasIsamax_v2,
                (cublasHandle_t handle, int n, const float *x, int incx, int *result),
                HEADRACE_CUBLAS_DONE(*result = headrace_blas_largest(n, x, incx)))
HEADRACE_CUBLAS(cublasSgetrfBatched,
                (cublasHandle_t handle, int n, float *const *list, int lda, int *pivots, int *info,
                 int count),
                return headrace_blas_factors(n, list, lda, pivots, info, count))
HEADRACE_CUBLAS(cublasSgetriBatched,
                (cublasHandle_t handle, int n, const float *const *list, int lda, const int *pivots,
                 float *const *out, int ldc, int *info, int count),
                return headrace_blas_inverses(n, list, lda, pivots, out, ldc, info, count))

#define HEADRACE_CUBLAS_GEMM(kind, type, number)                                                 \
    HEADRACE_CUBLAS(kind,                                                                        \
                    (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, \
                     int n, int k, const type *alpha, const type *a, int lda, const type *b,     \
                     int ldb, const type *beta, type *c, int ldc),                               \
                    return headrace_blas_product(opa, opb, m, n, k, *alpha, a, number, lda, b,   \
                                                 number, ldb, *beta, c, number, ldc))
#define HEADRACE_CUBLAS_STRIDED(kind, type, number)                                                \
    HEADRACE_CUBLAS(                                                                               \
        kind,                                                                                      \
        (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k, \
         const type *alpha, const type *a, int lda, long long step_a, const type *b, int ldb,      \
         long long step_b, const type *beta, type *c, int ldc, long long step_c, int count),       \
        HEADRACE_CUBLAS_DONE(int i; for (i = 0; i < count; ++i)                                    \
                                 headrace_blas_product(opa, opb, m, n, k, *alpha, a + i * step_a,  \
                                                       number, lda, b + i * step_b, number, ldb,   \
                                                       *beta, c + i * step_c, number, ldc)))
#define HEADRACE_CUBLAS_LISTED(kind, type, number)                                                 \
    HEADRACE_CUBLAS(                                                                               \
        kind,                                                                                      \
        (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k, \
         const type *alpha, const type *const a[], int lda, const type *const b[], int ldb,        \
         const type *beta, type *const c[], int ldc, int count),                                   \
        HEADRACE_CUBLAS_DONE(int i; for (i = 0; i < count; ++i) headrace_blas_product(             \
                                 opa, opb, m, n, k, *alpha, a[i], number, lda, b[i], number, ldb,  \
                                 *beta, c[i], number, ldc)))
HEADRACE_CUBLAS_GEMM(cublasSgemm_v2, float, CUDA_R_32F)
HEADRACE_CUBLAS_STRIDED(cublasSgemmStridedBatched, float, CUDA_R_32F)
HEADRACE_CUBLAS_LISTED(cublasSgemmBatched, float, CUDA_R_32F)
#ifdef __cplusplus
HEADRACE_CUBLAS_GEMM(cublasHgemm, __half, CUDA_R_16F)
HEADRACE_CUBLAS_STRIDED(cublasHgemmStridedBatched, __half, CUDA_R_16F)
HEADRACE_CUBLAS_LISTED(cublasHgemmBatched, __half, CUDA_R_16F)
#endif
HEADRACE_CUBLAS(cublasGemmEx,
                (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n,
                 int k, const void *alpha, const void *a, cudaDataType type_a, int lda,
                 const void *b, cudaDataType type_b, int ldb, const void *beta, void *c,
                 cudaDataType type_c, int ldc, cublasComputeType_t compute,
                 cublasGemmAlgo_t algorithm),
                (void)algorithm;
                return headrace_blas_typed("cublasGemmEx of these types", opa, opb, m, n, k, alpha,
                                           a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc,
                                           compute))
HEADRACE_CUBLAS(cublasGemmStridedBatchedEx,
                (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n,
                 int k, const void *alpha, const void *a, cudaDataType type_a, int lda,
                 long long step_a, const void *b, cudaDataType type_b, int ldb, long long step_b,
                 const void *beta, void *c, cudaDataType type_c, int ldc, long long step_c,
                 int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm),
                cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
                int i;
                for (i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
                    status = cublasGemmEx(handle, opa, opb, m, n, k, alpha,
                                          headrace_blas_next(a, type_a, i *step_a), type_a, lda,
                                          headrace_blas_next(b, type_b, i *step_b), type_b, ldb,
                                          beta, (void *)headrace_blas_next(c, type_c, i *step_c),
                                          type_c, ldc, compute, algorithm);
                return status)
HEADRACE_CUBLAS(cublasGemmBatchedEx,
                (cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n,
                 int k, const void *alpha, const void *const a[], cudaDataType type_a, int lda,
                 const void *const b[], cudaDataType type_b, int ldb, const void *beta,
                 void *const c[], cudaDataType type_c, int ldc, int count,
                 cublasComputeType_t compute, cublasGemmAlgo_t algorithm),
                cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
                int i;
                for (i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
                    status = cublasGemmEx(handle, opa, opb, m, n, k, alpha, a[i], type_a, lda, b[i],
                                          type_b, ldb, beta, c[i], type_c, ldc, compute, algorithm);
                return status)
#ifdef HEADRACE_CUDA_RUNTIME_API_H
static inline cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    *handle = (cublasHandle_t)malloc(1);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
#elif defined(__cplusplus)
extern "C" cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
#else
extern cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
#endif

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasScopy cublasScopy_v2
#define cublasSscal cublasSscal_v2
#define cublasDscal cublasDscal_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSasum cublasSasum_v2
#define cublasIsamax cublasIsamax_v2
#define cublasSgemm cublasSgemm_v2

#ifdef __cplusplus /* releases up to 10 name the type that is computed in */
static inline cublasComputeType_t headrace_compute_type(cudaDataType type) {
    return type == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
           : type == CUDA_R_32F ? CUBLAS_COMPUTE_32F
           : type == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                : CUBLAS_COMPUTE_32I;
}
static inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opa,
                                          cublasOperation_t opb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType type_a,
                                          int lda, const void *b, cudaDataType type_b, int ldb,
                                          const void *beta, void *c, cudaDataType type_c, int ldc,
                                          cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmEx(handle, opa, opb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                        type_c, ldc, headrace_compute_type(compute), algorithm);
}
static inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType type_a, int lda, long long step_a, const void *b,
    cudaDataType type_b, int ldb, long long step_b, const void *beta, void *c, cudaDataType type_c,
    int ldc, long long step_c, int count, cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k, alpha, a, type_a, lda, step_a, b,
                                      type_b, ldb, step_b, beta, c, type_c, ldc, step_c, count,
                                      headrace_compute_type(compute), algorithm);
}
static inline cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k,
    const void *alpha, const void *const a[], cudaDataType type_a, int lda, const void *const b[],
    cudaDataType type_b, int ldb, const void *beta, void *const c[], cudaDataType type_c, int ldc,
    int count, cudaDataType compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmBatchedEx(handle, opa, opb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
                               beta, c, type_c, ldc, count, headrace_compute_type(compute),
                               algorithm);
}
#endif

#undef HEADRACE_CUBLAS
#undef HEADRACE_CUBLAS_DONE
#undef HEADRACE_CUBLAS_GEMM
#undef HEADRACE_CUBLAS_STRIDED
#undef HEADRACE_CUBLAS_LISTED

#endif /* HEADRACE_CUBLAS_V2_H */

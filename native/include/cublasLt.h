/* Types and functions of cuBLASLt that plugins name. Handles are made on the host; what describes
 * or computes a product is named and fails. Part of headrace, Apache-2.0. Valid C++11.
 */
#ifndef HEADRACE_CUBLASLT_H
#define HEADRACE_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>
#include "cublas_v2.h"

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque *cublasLtMatmulPreference_t;
typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef enum {
    CUBLASLT_ORDER_COL = 0,
    CUBLASLT_ORDER_ROW = 1,
    CUBLASLT_ORDER_COL32 = 2,
    CUBLASLT_ORDER_COL4_4R2_8C = 3,
    CUBLASLT_ORDER_COL32_2R_4R4 = 4
} cublasLtOrder_t;
typedef enum {
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,
    CUBLASLT_MATRIX_LAYOUT_LD = 4,
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7
} cublasLtMatrixLayoutAttribute_t;
typedef enum {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_TRANSC = 5,
    CUBLASLT_MATMUL_DESC_FILL_MODE = 6,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
} cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_MATH_MODE_MASK = 2, /* up to release 10 */
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
    CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT = 9,
    CUBLASLT_MATMUL_PREF_IMPL_MASK = 12
} cublasLtMatmulPreferenceAttributes_t;
typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36
} cublasLtEpilogue_t;

typedef enum {
    CUBLASLT_ALGO_CONFIG_ID = 0,
    CUBLASLT_ALGO_CONFIG_TILE_ID = 1,
    CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,
    CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3,
    CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING = 4,
    CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION = 5,
    CUBLASLT_ALGO_CONFIG_STAGES_ID = 6
} cublasLtMatmulAlgoConfigAttributes_t;
typedef enum {
    CUBLASLT_ALGO_CAP_SPLITK_SUPPORT = 0,
    CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK = 1,
    CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT = 2,
    CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT = 3,
    CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT = 4,
    CUBLASLT_ALGO_CAP_UPLO_SUPPORT = 5,
    CUBLASLT_ALGO_CAP_TILE_IDS = 6,
    CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX = 7,
    CUBLASLT_ALGO_CAP_MATHMODE_IMPL = 8, /* up to release 10 */
    CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER = 10,
    CUBLASLT_ALGO_CAP_POINTER_MODE_MASK = 11,
    CUBLASLT_ALGO_CAP_EPILOGUE_MASK = 12,
    CUBLASLT_ALGO_CAP_STAGES_IDS = 13,
    CUBLASLT_ALGO_CAP_LD_NEGATIVE = 14,
    CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS = 15
} cublasLtMatmulAlgoCapAttributes_t;
typedef enum {
    CUBLASLT_REDUCTION_SCHEME_NONE = 0,
    CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
    CUBLASLT_REDUCTION_SCHEME_MASK = 7
} cublasLtReductionScheme_t;
typedef enum { CUBLASLT_MATMUL_TILE_UNDEFINED = 0 } cublasLtMatmulTile_t;
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA 1ull
#define CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA 2ull

#ifdef HEADRACE_CUDA_RUNTIME_API_H
static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = (cublasLtHandle_t)malloc(1);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    free((void *)handle);
    return CUBLAS_STATUS_SUCCESS;
}
#define HEADRACE_CUBLASLT(name, ...)                 \
    static inline cublasStatus_t name(__VA_ARGS__) { \
        headrace_not_computed(#name);                \
        return CUBLAS_STATUS_NOT_SUPPORTED;          \
    }
#else /* beside CUDA's own runtime cuBLASLt itself is linked */
#define HEADRACE_CUBLASLT(name, ...) extern "C" cublasStatus_t name(__VA_ARGS__);
HEADRACE_CUBLASLT(cublasLtCreate, cublasLtHandle_t *)
HEADRACE_CUBLASLT(cublasLtDestroy, cublasLtHandle_t)
#endif

HEADRACE_CUBLASLT(cublasLtMatmulDescCreate, cublasLtMatmulDesc_t *, cublasComputeType_t,
                  cudaDataType)
HEADRACE_CUBLASLT(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
HEADRACE_CUBLASLT(cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t,
                  cublasLtMatmulDescAttributes_t, const void *, size_t)
HEADRACE_CUBLASLT(cublasLtMatrixLayoutCreate, cublasLtMatrixLayout_t *, cudaDataType, uint64_t,
                  uint64_t, int64_t)
HEADRACE_CUBLASLT(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
HEADRACE_CUBLASLT(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t,
                  cublasLtMatrixLayoutAttribute_t, const void *, size_t)
HEADRACE_CUBLASLT(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreference_t *)
HEADRACE_CUBLASLT(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)
HEADRACE_CUBLASLT(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t,
                  cublasLtMatmulPreferenceAttributes_t, const void *, size_t)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoGetHeuristic, cublasLtHandle_t, cublasLtMatmulDesc_t,
                  cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                  cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                  cublasLtMatmulHeuristicResult_t *, int *)
HEADRACE_CUBLASLT(cublasLtMatmul, cublasLtHandle_t, cublasLtMatmulDesc_t, const void *,
                  const void *, cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t,
                  const void *, const void *, cublasLtMatrixLayout_t, void *,
                  cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t,
                  cudaStream_t)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoGetIds, cublasLtHandle_t, cublasComputeType_t, cudaDataType,
                  cudaDataType, cudaDataType, cudaDataType, cudaDataType, int, int *, int *)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoInit, cublasLtHandle_t, cublasComputeType_t, cudaDataType,
                  cudaDataType, cudaDataType, cudaDataType, cudaDataType, int,
                  cublasLtMatmulAlgo_t *)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoCheck, cublasLtHandle_t, cublasLtMatmulDesc_t,
                  cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                  cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *,
                  cublasLtMatmulHeuristicResult_t *)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoCapGetAttribute, const cublasLtMatmulAlgo_t *,
                  cublasLtMatmulAlgoCapAttributes_t, void *, size_t, size_t *)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoConfigGetAttribute, const cublasLtMatmulAlgo_t *,
                  cublasLtMatmulAlgoConfigAttributes_t, void *, size_t, size_t *)
HEADRACE_CUBLASLT(cublasLtMatmulAlgoConfigSetAttribute, cublasLtMatmulAlgo_t *,
                  cublasLtMatmulAlgoConfigAttributes_t, const void *, size_t)
/* Releases up to 10 name the type that is computed in, which is that of the factors, too. */
static inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor,
                                                      cudaDataType type) {
    return cublasLtMatmulDescCreate(descriptor, headrace_compute_type(type), type);
}
static inline cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cudaDataType compute,
                                                      cudaDataType scale, cudaDataType a,
                                                      cudaDataType b, cudaDataType c,
                                                      cudaDataType d, int most, int *ids,
                                                      int *count) {
    return cublasLtMatmulAlgoGetIds(handle, headrace_compute_type(compute), scale, a, b, c, d, most,
                                    ids, count);
}
static inline cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cudaDataType compute,
                                                    cudaDataType scale, cudaDataType a,
                                                    cudaDataType b, cudaDataType c, cudaDataType d,
                                                    int id, cublasLtMatmulAlgo_t *algorithm) {
    return cublasLtMatmulAlgoInit(handle, headrace_compute_type(compute), scale, a, b, c, d, id,
                                  algorithm);
}

#undef HEADRACE_CUBLASLT

#endif /* HEADRACE_CUBLASLT_H */

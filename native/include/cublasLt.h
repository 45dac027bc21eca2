/* Types and functions of cuBLASLt that plugins name. Handles are made on the host; what describes
 * or computes a product is named and fails. Part of headrace, Apache-2.0. Valid C++11.
 */
#ifndef HEADRACE_CUBLASLT_H
#define HEADRACE_CUBLASLT_H

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
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
} cublasLtMatmulPreferenceAttributes_t;
typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    CUBLASLT_EPILOGUE_RELU = 2,
    CUBLASLT_EPILOGUE_BIAS = 4,
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32,
    CUBLASLT_EPILOGUE_GELU_BIAS = 36
} cublasLtEpilogue_t;

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

#undef HEADRACE_CUBLASLT

#endif /* HEADRACE_CUBLASLT_H */

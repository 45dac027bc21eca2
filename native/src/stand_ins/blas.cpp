// What stands in for cuBLAS: the calls that plugins make, on host memory.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "stand_ins/arithmetic.h"
#include "stand_ins/stand_in.h"

namespace headrace::stand_ins {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;  // cublasStatus_t
constexpr int kFloat = 0, kHalf = 2;                                // cudaDataType
using Step = long long;                                             // between matrices

int copy(void *, int n, const float *x, int step_x, float *y, int step_y) {
    for (int i = 0; i < n; ++i) y[std::ptrdiff_t{i} * step_y] = x[std::ptrdiff_t{i} * step_x];
    return kSuccess;
}

int scale(void *, int n, const float *alpha, float *x, int step) {
    for (int i = 0; i < n; ++i) x[std::ptrdiff_t{i} * step] *= *alpha;
    return kSuccess;
}

int add_scaled(void *, int n, const float *alpha, const float *x, int step_x, float *y,
               int step_y) {
    for (int i = 0; i < n; ++i)
        y[std::ptrdiff_t{i} * step_y] += *alpha * x[std::ptrdiff_t{i} * step_x];
    return kSuccess;
}

int dot(void *, int n, const float *x, int step_x, const float *y, int step_y, float *result) {
    float sum = 0.0F;
    for (int i = 0; i < n; ++i)
        sum += x[std::ptrdiff_t{i} * step_x] * y[std::ptrdiff_t{i} * step_y];
    *result = sum;
    return kSuccess;
}

// Columns lie one behind the other; an operation of 0 takes a matrix as it is.
struct Sizes {
    int op_a, op_b, m, n, k, lda, ldb, ldc;
};

template <typename T>
const T &element(const T *matrix, int op, int row, int column, int leading) {
    return op ? matrix[column + std::ptrdiff_t{row} * leading]
              : matrix[row + std::ptrdiff_t{column} * leading];
}

template <typename In, typename Out>
int product(const Sizes &s, float alpha, const In *a, const In *b, float beta, Out *c) {
    if (s.m < 0 || s.n < 0 || s.k < 0) return kInvalidValue;
    std::vector<float> sums(static_cast<size_t>(s.m));
    for (int column = 0; column < s.n; ++column) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (int i = 0; i < s.k; ++i) {
            const float factor = element(b, s.op_b, i, column, s.ldb);
            for (int row = 0; row < s.m; ++row)
                sums[static_cast<size_t>(row)] +=
                    static_cast<float>(element(a, s.op_a, row, i, s.lda)) * factor;
        }
        for (int row = 0; row < s.m; ++row)
            blend(c[row + std::ptrdiff_t{column} * s.ldc], alpha, sums[static_cast<size_t>(row)],
                  beta);
    }
    return kSuccess;
}

template <typename T>
int multiply(void *, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a, int lda,
             const T *b, int ldb, const T *beta, T *c, int ldc) {
    if (!alpha || !beta) return kInvalidValue;
    return product({op_a, op_b, m, n, k, lda, ldb, ldc}, *alpha, a, b, *beta, c);
}

template <typename T>
int multiply_many(void *, int op_a, int op_b, int m, int n, int k, const T *alpha, const T *a,
                  int lda, Step step_a, const T *b, int ldb, Step step_b, const T *beta, T *c,
                  int ldc, Step step_c, int count) {
    if (!alpha || !beta) return kInvalidValue;
    int status = kSuccess;
    for (int i = 0; i < count && !status; ++i)
        status = product({op_a, op_b, m, n, k, lda, ldb, ldc}, *alpha, a + i * step_a,
                         b + i * step_b, *beta, c + i * step_c);
    return status;
}

template <typename T>
int multiply_listed(void *, int op_a, int op_b, int m, int n, int k, const T *alpha,
                    const T *const *a, int lda, const T *const *b, int ldb, const T *beta,
                    T *const *c, int ldc, int count) {
    if (!alpha || !beta || (count > 0 && (!a || !b || !c))) return kInvalidValue;
    int status = kSuccess;
    for (int i = 0; i < count && !status; ++i)
        status = product({op_a, op_b, m, n, k, lda, ldb, ldc}, *alpha, a[i], b[i], *beta, c[i]);
    return status;
}

// Of cublasGemmEx: the types are numbers, and that of alpha and beta depends on how it computes.
int multiply_typed(void *, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int type_a, int lda, Step step_a, const void *b, int type_b,
                   int ldb, Step step_b, const void *beta, void *c, int type_c, int ldc,
                   Step step_c, int count, int compute, int) {
    if (!alpha || !beta) return kInvalidValue;
    // cublasComputeType_t; up to release 10 a cudaDataType
    constexpr int kInHalf[] = {2, 64, 65}, kInFloat[] = {0, 68, 69, 74, 75, 77};
    const auto is_among = [compute](const auto &some) {
        return std::find(std::begin(some), std::end(some), compute) != std::end(some);
    };
    const bool halves = is_among(kInHalf);
    const bool inputs = type_a == type_b && (type_a == kFloat || type_a == kHalf);
    if ((!halves && !is_among(kInFloat)) || !inputs || (type_c != kFloat && type_c != kHalf)) {
        not_done("cublasGemmEx with types other than FP32 and FP16");
        return kNotSupported;
    }
    const auto number = [halves](const void *at) {
        return halves ? float{*static_cast<const Half *>(at)} : *static_cast<const float *>(at);
    };
    const auto all = [&](const auto *from_a, const auto *from_b, auto *to) {
        int status = kSuccess;
        for (int i = 0; i < count && !status; ++i)
            status =
                product({op_a, op_b, m, n, k, lda, ldb, ldc}, number(alpha), from_a + i * step_a,
                        from_b + i * step_b, number(beta), to + i * step_c);
        return status;
    };
    const auto into = [&](auto *to) {
        if (type_a == kFloat)
            return all(static_cast<const float *>(a), static_cast<const float *>(b), to);
        return all(static_cast<const Half *>(a), static_cast<const Half *>(b), to);
    };
    return type_c == kFloat ? into(static_cast<float *>(c)) : into(static_cast<Half *>(c));
}

int multiply_one_typed(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                       const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                       const void *beta, void *c, int type_c, int ldc, int compute, int way) {
    return multiply_typed(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0,
                          beta, c, type_c, ldc, 0, 1, compute, way);
}

int multiply_vector(void *, int op, int m, int n, const float *alpha, const float *a, int lda,
                    const float *x, int step_x, const float *beta, float *y, int step_y) {
    if (!alpha || !beta) return kInvalidValue;
    if (step_x < 1 || step_y < 1) {
        not_done("cublasSgemv_v2 with a step below 1");
        return kNotSupported;
    }
    for (int row = 0; row < (op ? n : m); ++row) {
        float sum = 0.0F;
        for (int i = 0; i < (op ? m : n); ++i)
            sum += element(a, op, row, i, lda) * x[std::ptrdiff_t{i} * step_x];
        blend(y[std::ptrdiff_t{row} * step_y], *alpha, sum, *beta);
    }
    return kSuccess;
}

// alpha * a + beta * b: how matrices are transposed.
int add_matrices(void *, int op_a, int op_b, int m, int n, const float *alpha, const float *a,
                 int lda, const float *beta, const float *b, int ldb, float *c, int ldc) {
    if (!alpha || !beta) return kInvalidValue;
    for (int column = 0; column < n; ++column)
        for (int row = 0; row < m; ++row) {
            float sum = 0.0F;
            if (*alpha != 0.0F) sum += *alpha * element(a, op_a, row, column, lda);
            if (*beta != 0.0F) sum += *beta * element(b, op_b, row, column, ldb);
            c[row + std::ptrdiff_t{column} * ldc] = sum;
        }
    return kSuccess;
}

int done() { return kSuccess; }

}  // namespace

void *blas_stand_in(const std::string &function) {
#define BLAS(name, body)                        \
    {                                           \
        name, reinterpret_cast<void *>(&(body)) \
    }
    static const Table table = {
        BLAS("cublasScopy_v2", copy),
        BLAS("cublasSscal_v2", scale),
        BLAS("cublasSaxpy_v2", add_scaled),
        BLAS("cublasSdot_v2", dot),
        BLAS("cublasSgeam", add_matrices),
        BLAS("cublasSgemv_v2", multiply_vector),
        BLAS("cublasSgemm_v2", multiply<float>),
        BLAS("cublasHgemm", multiply<Half>),
        BLAS("cublasSgemmBatched", multiply_listed<float>),
        BLAS("cublasHgemmBatched", multiply_listed<Half>),
        BLAS("cublasSgemmStridedBatched", multiply_many<float>),
        BLAS("cublasHgemmStridedBatched", multiply_many<Half>),
        BLAS("cublasGemmEx", multiply_one_typed),
        BLAS("cublasGemmStridedBatchedEx", multiply_typed),
        BLAS("cublasSetPointerMode_v2", done),
        BLAS("cublasSetWorkspace_v2", done),
    };
#undef BLAS
    return found_in(table, function);
}

}  // namespace headrace::stand_ins

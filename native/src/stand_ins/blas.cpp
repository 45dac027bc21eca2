// What stands in for cuBLAS: the few calls that plugins make, on host memory.

#include <cstddef>
#include <cstring>
#include <map>

#include "stand_ins/stand_in.h"

namespace headrace::stand_ins {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 7;  // cublasStatus_t

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
int multiply(void *, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
             int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
    if (m < 0 || n < 0 || k < 0 || !alpha || !beta) return kInvalidValue;
    const auto at = [](int row, int column, int leading) {
        return std::ptrdiff_t{row} + std::ptrdiff_t{column} * leading;
    };
    for (int column = 0; column < n; ++column) {
        for (int row = 0; row < m; ++row) {
            float sum = 0.0F;
            for (int i = 0; i < k; ++i)
                sum += a[op_a ? at(i, row, lda) : at(row, i, lda)] *
                       b[op_b ? at(column, i, ldb) : at(i, column, ldb)];
            float &to = c[at(row, column, ldc)];
            to = *alpha * sum + (*beta == 0.0F ? 0.0F : *beta * to);
        }
    }
    return kSuccess;
}

int multiply_vector(void *handle, int op, int m, int n, const float *alpha, const float *a, int lda,
                    const float *x, int step_x, const float *beta, float *y, int step_y) {
    if (step_x != 1 || step_y != 1) return kInvalidValue;
    const int rows = op ? n : m, inner = op ? m : n;
    return multiply(handle, op, 0, rows, 1, inner, alpha, a, lda, x, inner, beta, y, rows);
}

int multiply_many(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                  const float *a, int lda, long long step_a, const float *b, int ldb,
                  long long step_b, const float *beta, float *c, int ldc, long long step_c,
                  int count) {
    for (int i = 0; i < count; ++i) {
        const int status = multiply(handle, op_a, op_b, m, n, k, alpha, a + i * step_a, lda,
                                    b + i * step_b, ldb, beta, c + i * step_c, ldc);
        if (status) return status;
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
    static const std::map<std::string, void *> table = {
        BLAS("cublasScopy_v2", copy),
        BLAS("cublasSscal_v2", scale),
        BLAS("cublasSaxpy_v2", add_scaled),
        BLAS("cublasSdot_v2", dot),
        BLAS("cublasSgemm_v2", multiply),
        BLAS("cublasSgemv_v2", multiply_vector),
        BLAS("cublasSgemmStridedBatched", multiply_many),
        BLAS("cublasSetPointerMode_v2", done),
    };
#undef BLAS
    const auto found = table.find(function);
    return found == table.end() ? nullptr : found->second;
}

}  // namespace headrace::stand_ins

// Row kernels for x86 processors with AVX2, chosen at run time.
#include "preprocess_rows.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define NORIA_TARGET __attribute__((target("avx2")))
#include "preprocess_rows_impl.h"

const RowKernels *avx2_row_kernels() {
    static const bool usable = __builtin_cpu_supports("avx2");
    static const RowKernels kernels = plain_kernels();
    return usable ? &kernels : nullptr;
}

#else

const RowKernels *avx2_row_kernels() { return nullptr; }

#endif

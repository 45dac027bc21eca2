// Row kernels in plain C++, for any processor.
#define HEADRACE_TARGET
#include "preprocess/rows_impl.h"

namespace headrace::preprocess {

const RowKernels &generic_row_kernels() {
    static const RowKernels kernels = plain_kernels();
    return kernels;
}

#if !defined(__x86_64__) && !defined(__aarch64__)
const RowKernels *vector_row_kernels() { return nullptr; }
#endif

}  // namespace headrace::preprocess

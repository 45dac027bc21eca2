// Row kernels in plain C++, for any processor.
#define HEADRACE_TARGET
#include "preprocess/rows_impl.h"

namespace headrace::preprocess {

const RowKernels &generic_row_kernels() {
    static const RowKernels kernels = plain_kernels();
    return kernels;
}

}  // namespace headrace::preprocess

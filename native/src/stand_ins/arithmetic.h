// What the functions that stand in for cuBLAS and cuDNN have in common: FP32 and FP16 in memory of
// the host, computed in FP32.
#pragma once

#include <cuda_fp16.h>

#include <map>
#include <string>

namespace headrace::stand_ins {

using Half = __half;
using Table = std::map<std::string, void *>;

inline void *found_in(const Table &table, const std::string &function) {
    const auto found = table.find(function);
    return found == table.end() ? nullptr : found->second;
}

// alpha * value + beta * to; without beta what is there is not read: it may be NaN.
template <typename T>
void blend(T &to, float alpha, float value, float beta) {
    to = alpha * value + (beta == 0.0F ? 0.0F : beta * static_cast<float>(to));
}

}  // namespace headrace::stand_ins

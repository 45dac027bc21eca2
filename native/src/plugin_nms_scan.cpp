// Looking over many scores at once.
#include "plugin_nms.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")  // lets comparisons become masks; values are unchanged
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define NORIA_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define NORIA_WIDE
#endif

namespace noria::plugin_nms {

NORIA_WIDE bool any_at_least(const float *scores, float threshold) {
    int found = 0;
    for (std::size_t i = 0; i < kScan; ++i) found |= scores[i] >= threshold;
    return found != 0;
}

}  // namespace noria::plugin_nms

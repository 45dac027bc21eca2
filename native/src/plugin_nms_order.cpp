// Finding candidates and putting them in order.
#include <algorithm>

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
namespace {

constexpr std::size_t kPiece = 256;

}  // namespace

NORIA_WIDE bool any_at_least(const float *scores, float threshold) {
    int found = 0;
    for (std::size_t i = 0; i < kScan; ++i) found |= scores[i] >= threshold;
    return found != 0;
}

void Ordered::sort_piece() {
    const auto from = list_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    sorted_ = std::min(list_.size(), sorted_ + std::max(kPiece, sorted_));
    const auto to = list_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    if (to != list_.end()) std::nth_element(from, to, list_.end(), before);
    std::sort(from, to, before);
}

void Ordered::restart(std::size_t at) {
    sorted_ = 0;
    while (sorted_ < at) sort_piece();
    at_ = at;
}

}  // namespace noria::plugin_nms

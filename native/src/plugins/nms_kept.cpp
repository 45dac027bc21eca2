// Loops that vectorise: overlap with the boxes kept so far in blocks, many scores at once.
#include <algorithm>

#include "plugins/nms.h"

#include "core/vectorise.h"  // last: see there

namespace headrace::plugins {
namespace {

constexpr std::size_t kBlock = 32;

struct Columns {
    const float *a0, *a1, *b0, *b1, *area;
    const std::int32_t *class_id;
};

// How many of `n` kept boxes suppress `box`.
HEADRACE_WIDE int count(const Columns &kept, std::size_t n, const Box &box, float area, float plus,
                     const Rule &rule, std::int32_t class_id) {
    int suppressors = 0;
    const float threshold = rule.threshold;
    const int inclusive = rule.inclusive, any_class = !rule.by_class;
    for (std::size_t i = 0; i < n; ++i) {
        const float s0 = kept.a0[i] > box.a0 ? kept.a0[i] : box.a0;
        const float s1 = kept.a1[i] > box.a1 ? kept.a1[i] : box.a1;
        const float e0 = kept.b0[i] < box.b0 ? kept.b0[i] : box.b0;
        const float e1 = kept.b1[i] < box.b1 ? kept.b1[i] : box.b1;
        const float d0 = e0 - s0, d1 = e1 - s1;
        const float common = (d0 + plus) * (d1 + plus);
        const float inter = d0 >= 0.0f ? (d1 >= 0.0f ? common : 0.0f) : 0.0f;
        const float total = area + kept.area[i] - inter;
        const float ratio = inter / total;
        const float iou = total == 0.0f ? 0.0f : ratio;
        const int over = (iou > threshold) | (inclusive & (iou == threshold));
        suppressors += over & (any_class | (kept.class_id[i] == class_id));
    }
    return suppressors;
}

}  // namespace

Box Box::ordered() const {
    return {a0 < b0 ? a0 : b0, a1 < b1 ? a1 : b1, a0 < b0 ? b0 : a0, a1 < b1 ? b1 : a1};
}

void Kept::clear() {
    for (auto *v : {&a0_, &a1_, &b0_, &b1_, &area_}) v->clear();
    class_.clear();
}

float Kept::area(const Box &box) const {
    const float plus = rule_.plus == kNone ? 0.0f : 1.0f;
    return (box.b0 - box.a0 + plus) * (box.b1 - box.a1 + plus);
}

bool Kept::suppresses(const Box &box, std::int32_t class_id) const {
    const float own = area(box), plus = rule_.plus == kAreasAndOverlap ? 1.0f : 0.0f;
    for (std::size_t from = 0; from < area_.size(); from += kBlock) {
        const Columns block{&a0_[from], &a1_[from], &b0_[from], &b1_[from], &area_[from], &class_[from]};
        const std::size_t n = std::min(kBlock, area_.size() - from);
        if (count(block, n, box, own, plus, rule_, class_id) > 0) return true;
    }
    return false;
}

void Kept::add(const Box &box, std::int32_t class_id) {
    a0_.push_back(box.a0);
    a1_.push_back(box.a1);
    b0_.push_back(box.b0);
    b1_.push_back(box.b1);
    area_.push_back(area(box));
    class_.push_back(class_id);
}

HEADRACE_WIDE bool any_at_least(const float *scores, float threshold) {
    int found = 0;
    for (std::size_t i = 0; i < kScan; ++i) found |= scores[i] >= threshold;
    return found != 0;
}

}  // namespace headrace::plugins

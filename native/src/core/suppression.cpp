// Loops that vectorise: overlap with the boxes kept so far in blocks, many scores at once.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/vectorise.h"

// Behind the pragma, or iou_of is a call in the loop; the line between them keeps the order.
#include "core/suppression.h"

namespace headrace::core {
namespace {

struct Columns {
    const float *a0, *a1, *b0, *b1, *area;
    const std::int32_t *class_id;
};

// What two edges share; 0 if they do not meet. Edges may be reversed, as the original takes them.
inline float common(float a, float a_end, float b, float b_end) {
    const bool swap = a > b;
    const float end = swap ? b_end : a_end;
    const float start = swap ? a : b;
    const float other = swap ? a_end : b_end;
    const float length = (other < end ? other : end) - start;
    return end < start ? 0.0f : length;
}

// Two loops: the choices that reversed edges need take half as much time again.
HEADRACE_WIDE int count_of_any(const Columns &kept, std::size_t n, const Box &box, float area,
                               float threshold) {
    int suppressors = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const float shared = common(box.a0, box.b0, kept.a0[i], kept.b0[i]) *
                             common(box.a1, box.b1, kept.a1[i], kept.b1[i]);
        suppressors += iou_of(shared, area, kept.area[i]) <= threshold ? 0 : 1;
    }
    return suppressors;
}

HEADRACE_WIDE int count_of_ordered(const Columns &kept, std::size_t n, const Box &box, float area,
                                   const Suppression &rule, std::int32_t class_id) {
    int suppressors = 0;
    const float threshold = rule.threshold, plus = rule.plus_overlap;
    const int inclusive = rule.inclusive, any_class = !rule.by_class;
    for (std::size_t i = 0; i < n; ++i) {
        const float s0 = kept.a0[i] > box.a0 ? kept.a0[i] : box.a0;
        const float s1 = kept.a1[i] > box.a1 ? kept.a1[i] : box.a1;
        const float e0 = kept.b0[i] < box.b0 ? kept.b0[i] : box.b0;
        const float e1 = kept.b1[i] < box.b1 ? kept.b1[i] : box.b1;
        const float d0 = e0 - s0, d1 = e1 - s1;
        const float both = (d0 + plus) * (d1 + plus);
        const float shared = d0 >= 0.0f ? (d1 >= 0.0f ? both : 0.0f) : 0.0f;
        const float iou = iou_of(shared, area, kept.area[i]);
        const int over = (iou > threshold) | (inclusive & (iou == threshold));
        suppressors += over & (any_class | (kept.class_id[i] == class_id));
    }
    return suppressors;
}

}  // namespace

void KeptBoxes::restart(const Suppression &rule) {
    rule_ = rule;
    for (auto *v : {&a0_, &a1_, &b0_, &b1_, &area_}) v->clear();
    class_.clear();
}

int KeptBoxes::suppressors(std::size_t from, std::size_t n, const Box &box, float area,
                           std::int32_t class_id) const {
    const Columns block{&a0_[from], &a1_[from],   &b0_[from],
                        &b1_[from], &area_[from], &class_[from]};
    return rule_.any_edges ? count_of_any(block, n, box, area, rule_.threshold)
                           : count_of_ordered(block, n, box, area, rule_, class_id);
}

void KeptBoxes::add(const Box &box, float area, std::int32_t class_id) {
    a0_.push_back(box.a0);
    a1_.push_back(box.a1);
    b0_.push_back(box.b0);
    b1_.push_back(box.b1);
    area_.push_back(area);
    class_.push_back(class_id);
}

bool KeptBoxes::take(const Box &box, std::int32_t class_id) {
    const float plus = rule_.plus_area;
    const float area = (box.b0 - box.a0 + plus) * (box.b1 - box.a1 + plus);
    for (std::size_t from = 0; from < size(); from += kBlock)
        if (suppressors(from, std::min(kBlock, size() - from), box, area, class_id) > 0)
            return false;
    add(box, area, class_id);
    return true;
}

HEADRACE_WIDE bool any_at_least(const float *scores, float threshold) {
    int found = 0;
    for (std::size_t i = 0; i < kScan; ++i) found |= scores[i] >= threshold;
    return found != 0;
}

}  // namespace headrace::core

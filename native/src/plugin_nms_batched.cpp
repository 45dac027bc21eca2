// BatchedNMS and the suppression of DetectionOutput: class by class, then the best of all.
//
// All classes go through one list, best first: what a class keeps depends on that class alone, and
// the best of all that is kept are the first that are kept.
// Source: standard-plugins spec 3.4, 3.5.
#include <cmath>
#include <limits>

#include "plugin_nms.h"

namespace noria::plugin_nms {
namespace {

// Scores above the threshold; of equals the lower class goes first, then the lower box, so the
// index is class * n + box.
void candidates_of(const Heads &heads, const BatchedRule &rule, std::vector<Candidate> &list) {
    list.clear();
    if (rule.score_threshold == std::numeric_limits<float>::infinity()) return;
    // at or above the next number is above this one
    const float least = std::nextafter(rule.score_threshold, std::numeric_limits<float>::infinity());
    const std::size_t total = heads.n * heads.classes;
    auto take = [&](std::size_t i) {
        if (!(heads.scores[i] >= least)) return;
        const std::size_t row = i / heads.classes, c = i % heads.classes;
        if (static_cast<std::int64_t>(c) != rule.background)
            list.push_back({heads.scores[i], static_cast<std::uint32_t>(c * heads.n + row)});
    };
    std::size_t i = 0;
    for (; i + kScan <= total; i += kScan)
        if (any_at_least(heads.scores + i, least))
            for (std::size_t j = i; j < i + kScan; ++j) take(j);
    for (; i < total; ++i) take(i);
}

}  // namespace

std::int32_t batched(const Heads &heads, const BatchedRule &rule, const Out &out) {
    thread_local std::vector<Candidate> list;
    candidates_of(heads, rule, list);
    Ordered ordered(list);
    std::vector<Kept> kept(heads.classes, Kept({rule.iou_threshold, false, rule.plus, false}));
    std::vector<std::int32_t> seen(heads.classes);
    std::int32_t count = 0;
    while (count < rule.keep) {
        const Candidate *next = ordered.next();
        if (!next) break;
        const std::size_t c = next->index / heads.n, row = next->index % heads.n;
        if (seen[c]++ >= rule.top) continue;
        const float *p = heads.boxes + 4 * (heads.sets == 1 ? row : row * heads.sets + c);
        const Box box = Box{p[0], p[1], p[2], p[3]}.ordered();
        if (kept[c].suppresses(box, 0)) continue;
        kept[c].add(box, 0);
        for (int k = 0; k < 4; ++k) {
            const float x = p[k];
            out.boxes[4 * count + k] = rule.clip ? (x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x)) : x;
        }
        out.scores[count] = next->score;
        out.classes[count] = static_cast<std::int32_t>(c);
        out.rows[count] = static_cast<std::int32_t>(row);
        ++count;
    }
    return count;
}

}  // namespace noria::plugin_nms

// BatchedNMS and the suppression of DetectionOutput: class by class, then the best of all.
//
// All classes go through one list, best first: what a class keeps depends on that class alone, and
// the best of all that is kept are the first that are kept.
// Source: standard-plugins spec 3.4, 3.5.
#include "plugin_nms.h"

namespace noria::plugin_nms {

std::int32_t batched(const Heads &heads, const BatchedRule &rule, const Out &out) {
    thread_local std::vector<Candidate> list;
    const Scores scores{heads.scores,     heads.n,                     heads.classes,
                        rule.background, above(rule.score_threshold), true};
    Best best(scores, rule.keep, scores.total(), list);
    std::vector<Kept> kept(heads.classes, Kept({rule.iou_threshold, false, rule.plus, false}));
    std::vector<std::int32_t> seen(heads.classes);
    std::int32_t count = 0;
    while (count < rule.keep) {
        const Candidate *next = best.next();
        // where denormal numbers count as 0, the next number above 0 lets 0 through
        if (!next || !(next->score > rule.score_threshold)) break;
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

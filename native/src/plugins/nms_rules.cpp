// The EfficientNMS family: all classes in one list, the best 5,000 of it, then greedy.
// BatchedNMS and the suppression of DetectionOutput: class by class, then the best of all. All
// classes go through one list, best first: what a class keeps depends on that class alone, and the
// best of all that is kept are the first that are kept.
// Source: standard-plugins spec 3.1 to 3.5.
#include <cmath>

#include "plugins/nms.h"

namespace headrace::plugins {
namespace {

constexpr std::size_t kCandidates = 5000;

Box corners(const Box &c) {
    return {c.a0 - c.b0 * 0.5f, c.a1 - c.b1 * 0.5f, c.a0 + c.b0 * 0.5f, c.a1 + c.b1 * 0.5f};
}

Box box_at(const float *p) { return {p[0], p[1], p[2], p[3]}; }

Box decode(const float *code, const float *anchor, bool centres) {
    const Box box = box_at(code);
    if (!anchor) return centres ? corners(box) : box;
    const Box base = box_at(anchor);
    if (centres)
        return corners({box.a0 * base.b0 + base.a0, box.a1 * base.b1 + base.a1,
                        base.b0 * std::exp(box.b0), base.b1 * std::exp(box.b1)});
    const Box x = box.ordered(), y = base.ordered();
    return {x.a0 + y.a0, x.a1 + y.a1, x.b0 + y.b0, x.b1 + y.b1};
}

float unit(float x) { return x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x); }

}  // namespace

std::int32_t efficient(const Heads &heads, const float *anchors, const EfficientRule &rule,
                       const Out &out) {
    thread_local std::vector<Candidate> list;
    const Scores scores{heads.scores,         heads.n, heads.classes, rule.background,
                        rule.score_threshold, false};
    Best best(scores, rule.keep, kCandidates, list);
    KeptBoxes kept(suppression(rule.iou_threshold, true, kNone, !rule.agnostic));
    std::vector<std::int32_t> written(rule.per_class > 0 ? heads.classes : 0);
    std::int32_t count = 0;
    while (count < rule.keep) {
        const Candidate *next = best.next();
        if (!next) break;
        const Candidate candidate = *next;
        const std::size_t row = candidate.index / heads.classes;
        const std::size_t class_id = candidate.index % heads.classes;
        const auto label = static_cast<std::int32_t>(class_id);
        const std::size_t set = heads.sets == 1 ? row : row * heads.sets + class_id;
        const Box box =
            decode(heads.boxes + 4 * set, anchors ? anchors + 4 * row : nullptr, rule.centres);
        if (!kept.take(box.ordered(), label)) continue;
        // a class that is full goes on suppressing
        if (rule.per_class > 0 && written[class_id]++ >= rule.per_class) continue;
        const float values[] = {box.a0, box.a1, box.b0, box.b1};
        for (int k = 0; k < 4; ++k)
            out.boxes[4 * count + k] = rule.clip ? unit(values[k]) : values[k];
        out.scores[count] =
            rule.sigmoid ? 1.0f / (1.0f + std::exp(-candidate.score)) : candidate.score;
        out.classes[count] = label;
        out.rows[count] = static_cast<std::int32_t>(row);
        ++count;
    }
    return count;
}

std::int32_t batched(const Heads &heads, const BatchedRule &rule, const Out &out) {
    thread_local std::vector<Candidate> list;
    const Scores scores{
        heads.scores, heads.n, heads.classes, rule.background, above(rule.score_threshold), true};
    Best best(scores, rule.keep, scores.total(), list);
    const KeptBoxes none(suppression(rule.iou_threshold, false, rule.plus, false));
    std::vector<KeptBoxes> kept(heads.classes, none);
    std::vector<std::int32_t> seen(heads.classes);
    std::int32_t count = 0;
    while (count < rule.keep) {
        const Candidate *next = best.next();
        // where denormal numbers count as 0, the next number above 0 lets 0 through
        if (!next || !(next->score > rule.score_threshold)) break;
        const std::size_t c = next->index / heads.n, row = next->index % heads.n;
        if (seen[c]++ >= rule.top) continue;
        const float *p = heads.boxes + 4 * (heads.sets == 1 ? row : row * heads.sets + c);
        if (!kept[c].take(box_at(p).ordered(), 0)) continue;
        for (int k = 0; k < 4; ++k) out.boxes[4 * count + k] = rule.clip ? unit(p[k]) : p[k];
        out.scores[count] = next->score;
        out.classes[count] = static_cast<std::int32_t>(c);
        out.rows[count] = static_cast<std::int32_t>(row);
        ++count;
    }
    return count;
}

}  // namespace headrace::plugins

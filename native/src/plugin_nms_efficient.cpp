// The EfficientNMS family: all classes in one list, the best 5,000 of it, then greedy.
// Source: standard-plugins spec 3.1 to 3.3.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "plugin_nms.h"

namespace noria::plugin_nms {
namespace {

constexpr std::size_t kCandidates = 5000;
constexpr std::size_t kFew = 512;      // so many are mostly enough to fill a hundred rows
constexpr std::size_t kSampled = 256;  // blocks of kScan scores that a threshold is judged by

// The least score that goes before `score` at a later place; none goes before infinity.
float above(float score) {
    constexpr float most = std::numeric_limits<float>::infinity();
    return score == most ? std::numeric_limits<float>::quiet_NaN() : std::nextafter(score, most);
}

// Whether score `i`, which is over the threshold, is of a class to be looked at.
bool counts(std::size_t i, const Heads &heads, const EfficientRule &rule) {
    return rule.background < 0 || i % heads.classes != static_cast<std::size_t>(rule.background);
}

// A threshold that about `limit` scores or somewhat more should reach, judged by blocks here and
// there; the rule's own where few scores reach that.
float likely_threshold(const Heads &heads, const EfficientRule &rule, std::size_t limit) {
    thread_local std::vector<float> seen;
    seen.clear();
    const std::size_t blocks = heads.n * heads.classes / kScan, step = blocks / kSampled;
    if (step < 2) return rule.score_threshold;
    for (std::size_t block = step / 2; block < blocks; block += step) {
        const std::size_t from = block * kScan;
        if (!any_at_least(heads.scores + from, rule.score_threshold)) continue;
        for (std::size_t i = from; i < from + kScan; ++i)
            if (heads.scores[i] >= rule.score_threshold && counts(i, heads, rule))
                seen.push_back(heads.scores[i]);
    }
    const std::size_t rank = limit / step + limit / step / 4 + 12;  // too few would cost a pass
    if (seen.size() <= rank) return rule.score_threshold;
    const auto nth = seen.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(seen.begin(), nth, seen.end(), std::greater<>());
    return *nth;
}

// The best `limit` scores, in no order; returns whether there are more. Whenever twice as many are
// listed the worse half goes, and from then on only what beats the worst that stays is listed: a
// flood of candidates costs one pass.
bool candidates_of(const Heads &heads, const EfficientRule &rule, std::size_t limit,
                   std::vector<Candidate> &list) {
    float threshold = likely_threshold(heads, rule, limit);
    bool more = threshold > rule.score_threshold;
    list.clear();
    const std::size_t total = heads.n * heads.classes;
    auto shorten = [&] {
        const auto last = list.begin() + static_cast<std::ptrdiff_t>(limit) - 1;
        std::nth_element(list.begin(), last, list.end(), before);
        threshold = above(last->score);
        list.resize(limit);
        more = true;
    };
    auto scan = [&] {
        auto take = [&](std::size_t i) {
            if (!(heads.scores[i] >= threshold) || !counts(i, heads, rule)) return;
            list.push_back({heads.scores[i], static_cast<std::uint32_t>(i)});
            if (list.size() >= 2 * limit) shorten();
        };
        std::size_t i = 0;
        for (; i + kScan <= total; i += kScan)
            if (any_at_least(heads.scores + i, threshold))
                for (std::size_t j = i; j < i + kScan; ++j) take(j);
        for (; i < total; ++i) take(i);
    };
    scan();
    if (more && list.size() < limit) {  // the guess was too high
        list.clear();
        threshold = rule.score_threshold;
        more = false;
        scan();
    }
    if (list.size() > limit) shorten();
    return more;
}

// The best kCandidates one after the other. Few are looked for at first, as one pass finds few much
// faster than many; if they do not do, a second pass finds all.
class Best {
  public:
    Best(const Heads &heads, const EfficientRule &rule, std::vector<Candidate> &list)
        : heads_(heads), rule_(rule), list_(list), ordered_(list) {
        const auto rows = static_cast<std::size_t>(std::max(rule.keep, 0));
        limit_ = std::min(kCandidates, std::max(kFew, 4 * rows));
        more_ = candidates_of(heads_, rule_, limit_, list_);
    }

    const Candidate *next() {  // null at the end
        const Candidate *found = ordered_.next();
        if (found || !more_ || limit_ == kCandidates) return found;
        candidates_of(heads_, rule_, kCandidates, list_);
        ordered_.restart(limit_);
        limit_ = kCandidates;
        return ordered_.next();
    }

  private:
    const Heads &heads_;
    const EfficientRule &rule_;
    std::vector<Candidate> &list_;
    Ordered ordered_;
    std::size_t limit_;
    bool more_;
};

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
    Best best(heads, rule, list);
    Kept kept({rule.iou_threshold, true, kNone, !rule.agnostic});
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
        const Box box = decode(heads.boxes + 4 * set, anchors ? anchors + 4 * row : nullptr, rule.centres);
        const Box ordered = box.ordered();
        if (kept.suppresses(ordered, label)) continue;
        kept.add(ordered, label);
        // a class that is full goes on suppressing
        if (rule.per_class > 0 && written[class_id]++ >= rule.per_class) continue;
        const float values[] = {box.a0, box.a1, box.b0, box.b1};
        for (int k = 0; k < 4; ++k) out.boxes[4 * count + k] = rule.clip ? unit(values[k]) : values[k];
        out.scores[count] = rule.sigmoid ? 1.0f / (1.0f + std::exp(-candidate.score)) : candidate.score;
        out.classes[count] = label;
        out.rows[count] = static_cast<std::int32_t>(row);
        ++count;
    }
    return count;
}

}  // namespace noria::plugin_nms

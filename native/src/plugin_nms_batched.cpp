// BatchedNMS and the suppression of DetectionOutput: class by class, then the best of all.
// Source: standard-plugins spec 3.4, 3.5.
#include <algorithm>

#include "plugin_nms.h"

namespace noria::plugin_nms {

std::int32_t batched(const Heads &heads, const BatchedRule &rule, const Out &out) {
    // one pass over the scores as they lie in memory fills the lists of all classes
    std::vector<std::vector<Candidate>> lists(heads.classes);
    for (std::size_t row = 0; row < heads.n; ++row) {
        const float *scores = heads.scores + row * heads.classes;
        for (std::size_t c = 0; c < heads.classes; ++c)
            if (scores[c] > rule.score_threshold)
                lists[c].push_back({scores[c], static_cast<std::uint32_t>(row)});
    }
    Kept kept({rule.iou_threshold, false, rule.plus, false});
    auto box_of = [&](std::size_t row, std::size_t c) {
        const float *p = heads.boxes + 4 * (heads.sets == 1 ? row : row * heads.sets + c);
        return Box{p[0], p[1], p[2], p[3]};
    };
    std::vector<Candidate> winners;  // index into `places`
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t c = 0; c < heads.classes; ++c) {
        if (static_cast<std::int64_t>(c) == rule.background || lists[c].empty()) continue;
        best_first(lists[c], static_cast<std::size_t>(rule.top));
        kept.clear();
        std::int32_t of_class = 0;
        for (const Candidate &candidate : lists[c]) {
            const Box box = box_of(candidate.index, c).ordered();
            if (kept.suppresses(box, 0)) continue;
            kept.add(box, 0);
            winners.push_back({candidate.score, static_cast<std::uint32_t>(places.size())});
            places.emplace_back(candidate.index, c);
            if (++of_class == rule.keep) break;  // the rest scores no higher
        }
    }
    best_first(winners, static_cast<std::size_t>(rule.keep));
    std::int32_t count = 0;
    for (const Candidate &winner : winners) {
        const auto [row, c] = places[winner.index];
        const Box box = box_of(row, c);
        const float values[] = {box.a0, box.a1, box.b0, box.b1};
        for (int k = 0; k < 4; ++k) {
            const float x = values[k];
            out.boxes[4 * count + k] = rule.clip ? (x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x)) : x;
        }
        out.scores[count] = winner.score;
        out.classes[count] = static_cast<std::int32_t>(c);
        out.rows[count] = static_cast<std::int32_t>(row);
        ++count;
    }
    return count;
}

}  // namespace noria::plugin_nms

// Greedy matching of boxes by overlap. The boxes are swept by their left edges, so that only pairs
// that share columns are ever looked at.
#include "track/match.h"

#include <algorithm>
#include <numeric>

#include "core/suppression.h"

namespace headrace::track {
namespace {

struct Pair {
    std::int32_t rank;
    double iou;
    std::int32_t track, found;
};

// Boxes in the order of their left edges.
class Sweep {
public:
    explicit Sweep(const Boxes &boxes) : boxes_(boxes), order_(boxes.size) {
        std::iota(order_.begin(), order_.end(), 0);
        std::sort(order_.begin(), order_.end(), [&](std::int32_t i, std::int32_t j) {
            return boxes.corners[4 * i] < boxes.corners[4 * j];
        });
        for (std::size_t i = 0; i < boxes.size; ++i) {
            const double *b = boxes.corners + 4 * i;
            widest_ = std::max(widest_, b[2] - b[0]);
        }
    }

    // Calls visit(index, iou) for each box of the group that overlaps.
    template <typename Visit>
    void overlapping(const double *box, std::int64_t group, Visit visit) const {
        const double first = box[0] - widest_;
        auto at =
            std::lower_bound(order_.begin(), order_.end(), first,
                             [&](std::int32_t i, double v) { return boxes_.corners[4 * i] < v; });
        for (; at != order_.end() && boxes_.corners[4 * *at] < box[2]; ++at) {
            if (boxes_.groups[*at] != group) continue;
            const double iou = overlap(box, boxes_.corners + 4 * *at);
            if (iou > 0.0) visit(*at, iou);
        }
    }

private:
    const Boxes &boxes_;
    std::vector<std::int32_t> order_;
    double widest_ = 0.0;
};

}  // namespace

double overlap(const double *a, const double *b) {
    const double w = std::min(a[2], b[2]) - std::max(a[0], b[0]);
    const double h = std::min(a[3], b[3]) - std::max(a[1], b[1]);
    if (w <= 0.0 || h <= 0.0) return 0.0;
    return core::iou_of(w * h, (a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]));
}

std::vector<std::int32_t> match(const Boxes &tracks, const std::int32_t *ranks, const Boxes &found,
                                double min_iou) {
    std::vector<Pair> pairs;
    const Sweep sweep(found);
    for (std::size_t t = 0; t < tracks.size; ++t)
        sweep.overlapping(tracks.corners + 4 * t, tracks.groups[t],
                          [&](std::int32_t i, double iou) {
                              if (iou >= min_iou)
                                  pairs.push_back({ranks[t], iou, static_cast<std::int32_t>(t), i});
                          });
    std::sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) {
        if (a.rank != b.rank) return a.rank < b.rank;
        if (a.iou != b.iou) return a.iou > b.iou;
        if (a.track != b.track) return a.track < b.track;
        return a.found < b.found;
    });
    std::vector<std::int32_t> track_of(found.size, -1);
    std::vector<char> taken(tracks.size, 0);
    for (const Pair &p : pairs) {
        if (taken[p.track] || track_of[p.found] >= 0) continue;
        taken[p.track] = 1;
        track_of[p.found] = p.track;
    }
    return track_of;
}

std::vector<double> best_overlap(const Boxes &found, const Boxes &others) {
    std::vector<double> best(found.size, 0.0);
    const Sweep sweep(others);
    for (std::size_t i = 0; i < found.size; ++i)
        sweep.overlapping(found.corners + 4 * i, found.groups[i],
                          [&](std::int32_t, double iou) { best[i] = std::max(best[i], iou); });
    return best;
}

}  // namespace headrace::track

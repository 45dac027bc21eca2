// Greedy non-maximum suppression. Source: spec B.4.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cluster/box_index.h"
#include "cluster/cluster.h"
#include "cluster/rotated.h"
#include "core/suppression.h"

namespace headrace::cluster {
namespace {

// Boxes behind the last one kept that are still compared where fates are only counted; those
// behind them count as dropped by what dropped the first of them. It bounds the time.
constexpr std::size_t kCompared = 256;

// Kept boxes from which an index is quicker than a look at all of them.
constexpr std::size_t kIndexed = 1024;

// Comparisons of turned rectangles for the boxes of a frame; some 3 s.
constexpr std::size_t kMostTurned = std::size_t{1} << 24;
constexpr std::size_t kTurnedCost = 64;  // of one, in comparisons of upright ones

// The boxes kept so far, and what of them suppresses another. Source: B.4.
class Kept {
public:
    Kept(const Input &in, float threshold, Patience &patience)
        : in_(in),
          threshold_(threshold),
          patience_(patience),
          boxes_(memory().boxes),
          rows_(memory().rows) {
        boxes_.restart({threshold, true});
        rows_.clear();
    }

    // The first box that suppresses `row`, or another of them where any will do; -1 for none.
    std::int32_t suppressor(std::int32_t row, bool first) {
        const std::size_t n = boxes_.size();
        if (n >= kIndexed && threshold_ >= 0.0f) {
            while (index_.size() < n) index_.add(outline(rows_[index_.size()]).data());
            std::int32_t by = -1;
            if (among_near(row, first, by)) return by;
        }
        std::size_t from = 0;
        for (; from < n; from += core::KeptBoxes::kBlock) {
            const std::size_t count = std::min(core::KeptBoxes::kBlock, n - from);
            if (suppressors(row, from, count) == 0) continue;
            std::size_t j = from;
            while (first && suppressors(row, j, 1) == 0) ++j;
            patience_.spend(from + count);
            return rows_[j];
        }
        patience_.spend(n);
        return -1;
    }

    void add(std::int32_t row) {
        boxes_.add(corners(row), area(row));
        rows_.push_back(row);
    }

    bool exhausted() const { return turned_ > kMostTurned; }

private:
    struct Memory {  // that is used again
        core::KeptBoxes boxes{{0.0f}};
        Rows rows;
    };
    static Memory &memory() {
        thread_local Memory memory;
        return memory;
    }

    const float *box(std::int32_t row) const {
        return in_.boxes + 4 * static_cast<std::size_t>(row);
    }
    core::Box corners(std::int32_t row) const {
        const float *b = box(row);
        return {b[0], b[1], b[0] + b[2], b[1] + b[3]};
    }
    float area(std::int32_t row) const { return box(row)[2] * box(row)[3]; }

    // How many of `count` kept boxes from `from` on suppress the box of `row`.
    int suppressors(std::int32_t row, std::size_t from, std::size_t count) {
        if (!in_.angles) return boxes_.suppressors(from, count, corners(row), area(row));
        turned_ += count;
        patience_.spend(count * kTurnedCost);
        int sum = 0;
        for (std::size_t j = from; j < from + count; ++j) {
            const std::int32_t other = rows_[j];
            const double iou =
                rotated_iou(box(row), in_.angles[row], box(other), in_.angles[other]);
            sum += iou <= static_cast<double>(threshold_) ? 0 : 1;
        }
        return sum;
    }

    // Sets the suppressor among those that the index gives; false if that takes longer.
    bool among_near(std::int32_t row, bool first, std::int32_t &by) {
        std::int32_t best = -1;
        std::size_t compared = 16;
        const bool done = index_.visit(outline(row).data(), [&](std::int32_t j) {
            ++compared;
            if (best >= 0 && j > best) return true;
            if (suppressors(row, static_cast<std::size_t>(j), 1) == 0) return true;
            best = j;
            return first;
        });
        patience_.spend(compared);
        by = best < 0 ? -1 : rows_[static_cast<std::size_t>(best)];
        return done;
    }

    // What the index takes a box for: itself, or the square around the circle around it.
    std::array<float, 4> outline(std::int32_t row) const {
        const float *b = box(row);
        if (!in_.angles) return {b[0], b[1], b[2], b[3]};
        const float radius = std::hypot(b[2], b[3]) * 0.51f;
        const float x = b[0] + b[2] / 2, y = b[1] + b[3] / 2;
        const bool exact = std::max(std::abs(x), std::abs(y)) < radius * 1e4f;
        constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
        if (!exact || !std::isfinite(in_.angles[row])) return {kNan, kNan, kNan, kNan};
        return {x - radius, y - radius, 2 * radius, 2 * radius};
    }

    const Input &in_;
    float threshold_;
    Patience &patience_;
    core::KeptBoxes &boxes_;
    Rows &rows_;
    BoxIndex index_{in_.angles ? 0.0f : threshold_};
    std::size_t turned_ = 0;
};

}  // namespace

std::size_t nms(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
                Trace *trace, Patience &patience) {
    Kept kept(in, p.iou_threshold, patience);
    Rows order = rows;
    sort_descending(order, in.scores);
    const bool limited = p.topk >= 0;
    const std::size_t limit = limited ? static_cast<std::size_t>(p.topk) : 0;
    std::size_t compared = 0, cut = 0;
    for (std::int32_t row : order) {
        const float score = in.scores[row];
        const bool passes = score > p.post_threshold;
        const bool full = limited && out.size() >= limit;
        // Later boxes score no higher and cannot suppress earlier ones: they are lost in any case.
        // Only a trace wants to know which of the steps would have dropped each.
        if (!passes || full) {
            if (!trace) return cut;
            if (!trace->whole() && ++compared > kCompared) {
                trace->drop(row, passes ? kTopk : kPostThreshold);
                continue;
            }
        }
        if (kept.exhausted()) {
            if (trace) trace->drop(row, kMaxCandidates);
            ++cut;
            continue;
        }
        const std::int32_t by = kept.suppressor(row, trace && trace->whole());
        if (by >= 0) {
            if (trace) trace->drop(row, kSuppressed, by);
            continue;
        }
        kept.add(row);
        if (!passes) {
            trace->drop(row, kPostThreshold);
        } else if (full) {
            trace->drop(row, kTopk);
        } else {
            const float *b = in.boxes + 4 * static_cast<std::size_t>(row);
            if (trace) trace->object[row] = static_cast<std::int32_t>(out.size());
            out.push_back({{b[0], b[1], b[2], b[3]}, score, row, 0});
        }
    }
    return cut;
}

}  // namespace headrace::cluster

// Greedy non-maximum suppression. Source: spec B.4.
#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/rotated.h"
#include "core/suppression.h"

namespace headrace::cluster {
namespace {

// Boxes behind the last one kept that are still compared where fates are only counted; those
// behind them count as dropped by what dropped the first of them. It bounds the time.
constexpr std::size_t kCompared = 256;

// How many of the boxes in the rows `kept` suppress the turned rectangle of `row`.
int turned_suppressors(const Input &in, const std::int32_t *kept, std::size_t n, std::int32_t row,
                       float threshold) {
    const auto box = [&](std::int32_t i) { return in.boxes + 4 * static_cast<std::size_t>(i); };
    int count = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const double iou = rotated_iou(box(row), in.angles[row], box(kept[j]), in.angles[kept[j]]);
        count += iou <= static_cast<double>(threshold) ? 0 : 1;
    }
    return count;
}

}  // namespace

void nms(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
         Trace *trace) {
    thread_local core::KeptBoxes kept({0.0f});
    thread_local Rows kept_rows;
    kept.restart({p.iou_threshold, true});
    kept_rows.clear();
    Rows order = rows;
    sort_descending(order, in.scores);
    const bool limited = p.topk >= 0;
    const std::size_t limit = limited ? static_cast<std::size_t>(p.topk) : 0;
    std::size_t compared = 0;
    for (std::int32_t row : order) {
        const float score = in.scores[row];
        const bool passes = score > p.post_threshold;
        const bool full = limited && out.size() >= limit;
        // Later boxes score no higher and cannot suppress earlier ones: they are lost in any case.
        // Only a trace wants to know which of the steps would have dropped each.
        if (!passes || full) {
            if (!trace) return;
            if (!trace->whole() && ++compared > kCompared) {
                trace->drop(row, passes ? kTopk : kPostThreshold);
                continue;
            }
        }
        const float *b = in.boxes + 4 * static_cast<std::size_t>(row);
        const core::Box box{b[0], b[1], b[0] + b[2], b[1] + b[3]};
        const float area = b[2] * b[3];
        const std::size_t n = kept.size();
        auto suppressed_by = [&](std::size_t from, std::size_t count) {
            if (in.angles)
                return turned_suppressors(in, &kept_rows[from], count, row, p.iou_threshold);
            return kept.suppressors(from, count, box, area);
        };
        bool suppressed = false;
        for (std::size_t from = 0; from < n && !suppressed; from += core::KeptBoxes::kBlock) {
            const std::size_t count = std::min(core::KeptBoxes::kBlock, n - from);
            suppressed = suppressed_by(from, count) > 0;
            if (suppressed && trace) {
                std::size_t j = from;
                while (trace->whole() && suppressed_by(j, 1) == 0) ++j;
                trace->drop(row, kSuppressed, kept_rows[j]);
            }
        }
        if (suppressed) continue;
        kept.add(box, area);
        kept_rows.push_back(row);
        if (!passes) {
            trace->drop(row, kPostThreshold);
        } else if (full) {
            trace->drop(row, kTopk);
        } else {
            if (trace) trace->object[row] = static_cast<std::int32_t>(out.size());
            out.push_back({{b[0], b[1], b[2], b[3]}, score, row, 0});
        }
    }
}

}  // namespace headrace::cluster

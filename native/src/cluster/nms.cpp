// Greedy non-maximum suppression. Source: spec B.4.
#include <algorithm>

#include "cluster/cluster.h"
#include "cluster/rotated.h"

#include "core/vectorise.h"  // last: see there

namespace headrace::cluster {
namespace {

// Already kept boxes of the class, one array per coordinate.
struct Kept {
    std::vector<float> x0, x1, y0, y1, area;
    Rows rows;

    void clear() {
        for (auto *v : {&x0, &x1, &y0, &y1, &area}) v->clear();
        rows.clear();
    }
};

// `a` is the candidate, `b` a kept box. A NaN anywhere makes the result NaN.
inline float overlap(float a0, float a1, float b0, float b1) {
    const bool swap = a0 > b0;
    const float end = swap ? b1 : a1;
    const float start = swap ? a0 : b0;
    const float other = swap ? a1 : b1;
    const float common = (other < end ? other : end) - start;
    return end < start ? 0.0f : common;
}

constexpr std::size_t kBlock = 32;
// Boxes behind the last one kept that are still compared where fates are only counted; those
// behind them count as dropped by what dropped the first of them. It bounds the time.
constexpr std::size_t kCompared = 256;

// How many of up to kBlock kept boxes suppress the candidate: IoU not <= threshold.
HEADRACE_WIDE int suppressors(const float *x0, const float *x1, const float *y0, const float *y1,
                           const float *area, std::size_t n, float cx0, float cx1, float cy0,
                           float cy1, float carea, float threshold) {
    int count = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const float inter = overlap(cx0, cx1, x0[j], x1[j]) * overlap(cy0, cy1, y0[j], y1[j]);
        const float total = carea + area[j] - inter;
        const float ratio = inter / total;
        const float iou = total == 0.0f ? 0.0f : ratio;
        count += iou <= threshold ? 0 : 1;
    }
    return count;
}

// The same for turned rectangles; `kept` are rows.
int turned_suppressors(const Input &in, const std::int32_t *kept, std::size_t n, std::int32_t row,
                       float threshold) {
    const auto box = [&](std::int32_t i) { return in.boxes + 4 * static_cast<std::size_t>(i); };
    int count = 0;
    for (std::size_t j = 0; j < n; ++j) {
        const double iou =
            rotated_iou(box(row), in.angles[row], box(kept[j]), in.angles[kept[j]]);
        count += iou <= static_cast<double>(threshold) ? 0 : 1;
    }
    return count;
}

}  // namespace

void nms(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
         Trace *trace) {
    thread_local Kept kept;
    kept.clear();
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
        const float x1 = b[0] + b[2], y1 = b[1] + b[3], area = b[2] * b[3];
        const std::size_t n = kept.rows.size();
        auto suppressed_by = [&](std::size_t from, std::size_t count) {
            if (in.angles)
                return turned_suppressors(in, &kept.rows[from], count, row, p.iou_threshold);
            return suppressors(&kept.x0[from], &kept.x1[from], &kept.y0[from], &kept.y1[from],
                               &kept.area[from], count, b[0], x1, b[1], y1, area, p.iou_threshold);
        };
        bool suppressed = false;
        for (std::size_t from = 0; from < n && !suppressed; from += kBlock) {
            const std::size_t count = std::min(kBlock, n - from);
            suppressed = suppressed_by(from, count) > 0;
            if (suppressed && trace) {
                std::size_t j = from;
                while (trace->whole() && suppressed_by(j, 1) == 0) ++j;
                trace->drop(row, kSuppressed, kept.rows[j]);
            }
        }
        if (suppressed) continue;
        kept.x0.push_back(b[0]);
        kept.x1.push_back(x1);
        kept.y0.push_back(b[1]);
        kept.y1.push_back(y1);
        kept.area.push_back(area);
        kept.rows.push_back(row);
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

// Clustering of one frame's boxes, all classes in one call. Source: spec B.2 to B.5.
// Arithmetic is IEEE binary32 in the order written; build without contraction and fast-math.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "cluster/numbers.h"  // Mode, Reason, Drop: made by scripts/native_numbers.py

namespace headrace::cluster {

// Set from any thread, also by a handler of signals: work that takes long looks at it.
using StopFlag = std::atomic<bool>;

struct Stopped : std::exception {};

// Ends long work once its stop is asked for. What takes less than half a second is finished: a run
// that ends keeps the objects of its last frames.
class Patience {
public:
    explicit Patience(const StopFlag *stop = nullptr) : stop_(stop) {}

    // Call it in loops, with the number of comparisons since the last time.
    void spend(std::size_t comparisons) {
        spent_ += comparisons;
        if (spent_ < kLook) return;
        spent_ = 0;
        if (!begun_) begun_ = Clock::now();
        if (stop_ && stop_->load(std::memory_order_relaxed) && Clock::now() - *begun_ > kLong)
            throw Stopped();
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t kLook = 1 << 20;
    static constexpr std::chrono::milliseconds kLong{500};

    const StopFlag *stop_;
    std::size_t spent_ = 0;
    std::optional<Clock::time_point> begun_;  // at the first look: most calls never come to it
};

struct ClassParams {
    float pre_threshold, post_threshold, iou_threshold, eps, min_score;
    std::int32_t topk, group_threshold, min_boxes;
};

struct Input {
    const float *boxes;   // n x 4: left, top, width, height
    const float *scores;  // n
    const std::int32_t *class_ids;
    std::size_t n;
    const float *angles = nullptr;  // n, radians; suppression then compares the turned rectangles
};

using Rows = std::vector<std::int32_t>;

struct Object {
    float box[4];
    float score;
    std::int32_t row;  // the input row it is, or the first member of the cluster it was made from
    std::int32_t members;  // 0: an input box as it came; else the size of the cluster
};

// One entry per input row. While a class is worked on, `object` of a row that is still alive is
// its place in that class's list; at the end it is the output row, or -1.
struct Trace {
    std::vector<std::uint8_t> reason;
    std::vector<std::int32_t>
        by;  // the input row that suppressed or contains it, or -1; may be empty
    std::vector<std::int32_t> object;

    void drop(std::int32_t row, Reason why, std::int32_t because = -1) {
        reason[row] = why;
        if (whole()) by[row] = because;
        object[row] = -1;
    }
    // Every row's fate is wanted, whatever it takes; else only how many had which.
    bool whole() const { return !by.empty(); }
};

struct Result {
    std::vector<Object> objects;
    std::vector<std::int32_t> class_ids;
    Trace trace;           // empty unless asked for
    std::size_t cut = 0;   // candidates that clustering did not take
    bool stopped = false;  // all of them, as the work was stopped
};

// Of more than `max_candidates` boxes that pass their thresholds, the best are clustered.
// `tally` may be null: num_classes + 1 rows of kReasons counts, which rise by the fates of this
// frame's boxes; the last row is for classes out of range.
Result run(const Input &in, const ClassParams *params, std::int32_t num_classes, Mode mode,
           bool trace, std::int64_t *tally, std::size_t max_candidates, Patience &patience);

// --- the steps, each for the rows of one class; `trace` may be null -------------------------

// Indices by descending score, stable; NaN last.
void sort_descending(Rows &rows, const float *scores);

// Greedy suppression, then `score > post`, then topk; appends to `out`, best first. Returns how
// many of turned rectangles it left out, as judging them takes too long. Source: B.4.
std::size_t nms(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
                Trace *trace, Patience &patience);

// One-hop DBSCAN: the label of each row, -1 for noise; returns the number of labels. Source: B.5.
std::int32_t dbscan_labels(const Input &in, const Rows &rows, const ClassParams &p,
                           std::vector<std::int32_t> &labels, Patience &patience);
void dbscan_merge(const Input &in, const Rows &rows, const ClassParams &p, std::vector<Object> &out,
                  Trace *trace, Patience &patience);
Rows dbscan_members(const Input &in, const Rows &rows, const ClassParams &p, Trace *trace,
                    Patience &patience);

// groupRectangles on boxes truncated to integers; every score becomes -0.1. Source: B.4.
void group_rectangles(const Input &in, const Rows &rows, const ClassParams &p,
                      std::vector<Object> &out, Trace *trace, Patience &patience);

}  // namespace headrace::cluster

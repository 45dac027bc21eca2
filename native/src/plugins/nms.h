// Suppression as the standard plugins do it: three rules over one greedy core.
// Arithmetic is IEEE binary32 in the order written. A box with a NaN neither suppresses nor is
// suppressed; a NaN score is no candidate. Source: standard-plugins spec 3.1 to 3.5.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/suppression.h"

namespace headrace::plugins {

using core::Box;
using core::KeptBoxes;

// What "+1" pixel boxes take: an edge of a box counts as a pixel.
enum PlusOne : int { kNone = 0, kAreas = 1, kAreasAndOverlap = 2 };

// What suppresses: an IoU above the threshold, or equal to it if `inclusive`.
inline core::Suppression suppression(float threshold, bool inclusive, PlusOne plus, bool by_class) {
    return {threshold,
            false,
            inclusive,
            by_class,
            plus == kNone ? 0.0f : 1.0f,
            plus == kAreasAndOverlap ? 1.0f : 0.0f};
}

struct Candidate {
    float score;
    std::uint32_t index;
};

// Higher scores first, of equals the lower index; a total order, as no score is NaN.
inline constexpr auto kBefore = [](const Candidate &x, const Candidate &y) {
    return x.score > y.score || (x.score == y.score && x.index < y.index);
};

// Candidates in `before` order, sorted piece by piece: mostly the first piece is enough.
class Ordered {
public:
    explicit Ordered(std::vector<Candidate> &list) : list_(list) {}

    const Candidate *next() {  // null at the end
        if (at_ == sorted_) sort_piece();
        return at_ < sorted_ ? &list_[at_++] : nullptr;
    }
    void restart(std::size_t at);  // the list is another one; go on behind its first `at`

private:
    void sort_piece();

    std::vector<Candidate> &list_;
    std::size_t sorted_ = 0, at_ = 0;
};

// The scores of an image, a row of classes for each box, and which of them are candidates.
struct Scores {
    const float *values;
    std::size_t boxes, classes;
    std::int32_t background;  // no candidates; -1: none
    float least;              // at or above is a candidate
    bool by_class;            // of equals the lower class goes first, then the lower box

    std::size_t total() const { return boxes * classes; }
    std::uint32_t place(std::size_t i) const {  // in the order of equals
        return static_cast<std::uint32_t>(by_class ? i % classes * boxes + i / classes : i);
    }
};

// The least score above this one; NaN, which nothing reaches, above infinity.
float above(float score);

// The best `most` candidates one after the other. Few are looked for at first, as one pass finds
// few much faster than many; if they do not fill the rows, a second pass finds all.
class Best {
public:
    Best(const Scores &scores, std::int32_t rows, std::size_t most, std::vector<Candidate> &list);

    const Candidate *next();  // null at the end

private:
    const Scores scores_;
    std::vector<Candidate> &list_;
    Ordered ordered_;
    std::size_t most_, limit_;
    bool more_;
};

// --- one image each -------------------------------------------------------------------------

struct Heads {
    const float *boxes;   // n x sets x 4
    const float *scores;  // n x classes
    std::size_t n, sets, classes;
};

struct EfficientRule {
    float score_threshold;  // of the raw scores
    float iou_threshold;
    std::int32_t keep;       // rows of the output
    std::int32_t per_class;  // written boxes of one class at most; 0: no limit
    std::int32_t background;
    bool sigmoid, centres, agnostic, clip;
};

struct Out {
    float *boxes;           // keep x 4
    float *scores;          // keep
    std::int32_t *classes;  // keep
    std::int32_t *rows;     // keep: the box that a row is
};

// Returns the number of rows written; the others are left alone. `anchors` is n x 4 or null.
std::int32_t efficient(const Heads &heads, const float *anchors, const EfficientRule &rule,
                       const Out &out);

struct BatchedRule {
    float score_threshold, iou_threshold;
    std::int32_t background, top, keep;
    PlusOne plus;
    bool clip;
};

std::int32_t batched(const Heads &heads, const BatchedRule &rule, const Out &out);

}  // namespace headrace::plugins

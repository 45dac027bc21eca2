// Overlap of boxes and greedy suppression: one arithmetic for clustering, plugins and trackers.
// IEEE in the order written; build without contraction and fast-math. Source: spec B.4.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::core {

// Intersection over union; 0 where there is no area, NaN where an area is NaN.
template <typename T>
inline T iou_of(T shared, T area_a, T area_b) {
    const T total = area_a + area_b - shared;
    const T ratio = shared / total;
    return total == T(0) ? T(0) : ratio;
}

struct Box {
    float a0, a1, b0, b1;  // two corners, in either axis order

    Box ordered() const {  // a0 <= b0 and a1 <= b1
        return {a0 < b0 ? a0 : b0, a1 < b1 ? a1 : b1, a0 < b0 ? b0 : a0, a1 < b1 ? b1 : a1};
    }
};

// What suppresses: an IoU above the threshold. Boxes have ordered corners, and NaN suppresses
// nothing; or, as in the original's clustering, they are as they come, and NaN suppresses.
struct Suppression {
    float threshold;
    bool any_edges = false;  // as in the original's clustering; what follows is for the others
    bool inclusive = false;  // an IoU equal to the threshold suppresses
    bool by_class = false;   // only boxes of one class suppress each other
    float plus_area = 0.0f, plus_overlap = 0.0f;  // to each side: an edge counts as a pixel
};

// The boxes kept so far, one array per coordinate.
class KeptBoxes {
public:
    static constexpr std::size_t kBlock = 32;

    explicit KeptBoxes(const Suppression &rule) : rule_(rule) {}

    void restart(const Suppression &rule);
    std::size_t size() const { return area_.size(); }

    // How many of `count` kept boxes from `from` on suppress a box.
    int suppressors(std::size_t from, std::size_t count, const Box &box, float area,
                    std::int32_t class_id = 0) const;
    void add(const Box &box, float area, std::int32_t class_id = 0);

    // Keeps a box of ordered corners unless one that is kept suppresses it; returns whether it did.
    bool take(const Box &ordered, std::int32_t class_id);

private:
    Suppression rule_;
    std::vector<float> a0_, a1_, b0_, b1_, area_;
    std::vector<std::int32_t> class_;
};

constexpr std::size_t kScan = 64;

// Whether one of kScan scores is at or above the threshold.
bool any_at_least(const float *scores, float threshold);

}  // namespace headrace::core

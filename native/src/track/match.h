#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// Boxes of one frame against boxes of tracks, by intersection over union.
namespace headrace::track {

// N boxes left, top, right, bottom; only boxes of one group are ever compared.
struct Boxes {
    const double *corners;
    const std::int64_t *groups;
    std::size_t size;
};

// Intersection over union of two boxes left, top, right, bottom.
double overlap(const double *a, const double *b);

// For each of `found` the track it continues, or -1. Pairs overlap by at least `min_iou` and by
// more than nothing; they are taken by rank of the track, then the greatest overlap first, then
// order.
std::vector<std::int32_t> match(const Boxes &tracks, const std::int32_t *ranks, const Boxes &found,
                                double min_iou);

// For each of `found` the greatest overlap with any of `others`, 0 without one.
std::vector<double> best_overlap(const Boxes &found, const Boxes &others);

}  // namespace headrace::track

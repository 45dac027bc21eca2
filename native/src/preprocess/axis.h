#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace headrace::preprocess {

// Which source samples make up each destination sample along one axis of one plane.
//
// Destination sample d covers the source from start + d * extent / count to
// start + (d + 1) * extent / count; its centre is half-way. Positions are exact fractions.
// Samples outside [low, high) take the value of the nearest one inside.

struct Axis {
    int start, extent;  // source rectangle along the axis, not clipped
    int count;          // destination samples
    int low, high;      // what there is to read

    // A crop of a frame of `size` samples; it may stick out at the high end, however far.
    static Axis crop(int start, int extent, int count, int size) {
        return {start, extent, count, start, int(std::min<int64_t>(int64_t(start) + extent, size))};
    }

    // The same rectangle in a chroma plane of half the size; start and extent are even.
    Axis halved() const { return {start / 2, extent / 2, count, low / 2, (high + 1) / 2}; }
};

enum class Filter { kNearest = 0, kBilinear = 1, kCubic = 2, kArea = 3, kLanczos = 4, kOpencv = 5 };

// One sample: the one that contains the centre.
std::vector<int32_t> nearest_table(const Axis &axis);

// Two neighbours, first[d] and the one after it; the latter has no weight at the high border.
struct LinearTable {
    std::vector<int32_t> first;
    std::vector<int32_t> weight;  // of the second, in 1 / 2^15: 0 ... 32767
};
LinearTable linear_table(const Axis &axis);

// Two neighbours as OpenCV's INTER_LINEAR takes them on bytes: positions in binary32, weights in
// 1 / 2^11. Columns at a border have one neighbour; rows keep both weights, on the same row.
struct OpencvTable {
    std::vector<int32_t> first, second;
    std::vector<int16_t> weights;  // of both, 2048 together; more follow, for whole vectors
};
OpencvTable opencv_table(const Axis &axis, bool rows);

// Any number of neighbours: taps[d] of them from first[d] on, weights from d * stride on, sum 1.
struct TapTable {
    int stride = 0;
    std::vector<int32_t> first, taps;
    std::vector<float> weights;
};
TapTable tap_table(const Axis &axis, Filter filter);

}  // namespace headrace::preprocess

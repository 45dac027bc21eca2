// The objects of a frame that a tracker looks at.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::track {

using Box = std::array<double, 4>;  // left, top, right, bottom

struct TrackedObjects {
    std::vector<std::int64_t> index;  // where they are in the frame's objects
    std::vector<Box> corners;
    std::vector<float> scores;
    std::vector<std::int64_t> groups;  // only objects of one group can be one track

    std::size_t size() const { return index.size(); }
};

}  // namespace headrace::track

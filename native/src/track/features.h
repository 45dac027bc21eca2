// What a visual tracker compares: colours by name, and directions of edges.
#pragma once
#include <cstdint>
#include <vector>

namespace headrace::track {

constexpr int kColors = 10, kDirections = 18;
constexpr int kCell = 2;  // samples of a patch along a side of a feature

// Features of a patch of (kCell * side) squared samples, three planes as `Image` gives them.
// (side, side, channels) floats, of 10 colour names, then of 18 directions, then zeros.
void features(const std::uint8_t *rgb, int side, bool colors, bool edges, int channels,
              std::vector<float> &out);

}  // namespace headrace::track

// What a visual tracker compares: colours by name, and directions of edges.
#pragma once
#include <cstdint>
#include <vector>

#include "track/correlation_loops.h"

namespace headrace::track {

constexpr int kCell = 2;  // samples of a patch along a side of a feature

// Rows of samples that the first `rows` rows of features depend on.
int rows_of_samples(int side, int rows, bool edges);

// Features of a patch of (kCell * side) squared samples, three planes as `Image` gives them, by a
// window (rows, side): (rows, side, channels) floats, of 10 colour names, then of 18 directions.
void features(const std::uint8_t *rgb, int side, int rows, bool colors, bool edges,
              const float *window, std::vector<float> &out);

}  // namespace headrace::track

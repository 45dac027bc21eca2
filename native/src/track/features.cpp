// Colour names: how much of each of ten basic colours a pixel is, by its distance to their usual
// places in CIELAB. The idea is van de Weijer's (2009), whose learned table is not used.
// Directions: the signed gradients of HOG (Felzenszwalb 2010, the 18 contrast-sensitive ones),
// normalised by the energy around a cell.
#include "track/features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "track/correlation_loops.h"

namespace headrace::track {
namespace {

constexpr int kMostSide = 36;
using Lab = std::array<float, 3>;

Lab lab_of(float r, float g, float b) {  // sRGB of 0 to 255, white D65
    const auto linear = [](float v) {
        v /= 255;
        return v <= 0.04045f ? v / 12.92f : std::pow((v + 0.055f) / 1.055f, 2.4f);
    };
    r = linear(r), g = linear(g), b = linear(b);
    const auto bent = [](float t) {
        return t > 0.008856f ? std::cbrt(t) : 7.787f * t + 16.0f / 116;
    };
    const float x = bent((0.4124f * r + 0.3576f * g + 0.1805f * b) / 0.9505f);
    const float y = bent(0.2126f * r + 0.7152f * g + 0.0722f * b);
    const float z = bent((0.0193f * r + 0.1192f * g + 0.9505f * b) / 1.089f);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// 32 steps of red, green and blue -> bytes of black, white, grey, red, orange, yellow, green, blue,
// purple and brown, which sum to about 255.
std::vector<std::uint8_t> named_colors() {
    constexpr float kNamed[kColors][3] = {
        {0, 0, 0},     {255, 255, 255}, {128, 128, 128}, {220, 20, 20},  {255, 140, 0},
        {255, 235, 0}, {0, 160, 0},     {20, 60, 230},   {150, 40, 170}, {120, 70, 20}};
    constexpr float kSpread = 24;  // distance in CIELAB at which a name fades
    std::array<Lab, kColors> places;
    for (std::size_t k = 0; k < kColors; ++k)
        places[k] = lab_of(kNamed[k][0], kNamed[k][1], kNamed[k][2]);
    std::vector<std::uint8_t> table(32 * 32 * 32 * kNames, 0);
    for (int i = 0; i < 32 * 32 * 32; ++i) {
        const auto level = [](int v) { return float(v * 8) + 3.5f; };
        const Lab lab = lab_of(level(i >> 10), level(i >> 5 & 31), level(i & 31));
        std::array<float, kColors> near;
        float closest = INFINITY, sum = 0;
        for (std::size_t k = 0; k < kColors; ++k) {
            near[k] = 0;
            for (std::size_t j = 0; j < 3; ++j)
                near[k] += (lab[j] - places[k][j]) * (lab[j] - places[k][j]);
            closest = std::min(closest, near[k]);
        }
        for (float &d : near) sum += d = std::exp((closest - d) / (2 * kSpread * kSpread));
        for (std::size_t k = 0; k < kColors; ++k)
            table[std::size_t(i) * kNames + k] = std::uint8_t(255 * near[k] / sum + 0.5f);
    }
    return table;
}

void add_colors(const std::uint8_t *rgb, int side, int rows, int channels, const float *window,
                float *out) {
    static const std::vector<std::uint8_t> table = named_colors();
    static_assert(kCell == 2);
    const std::ptrdiff_t row = std::ptrdiff_t(kCell) * side, area = row * row;
    for (std::ptrdiff_t y = 0; y < rows; ++y)
        name_row(rgb + kCell * y * row, area, table.data(), window + y * side, side, channels,
                 out + y * side * channels);
}

// The sums of three numbers around each, 0 beyond the ends.
void spread(const float *above, const float *row, const float *below, int side, float *to) {
    float sum[kMostSide + 2];
    sum[0] = sum[side + 1] = 0;
    for (int x = 0; x < side; ++x) sum[x + 1] = above[x] + row[x] + below[x];
    for (int x = 0; x < side; ++x) to[x] = sum[x] + sum[x + 1] + sum[x + 2];
}

void add_edges(const std::uint8_t *rgb, int side, int rows, int channels, const float *window,
               float *bins) {
    static thread_local std::vector<float> luma, energy;
    const int width = kCell * side, seen = rows_of_samples(side, rows, true);
    luma.resize(std::size_t(width) * std::size_t(width));
    brightness(rgb, std::ptrdiff_t(width) * width, std::ptrdiff_t(seen) * width, luma.data());
    // a row of zeros before the first and behind the last
    energy.assign(std::size_t(side) * std::size_t(side + 2), 0);
    Directions d;
    for (int y = 0; y < kCell * std::min(rows + 1, side); ++y) {
        const float *row = luma.data() + std::ptrdiff_t(y) * width;
        directions_of(row, y > 0 ? row - width : row, y < width - 1 ? row + width : row, width, d);
        const int cells = y / kCell;
        float *sum = energy.data() + std::ptrdiff_t(cells + 1) * side;
        for (int x = 0; x < side; ++x) sum[x] += d.energy[2 * x] + d.energy[2 * x + 1];
        if (cells >= rows) continue;
        float *b = bins + std::ptrdiff_t(cells) * side * channels;
        for (int x = 0; x < width; x += kCell, b += channels) {
            if (y % kCell == 0) std::fill_n(b, kDirections, 0.0f);
            for (int i = x; i < x + kCell; ++i) {
                b[d.low[i]] += d.of_low[i];
                b[d.high[i]] += d.of_high[i];
            }
        }
    }
    for (int y = 0; y < rows; ++y) {
        const float *sum = energy.data() + std::ptrdiff_t(y + 1) * side;
        float around[kMostSide];
        spread(sum - side, sum, sum + side, side, around);
        normalize_row(around, window + std::ptrdiff_t(y) * side, side, channels,
                      bins + std::ptrdiff_t(y) * side * channels);
    }
}

}  // namespace

int rows_of_samples(int side, int rows, bool edges) {
    return std::min(kCell * side, kCell * rows + (edges ? kCell + 1 : 0));
}

void features(const std::uint8_t *rgb, int side, int rows, bool colors, bool edges,
              const float *window, std::vector<float> &out) {
    const int first = colors ? kColors : 0, channels = first + (edges ? kDirections : 0);
    // colours are written as more channels than they have
    out.resize(std::size_t(rows) * std::size_t(side) * std::size_t(channels) + kNames);
    if (colors) add_colors(rgb, side, rows, channels, window, out.data());
    if (edges) add_edges(rgb, side, rows, channels, window, out.data() + first);
}

}  // namespace headrace::track

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

void add_colors(const std::uint8_t *rgb, int side, int channels, float *out) {
    static const std::vector<std::uint8_t> table = named_colors();
    const int width = kCell * side;
    const std::ptrdiff_t area = std::ptrdiff_t(width) * width;
    static_assert(kCell == 2);
    const std::uint8_t *names[kCell * kCell * kMostSide];
    for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x)
            for (int part = 0; part < 4; ++part) {
                const std::uint8_t *p = rgb + std::ptrdiff_t(kCell * y + part / kCell) * width +
                                        kCell * x + part % kCell;
                const int color = p[0] >> 3 << 10 | p[area] >> 3 << 5 | p[2 * area] >> 3;
                names[4 * x + part] = table.data() + std::ptrdiff_t(color) * kNames;
                __builtin_prefetch(names[4 * x + part]);  // a crop has colours from everywhere
            }
        // behind the names stand zeros, and edges come later
        average(names, side, channels, out + std::ptrdiff_t(y) * side * channels);
    }
}

void add_edges(const std::uint8_t *rgb, int side, int channels, int first, float *out) {
    static thread_local std::vector<float> luma, energy, place, length;
    const int width = kCell * side;
    const auto area = std::size_t(width) * std::size_t(width);
    luma.resize(area);
    place.resize(area);
    length.resize(area);
    energy.assign(std::size_t(side) * std::size_t(side), 0);
    gradients(rgb, width, kDirections, luma.data(), place.data(), length.data());
    const float *p = place.data(), *l = length.data();
    float *bins = out + first, *sum = energy.data();
    for (int y = 0; y < width; ++y)
        for (int x = 0; x < width; ++x, ++p, ++l) {
            const int cell = y / kCell * side + x / kCell;
            const int low = int(*p), high = low + 1 < kDirections ? low + 1 : 0;
            const float part = (*p - float(low)) * *l;
            float *b = bins + std::ptrdiff_t(cell) * channels;
            b[low] += *l - part;
            b[high] += part;
            sum[cell] += *l * *l;
        }
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x) {
            float around = 0;
            for (int v = std::max(y - 1, 0); v <= std::min(y + 1, side - 1); ++v)
                for (int u = std::max(x - 1, 0); u <= std::min(x + 1, side - 1); ++u)
                    around += sum[v * side + u];
            constexpr float kFlat = 400;  // edges weaker than noise of a camera stay weak
            const float scale = 1 / std::sqrt(around + kFlat);
            float *b = bins + std::ptrdiff_t(y * side + x) * channels;
            for (int k = 0; k < kDirections; ++k) b[k] = std::min(b[k] * scale, 0.4f);
        }
}

}  // namespace

void features(const std::uint8_t *rgb, int side, bool colors, bool edges, int channels,
              std::vector<float> &out) {
    out.resize(std::size_t(side) * std::size_t(side) * std::size_t(channels));
    if (!colors || channels > kNames) std::fill(out.begin(), out.end(), 0.0f);
    if (colors) add_colors(rgb, side, channels, out.data());
    if (edges) add_edges(rgb, side, channels, colors ? kColors : 0, out.data());
}

}  // namespace headrace::track

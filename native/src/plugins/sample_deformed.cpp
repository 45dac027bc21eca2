// Sampling at places that the network computes; 0 outside of the map.
#include <algorithm>
#include <cmath>

#include "plugins/sample.h"

namespace headrace::plugins {
namespace {

// Four neighbours and their weights; a neighbour outside has weight 0 and place 0.
struct Corners {
    std::size_t at[4];
    float weight[4];
};

Corners corners_at(float y, float x, std::size_t height, std::size_t width) {
    Corners c{};
    const auto h = static_cast<float>(height), w = static_cast<float>(width);
    if (!(y > -1.0f && x > -1.0f && y < h && x < w)) return c;  // NaN too
    const auto top = static_cast<std::ptrdiff_t>(std::floor(y));
    const auto left = static_cast<std::ptrdiff_t>(std::floor(x));
    const float fy = y - static_cast<float>(top), fx = x - static_cast<float>(left);
    const float weights[] = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
    for (int k = 0; k < 4; ++k) {
        const std::ptrdiff_t row = top + k / 2, column = left + k % 2;
        if (row < 0 || column < 0 || row >= static_cast<std::ptrdiff_t>(height) ||
            column >= static_cast<std::ptrdiff_t>(width))
            continue;
        c.at[k] = static_cast<std::size_t>(row) * width + static_cast<std::size_t>(column);
        c.weight[k] = weights[k];
    }
    return c;
}

}  // namespace

void deformed(const Map &map, std::size_t image, const Convolution &c, const float *offset,
              const float *mask, float *columns) {
    const std::size_t taps = c.kernel_y * c.kernel_x, out = c.out_y * c.out_x;
    const std::size_t plane = map.height * map.width, share = map.channels / c.groups;
    const float *data = map.data + image * map.channels * plane;
    for (std::size_t g = 0; g < c.groups; ++g)
        for (std::size_t tap = 0; tap < taps; ++tap) {
            const float *dy = offset + ((g * taps + tap) * 2) * out, *dx = dy + out;
            const float *factor = mask + (g * taps + tap) * out;
            const auto ky = static_cast<std::ptrdiff_t>(tap / c.kernel_x);
            const auto kx = static_cast<std::ptrdiff_t>(tap % c.kernel_x);
            for (std::size_t p = 0; p < out; ++p) {
                const auto oy = static_cast<std::ptrdiff_t>(p / c.out_x);
                const auto ox = static_cast<std::ptrdiff_t>(p % c.out_x);
                const auto y = static_cast<float>(oy * c.stride_y - c.pad_y + ky * c.dilation_y);
                const auto x = static_cast<float>(ox * c.stride_x - c.pad_x + kx * c.dilation_x);
                Corners corners = corners_at(y + dy[p], x + dx[p], map.height, map.width);
                for (float &weight : corners.weight) weight *= factor[p];
                for (std::size_t i = 0; i < share; ++i) {
                    const std::size_t channel = g * share + i;
                    const float *from = data + channel * plane;
                    float sum = 0.0f;
                    for (int k = 0; k < 4; ++k) sum += corners.weight[k] * from[corners.at[k]];
                    columns[(channel * taps + tap) * out + p] = sum;
                }
            }
        }
}

void attention(const Attention &a, const float *value, const float *locations, const float *weights,
               float *out) {
    const std::size_t stride = a.heads * a.depth;
    for (std::size_t q = 0; q < a.queries; ++q)
        for (std::size_t m = 0; m < a.heads; ++m) {
            float *sum = out + (q * a.heads + m) * a.depth;
            std::fill(sum, sum + a.depth, 0.0f);
            for (std::size_t l = 0; l < a.levels; ++l) {
                const auto h = static_cast<std::size_t>(a.shapes[2 * l]);
                const auto w = static_cast<std::size_t>(a.shapes[2 * l + 1]);
                const float *level =
                    value + static_cast<std::size_t>(a.starts[l]) * stride + m * a.depth;
                for (std::size_t p = 0; p < a.points; ++p) {
                    const std::size_t i = ((q * a.heads + m) * a.levels + l) * a.points + p;
                    const float x = locations[2 * i] * static_cast<float>(w) - 0.5f;
                    const float y = locations[2 * i + 1] * static_cast<float>(h) - 0.5f;
                    const Corners corners = corners_at(y, x, h, w);
                    for (int k = 0; k < 4; ++k) {
                        const float weight = corners.weight[k] * weights[i];
                        if (weight == 0.0f) continue;
                        const float *from = level + corners.at[k] * stride;
                        for (std::size_t d = 0; d < a.depth; ++d) sum[d] += weight * from[d];
                    }
                }
            }
        }
}

}  // namespace headrace::plugins

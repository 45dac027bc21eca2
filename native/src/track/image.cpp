#include "track/image.h"

#include <algorithm>
#include <cmath>

namespace headrace::track {
namespace {

using preprocess::ColorMatrix;
using preprocess::Layout;

std::uint8_t byte_of(float v) { return std::uint8_t(std::clamp(v + 0.5f, 0.0f, 255.0f)); }

// Pixels under the samples of one axis.
void positions(double start, double extent, int count, int size, std::vector<std::int32_t> &at) {
    at.resize(std::size_t(count));
    for (int i = 0; i < count; ++i) {
        const double p = std::floor(start + (i + 0.5) * extent / count);
        at[std::size_t(i)] = std::int32_t(std::clamp(p, 0.0, double(size - 1)));
    }
}

}  // namespace

void sample(const Image &image, double left, double top, double width, double height, int side,
            std::vector<std::uint8_t> &rgb) {
    static thread_local std::vector<std::int32_t> xs, ys;
    positions(left * image.across, width * image.across, side, image.width, xs);
    positions(top * image.down, height * image.down, side, image.height, ys);
    const auto area = std::size_t(side) * std::size_t(side);
    rgb.resize(3 * area);
    std::uint8_t *red = rgb.data(), *green = red + area, *blue = green + area;
    const auto &planes = image.planes;
    const ColorMatrix &m = image.matrix;
    std::size_t i = 0;
    for (int row = 0; row < side; ++row) {
        const std::ptrdiff_t y = ys[std::size_t(row)];
        const std::uint8_t *first = planes[0].data + y * planes[0].stride;
        if (image.layout == Layout::kGray) {
            for (const std::int32_t x : xs) {
                red[i] = green[i] = blue[i] = first[x];
                ++i;
            }
        } else if (image.layout == Layout::kRgb || image.layout == Layout::kBgr) {
            const int r = image.layout == Layout::kRgb ? 0 : 2;
            for (const std::int32_t x : xs) {
                const std::uint8_t *pixel = first + 3 * std::ptrdiff_t(x);
                red[i] = pixel[r];
                green[i] = pixel[1];
                blue[i] = pixel[2 - r];
                ++i;
            }
        } else {
            const bool nv12 = image.layout == Layout::kNv12;
            const std::uint8_t *u = planes[1].data + y / 2 * planes[1].stride;
            const std::uint8_t *v = nv12 ? u + 1 : planes[2].data + y / 2 * planes[2].stride;
            const std::ptrdiff_t step = nv12 ? 2 : 1;
            for (const std::int32_t x : xs) {
                const float luma = (float(first[x]) - m.luma_zero) * m.luma_gain;
                const std::ptrdiff_t pair = x / 2 * step;
                const float cu = float(u[pair]) - 128, cv = float(v[pair]) - 128;
                red[i] = byte_of(luma + m.red_v * cv);
                green[i] = byte_of(luma + m.green_u * cu + m.green_v * cv);
                blue[i] = byte_of(luma + m.blue_u * cu);
                ++i;
            }
        }
    }
}

}  // namespace headrace::track

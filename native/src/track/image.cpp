#include "track/image.h"

#include <algorithm>
#include <cmath>

#define HEADRACE_TARGET
#include "track/sampled_color.h"

namespace headrace::track {
namespace {

using preprocess::Layout;

// Pixels under the samples of one axis.
void add_positions(double start, double extent, std::size_t count, int size,
                   std::vector<std::int32_t> &at) {
    for (std::size_t i = 0; i < count; ++i) {
        const double p = std::floor(start + (double(i) + 0.5) * extent / double(count));
        at.push_back(std::int32_t(std::clamp(p, 0.0, double(size - 1))));
    }
}

}  // namespace

Image::Image(std::array<int, 2> size, std::array<int, 2> of_boxes) : size_(size), scale_{1, 1} {
    for (std::size_t k = 0; k < 2 && of_boxes[0] > 0 && of_boxes[1] > 0; ++k)
        scale_[k] = double(size[k]) / of_boxes[k];
}

void Image::turn(const std::vector<Placement> &regions, int samples, int rows) {
    samples_ = std::size_t(samples);
    rows_ = std::size_t(rows);
    across_.clear();
    down_.clear();
    for (const Placement &region : regions) {
        const Box corner = region.box();
        add_positions(corner[0] * scale_[0], region.width * scale_[0], samples_, size_[0], across_);
        add_positions(corner[1] * scale_[1], region.height * scale_[1], samples_, size_[1], down_);
    }
    fetch();
}

HostImage::HostImage(Layout layout, std::array<preprocess::PlaneView, 3> planes,
                     const preprocess::ColorMatrix &matrix, std::array<int, 2> size,
                     std::array<int, 2> of_boxes)
    : Image(size, of_boxes), layout_(layout), planes_(planes), matrix_(matrix) {}

// Pixels lie far apart, and come while the patch before is looked at.
void HostImage::expect(std::size_t region) const {
    const std::int32_t *const xs = across_.data() + region * samples_;
    const std::int32_t *const ys = down_.data() + region * samples_;
    const bool planar = layout_ == Layout::kI420, nv12 = layout_ == Layout::kNv12;
    const bool packed = layout_ == Layout::kRgb || layout_ == Layout::kBgr;
    const std::ptrdiff_t size = packed ? 3 : 1, first = xs[0], last = xs[samples_ - 1];
    const auto touch = [&](const std::uint8_t *row, std::ptrdiff_t from, std::ptrdiff_t to) {
        const std::ptrdiff_t step =
            std::max<std::ptrdiff_t>(64, (to - from) / std::ptrdiff_t(samples_));
        for (std::ptrdiff_t at = from; at < to; at += step) __builtin_prefetch(row + at);
        __builtin_prefetch(row + to);
    };
    std::int32_t before = -1;
    for (std::size_t i = 0; i < rows_; ++i) {
        const std::ptrdiff_t y = ys[i];
        if (ys[i] == before) continue;
        touch(planes_[0].data + y * planes_[0].stride, first * size, last * size);
        if ((nv12 || planar) && (before < 0 || before / 2 != ys[i] / 2))
            for (std::size_t k = 1; k <= (nv12 ? 1 : 2); ++k)
                touch(planes_[k].data + y / 2 * planes_[k].stride, nv12 ? first : first / 2,
                      nv12 ? last : last / 2);
        before = ys[i];
    }
}

const std::uint8_t *HostImage::patch(std::size_t region) {
    if (region == 0) expect(0);
    if ((region + 1) * samples_ < across_.size()) expect(region + 1);
    const std::size_t area = samples_ * samples_;
    rgb_.resize(3 * area);
    std::uint8_t *red = rgb_.data(), *green = red + area, *blue = green + area;
    const std::int32_t *const xs = across_.data() + region * samples_, *const end = xs + samples_;
    const std::int32_t *const ys = down_.data() + region * samples_;
    std::size_t i = 0;
    for (std::size_t row = 0; row < rows_; ++row) {
        const std::ptrdiff_t y = ys[row];
        const std::uint8_t *first = planes_[0].data + y * planes_[0].stride;
        if (layout_ == Layout::kGray) {
            for (const std::int32_t *x = xs; x != end; ++x, ++i)
                red[i] = green[i] = blue[i] = first[*x];
        } else if (layout_ == Layout::kRgb || layout_ == Layout::kBgr) {
            const int r = layout_ == Layout::kRgb ? 0 : 2;
            for (const std::int32_t *x = xs; x != end; ++x, ++i) {
                const std::uint8_t *pixel = first + 3 * std::ptrdiff_t(*x);
                red[i] = pixel[r];
                green[i] = pixel[1];
                blue[i] = pixel[2 - r];
            }
        } else {
            const bool nv12 = layout_ == Layout::kNv12;
            const std::uint8_t *u = planes_[1].data + y / 2 * planes_[1].stride;
            const std::uint8_t *v = nv12 ? u + 1 : planes_[2].data + y / 2 * planes_[2].stride;
            const std::ptrdiff_t step = nv12 ? 2 : 1;
            for (const std::int32_t *x = xs; x != end; ++x, ++i) {
                const std::ptrdiff_t pair = *x / 2 * step;
                rgb_of(first[*x], u[pair], v[pair], matrix_, red + i, green + i, blue + i);
            }
        }
    }
    return rgb_.data();
}

}  // namespace headrace::track

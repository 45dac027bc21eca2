// Instance masks: values to pixels of the frame, contours, run lengths. Python has checked the
// arguments; headrace.meta.masks says what each means.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "core/vectorise.h"  // last, see there
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::results {
namespace {

using core::Fill;
using core::In;
using Values = In<float, nb::ndim<2>>;
using Places = In<float, nb::ndim<1>>;
using Pixels = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr float kFar = 1e30f;  // infinity times a weight of 0 must not be NaN

float tamed(float value) {
    if (std::isnan(value)) return -kFar;  // background, also for its neighbours
    return std::isinf(value) ? std::copysign(kFar, value) : value;
}

// The two values around a place and the share of the second; edges are repeated.
struct Neighbours {
    std::vector<int32_t> low, high;
    std::vector<float> part;

    Neighbours(const Places &places, size_t size) {
        const size_t count = places.shape(0);
        low.reserve(count), high.reserve(count), part.reserve(count);
        const float last = static_cast<float>(size) - 1.0f;
        for (size_t i = 0; i < count; ++i) {
            const float raw = places.data()[i] * static_cast<float>(size) - 0.5f;
            const float at = std::min(std::max(raw, 0.0f), last);
            low.push_back(static_cast<int32_t>(at));
            high.push_back(std::min(low.back() + 1, static_cast<int32_t>(size) - 1));
            part.push_back(at - static_cast<float>(low.back()));
        }
    }
};

HEADRACE_WIDE void above(const float *__restrict first, const float *__restrict second, float part,
                         float limit, uint8_t *__restrict out, size_t count) {
    for (size_t x = 0; x < count; ++x)
        out[x] = static_cast<uint8_t>(first[x] + (second[x] - first[x]) * part > limit);
}

void foreground(Values mask, Places xs, Places ys, float limit, Fill<uint8_t, nb::ndim<2>> out) {
    core::Unlocked release;
    const size_t rows = mask.shape(0), columns = mask.shape(1), width = xs.shape(0);
    const Neighbours across(xs, columns), down(ys, rows);
    std::vector<float> wide(rows * width);  // each row of values at the frame's columns
    std::vector<float> row(columns);
    for (size_t y = 0; y < rows; ++y) {
        std::transform(mask.data() + y * columns, mask.data() + (y + 1) * columns, row.begin(),
                       tamed);
        float *to = wide.data() + y * width;
        for (size_t x = 0; x < width; ++x) {
            const float first = row[static_cast<size_t>(across.low[x])];
            to[x] = first + (row[static_cast<size_t>(across.high[x])] - first) * across.part[x];
        }
    }
    for (size_t y = 0; y < ys.shape(0); ++y)
        above(wide.data() + static_cast<size_t>(down.low[y]) * width,
              wide.data() + static_cast<size_t>(down.high[y]) * width, down.part[y], limit,
              out.data() + y * width, width);
}

// Those of a row that have foreground on all four sides.
HEADRACE_WIDE void inner(const uint8_t *__restrict above, const uint8_t *__restrict row,
                         const uint8_t *__restrict below, uint8_t *__restrict out, size_t width) {
    for (size_t x = 0; x < width; ++x)
        out[x] = above[x] & below[x] & row[x] & row[x - 1] & row[x + 1];
}

HEADRACE_WIDE void add(const uint8_t *__restrict pixels, const uint8_t *__restrict left,
                       uint8_t *__restrict out, size_t width) {
    for (size_t x = 0; x < width; ++x) out[x] = static_cast<uint8_t>(2 * pixels[x] - left[x]);
}

void contoured(Pixels pixels, size_t line, Fill<uint8_t, nb::ndim<2>> out) {
    core::Unlocked release;
    const size_t height = pixels.shape(0), width = pixels.shape(1);
    const size_t stride = width + 2;  // the array's border is an edge
    std::vector<uint8_t> now(stride * (height + 2)), next(now.size());
    for (size_t y = 0; y < height; ++y)
        std::memcpy(&now[(y + 1) * stride + 1], pixels.data() + y * width, width);
    for (size_t step = 0; step < line; ++step) {
        for (size_t y = 1; y <= height; ++y) {
            const uint8_t *row = &now[y * stride + 1];
            inner(row - stride, row, row + stride, &next[y * stride + 1], width);
        }
        now.swap(next);
    }
    for (size_t y = 0; y < height; ++y)
        add(pixels.data() + y * width, &now[(y + 1) * stride + 1], out.data() + y * width, width);
}

// Rows where a column changes, in the order of rows; `visit(x)` for each.
template <typename Visit>
void changes(const uint8_t *before, const uint8_t *row, size_t width, Visit visit) {
    size_t x = 0;
    for (; x + 8 <= width; x += 8) {  // mostly nothing changes
        uint64_t a, b;
        std::memcpy(&a, before + x, 8);
        std::memcpy(&b, row + x, 8);
        if (a == b) continue;
        for (size_t k = x; k < x + 8; ++k)
            if (before[k] != row[k]) visit(k);
    }
    for (; x < width; ++x)
        if (before[x] != row[x]) visit(x);
}

// Places where runs begin and end in turn, counted down the columns of the image.
std::vector<uint64_t> edges_of(const Pixels &mask, uint64_t left, uint64_t top,
                               uint64_t image_height) {
    struct Change {
        uint32_t x, y;
    };
    const size_t height = mask.shape(0), width = mask.shape(1);
    const std::vector<uint8_t> nothing(width);
    std::vector<Change> found;
    std::vector<size_t> starts(width + 1);  // of each column in what is sorted
    const uint8_t *before = nothing.data();
    for (size_t y = 0; y <= height; ++y) {
        const uint8_t *row = y < height ? mask.data() + y * width : nothing.data();
        changes(before, row, width, [&](size_t x) {
            found.push_back({static_cast<uint32_t>(x), static_cast<uint32_t>(y)});
            ++starts[x + 1];
        });
        before = row;
    }
    for (size_t x = 0; x < width; ++x) starts[x + 1] += starts[x];
    std::vector<uint64_t> edges(found.size());
    for (const Change &change : found)
        edges[starts[change.x]++] = (change.x + left) * image_height + change.y + top;
    return edges;
}

// A number as 5-bit groups in printable characters, the lowest first, with its sign.
void append_packed(std::string &text, int64_t value) {
    for (bool more = true; more;) {
        const int64_t bits = value & 31;
        value >>= 5;
        more = bits & 16 ? value != -1 : value != 0;
        text.push_back(static_cast<char>(bits + (more ? 32 : 0) + 48));
    }
}

nb::str run_lengths(Pixels mask, uint64_t left, uint64_t top, uint64_t width, uint64_t height) {
    std::string text;
    {
        core::Unlocked release;
        std::vector<int64_t> counts;
        uint64_t last = 0;
        for (const uint64_t edge : edges_of(mask, left, top, height)) {
            if (edge == last && !counts.empty()) {  // a run goes on in the next column
                last -= static_cast<uint64_t>(counts.back());
                counts.pop_back();
                continue;
            }
            counts.push_back(static_cast<int64_t>(edge - last));
            last = edge;
        }
        if (last < width * height || counts.empty())
            counts.push_back(static_cast<int64_t>(width * height - last));
        for (size_t i = 0; i < counts.size(); ++i)
            append_packed(text, i > 2 ? counts[i] - counts[i - 2] : counts[i]);
    }
    return nb::str(text.data(), text.size());
}

}  // namespace

void bind_masks(nb::module_ &m) {
    m.def("mask_foreground", &foreground, "mask"_a.noconvert(), "xs"_a.noconvert(),
          "ys"_a.noconvert(), "limit"_a, "out"_a.noconvert(),
          "Whether bilinear values at ys x xs, in 0..1 of the mask, are above the limit.");
    m.def("mask_contoured", &contoured, "pixels"_a.noconvert(), "line"_a, "out"_a.noconvert(),
          "0 for background, 1 inside, 2 within line steps of the edge.");
    m.def("mask_run_lengths", &run_lengths, "mask"_a.noconvert(), "left"_a, "top"_a, "width"_a,
          "height"_a, "COCO's compressed run lengths of a mask at a place of an image.");
}

}  // namespace headrace::results

// The samplers' tables as the GPU's kernel reads them (native/gpu/preprocess_kernel.cu,
// `AxisTable`).
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"
#include "preprocess/axis.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::preprocess {
namespace {

using Rects = core::In<int32_t, nb::shape<-1, 4>>;
// For each item: whole planes and chroma planes, x and y, place and stride.
using Places = core::Fill<int32_t, nb::shape<-1, 2, 2, 2>>;
using Words = std::vector<int32_t>;

void add(Words &words, const Words &more) { words.insert(words.end(), more.begin(), more.end()); }

void add_bits(Words &words, const std::vector<float> &values) {
    const size_t start = words.size();
    words.resize(start + values.size());
    std::memcpy(words.data() + start, values.data(), values.size() * sizeof(float));
}

void add_axis(Words &words, const Axis &axis, Filter filter, bool rows, int32_t *place) {
    place[0] = int32_t(words.size());
    place[1] = 0;
    if (filter == Filter::kNearest) return add(words, nearest_table(axis));
    if (filter == Filter::kBilinear) {
        const LinearTable table = linear_table(axis);
        add(words, table.first);
        return add(words, table.weight);
    }
    if (filter == Filter::kOpencv) {
        const OpencvTable table = opencv_table(axis, rows);
        add(words, table.first);
        add(words, table.second);
        for (size_t d = 0; d < size_t(axis.count); ++d)
            words.push_back(int32_t(uint32_t(uint16_t(table.weights[2 * d])) |
                                    uint32_t(uint16_t(table.weights[2 * d + 1])) << 16));
        return;
    }
    const TapTable table = tap_table(axis, filter);
    place[1] = table.stride;
    add(words, table.first);
    add(words, table.taps);
    add_bits(words, table.weights);
}

auto sampling_tables(const Rects &src, const Rects &dst, std::array<int, 2> frame_size, int filter,
                     bool chroma, const Places &places) {
    Words words;
    {
        core::Unlocked release;
        for (size_t i = 0; i < src.shape(0); ++i) {
            const int32_t *from = src.data() + 4 * i, *to = dst.data() + 4 * i;
            int32_t *place = places.data() + 8 * i;
            std::fill_n(place, 8, 0);
            if (from[2] <= 0) continue;  // its item becomes zeros
            for (int axis = 0; axis < 2; ++axis) {
                const Axis whole =
                    Axis::crop(from[axis], from[2 + axis], to[2 + axis], frame_size[size_t(axis)]);
                const auto kind = Filter(filter);
                add_axis(words, whole, kind, axis == 1, place + 2 * axis);
                if (chroma && kind != Filter::kOpencv)
                    add_axis(words, whole.halved(), kind, axis == 1, place + 4 + 2 * axis);
            }
        }
    }
    return core::array_of(std::move(words));
}

}  // namespace

void bind_tables(nb::module_ &m) {
    m.def("sampling_tables", &sampling_tables, "src"_a, "dst"_a, "frame_size"_a, "filter"_a,
          "chroma"_a, "places"_a.noconvert(),
          "The tables of N crops of frames of one size, for the GPU's kernel: (words,) int32. Fills"
          " `places`, (N, 2, 2, 2): planes, axes, place and stride. Releases the GIL.");
}

}  // namespace headrace::preprocess

// Colours of a class map or mask over a part of a frame's plane; Python has checked the arguments.
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/unlocked.h"
#include "core/vectorise.h"  // last, see there
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::results {
namespace {

using PlaneArray = nb::ndarray<uint8_t, nb::device::cpu>;
using SlotArray = nb::ndarray<const uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using PlaceArray = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PixelSlots = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using TableArray = nb::ndarray<const uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// value = (value * keep[slot] + add[slot]) / 128 with keep + opacity = 128, so 16 bits suffice.
HEADRACE_WIDE void mix(uint8_t *__restrict out, const uint16_t *__restrict keep,
                       const uint16_t *__restrict add, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = uint8_t(uint16_t(out[i] * keep[i] + add[i]) >> 7);
}

// What each slot does to a value, for one row of pixels of C channels.
template <size_t C>
void factors(const uint16_t *__restrict slots, const int32_t *__restrict xs, size_t width,
             const uint16_t *__restrict keep, const uint16_t *__restrict add,
             uint16_t *__restrict keep_row, uint16_t *__restrict add_row) {
    for (size_t x = 0; x < width; ++x) {
        const size_t slot = slots[xs[x]];
        for (size_t c = 0; c < C; ++c) {
            keep_row[x * C + c] = keep[slot];
            add_row[x * C + c] = add[slot * C + c];
        }
    }
}

void blend(PlaneArray plane, SlotArray slots, PlaceArray xs, PlaceArray ys, TableArray keep,
           TableArray add) {
    const size_t height = plane.shape(0), width = plane.shape(1);
    const size_t channels = plane.ndim() == 3 ? 3 : 1;
    const ptrdiff_t stride = plane.stride(0);
    core::Unlocked release;
    std::vector<uint16_t> keep_row(width * channels), add_row(width * channels);
    int32_t made = -1;
    for (size_t y = 0; y < height; ++y) {
        const int32_t from = ys.data()[y];
        if (from != made) {  // a map is mostly smaller than the frame, so rows repeat
            const uint16_t *row = slots.data() + size_t(from) * slots.shape(1);
            (channels == 3 ? factors<3> : factors<1>)(row, xs.data(), width, keep.data(),
                                                      add.data(), keep_row.data(), add_row.data());
            made = from;
        }
        mix(plane.data() + ptrdiff_t(y) * stride, keep_row.data(), add_row.data(),
            width * channels);
    }
}

// As `mix`, for two slots and the see-through one, without a table to look up.
HEADRACE_WIDE void mix_two(uint8_t *__restrict out, const uint8_t *__restrict slots,
                           const uint16_t *keep, const uint16_t *add, size_t count) {
    const uint16_t keep_1 = keep[1], keep_2 = keep[2], add_1 = add[1], add_2 = add[2];
    for (size_t i = 0; i < count; ++i) {
        const auto first = static_cast<uint16_t>(slots[i] == 1 ? 0xffff : 0);
        const auto second = static_cast<uint16_t>(slots[i] == 2 ? 0xffff : 0);
        const auto none = static_cast<uint16_t>(~(first | second));
        const auto k = static_cast<uint16_t>((keep_1 & first) | (keep_2 & second) | (128 & none));
        const auto a = static_cast<uint16_t>((add_1 & first) | (add_2 & second));
        out[i] = static_cast<uint8_t>(static_cast<uint16_t>(out[i] * k + a) >> 7);
    }
}

void mix_pixels(uint8_t *out, const uint8_t *slots, const uint16_t *keep, const uint16_t *add,
                size_t width, size_t channels) {
    for (size_t x = 0; x < width; ++x) {
        const size_t slot = slots[x];
        if (!slot) continue;
        for (size_t c = 0; c < channels; ++c) {
            uint8_t &value = out[x * channels + c];
            value = static_cast<uint8_t>((value * keep[slot] + add[slot * channels + c]) >> 7);
        }
    }
}

void blend_pixels(PlaneArray plane, PixelSlots slots, int first_x, int first_y, int step,
                  TableArray keep, TableArray add) {
    const size_t height = plane.shape(0), width = plane.shape(1);
    const size_t channels = plane.ndim() == 3 ? 3 : 1;
    const ptrdiff_t stride = plane.stride(0);
    core::Unlocked release;
    std::vector<uint8_t> thinned(step > 1 ? width : 0);
    for (size_t y = 0; y < height; ++y) {
        const int from = std::max(static_cast<int>(y) * step + first_y, 0);
        const uint8_t *row = slots.data() + static_cast<size_t>(from) * slots.shape(1);
        if (step > 1) {
            for (size_t x = 0; x < width; ++x)
                thinned[x] = row[std::max(static_cast<int>(x) * step + first_x, 0)];
            row = thinned.data();
        }
        uint8_t *out = plane.data() + static_cast<ptrdiff_t>(y) * stride;
        if (channels == 1 && keep.shape(0) == 3)
            mix_two(out, row, keep.data(), add.data(), width);
        else
            mix_pixels(out, row, keep.data(), add.data(), width, channels);
    }
}

}  // namespace

void bind_blend(nb::module_ &m) {
    m.def("draw_blend", &blend, "plane"_a.noconvert(), "slots"_a.noconvert(), "xs"_a.noconvert(),
          "ys"_a.noconvert(), "keep"_a.noconvert(), "add"_a.noconvert(),
          "Blend the colour of each pixel's slot over a plane. Releases the GIL.");
    m.def("draw_blend_pixels", &blend_pixels, "plane"_a.noconvert(), "slots"_a.noconvert(),
          "first_x"_a, "first_y"_a, "step"_a, "keep"_a.noconvert(), "add"_a.noconvert(),
          "As draw_blend, for slots that are pixels of the frame: sample (x, y) of the plane has "
          "the slot at (first_x + step * x, first_y + step * y), from 0 on.");
}

}  // namespace headrace::results

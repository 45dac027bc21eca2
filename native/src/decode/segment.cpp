// The class of every pixel of a score volume, in one pass.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/floats.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::decode {
namespace {

// Pixels taken together: best and class stay in the first-level cache while classes stream by.
constexpr std::ptrdiff_t kBlock = 1024;
[[maybe_unused]] constexpr std::ptrdiff_t kRows = 8;  // classes per visit of the running best

// A volume whose classes lie `class_stride` elements apart and whose pixels `pixel_stride`.
// The winner is the first of the largest values above `limit`; NaN compares false and never wins.
void scan(const float *scores, std::ptrdiff_t classes, std::ptrdiff_t pixels,
          std::ptrdiff_t class_stride, std::ptrdiff_t pixel_stride, float limit,
          std::int32_t *map) {
    alignas(32) float best[kBlock];
    for (std::ptrdiff_t start = 0; start < pixels; start += kBlock) {
        const std::ptrdiff_t n = std::min(kBlock, pixels - start);
        std::int32_t *to = map + start;
        std::fill_n(best, n, limit);
        std::fill_n(to, n, -1);
        for (std::ptrdiff_t c = 0; c < classes; ++c) {
            const float *from = scores + c * class_stride + start * pixel_stride;
            const auto id = static_cast<std::int32_t>(c);
            for (std::ptrdiff_t i = 0; i < n; ++i) {
                const float value = from[i * pixel_stride];
                const bool better = value > best[i];
                best[i] = better ? value : best[i];
                to[i] = better ? id : to[i];
            }
        }
    }
}

#if defined(HEADRACE_VECTOR)
using core::Floats, core::Ints, core::kLanes;

// As many pixels as a vector has lanes: the best value of each so far and its class.
struct Pixels {
    Floats best;
    Ints id;
};

HEADRACE_VECTOR inline void update(Pixels &pixels, Floats values, std::ptrdiff_t number) {
    const auto better = core::above(values, pixels.best);
    pixels.best = core::higher(values, pixels.best);
    pixels.id = core::chosen(better, core::repeated(static_cast<std::int32_t>(number)), pixels.id);
}

// As `scan` of interleaved classes; takes whole vectors of pixels and returns how many those are.
HEADRACE_VECTOR std::ptrdiff_t interleaved_vectors(const float *scores, std::ptrdiff_t classes,
                                                   std::ptrdiff_t pixels, float limit,
                                                   std::int32_t *map) {
    const std::ptrdiff_t whole = pixels - pixels % kLanes;
    for (std::ptrdiff_t start = 0; start < whole; start += kLanes) {
        Pixels some{core::repeated(limit), core::repeated(std::int32_t{-1})};
        for (std::ptrdiff_t c = 0; c < classes; c += kLanes) {
            const std::ptrdiff_t n = std::min(kLanes, classes - c);
            const float *from = scores + start * classes + c;
            Floats rows[kLanes];
            if (n == kLanes) {
                for (std::ptrdiff_t i = 0; i < kLanes; ++i)
                    rows[i] = core::load(from + i * classes);
            } else {
                for (std::ptrdiff_t i = 0; i < kLanes; ++i)
                    rows[i] = core::load_some(from + i * classes, n);
            }
            core::transpose(rows);
            for (std::ptrdiff_t k = 0; k < n; ++k) update(some, rows[k], c + k);
        }
        core::store(map + start, some.id);
    }
    return whole;
}

// As `scan` of classes in planes; takes whole vectors of pixels and returns how many those are.
HEADRACE_VECTOR std::ptrdiff_t planar_vectors(const float *scores, std::ptrdiff_t classes,
                                              std::ptrdiff_t pixels, float limit,
                                              std::int32_t *map) {
    alignas(32) float best[kBlock];
    const std::ptrdiff_t whole = pixels - pixels % kLanes;
    for (std::ptrdiff_t start = 0; start < whole; start += kBlock) {
        const std::ptrdiff_t n = std::min(kBlock, whole - start);
        std::fill_n(best, n, limit);
        std::fill_n(map + start, n, -1);
        for (std::ptrdiff_t c = 0; c < classes; c += kRows) {
            const std::ptrdiff_t rows = std::min(kRows, classes - c);
            for (std::ptrdiff_t i = 0; i < n; i += kLanes) {
                const float *from = scores + c * pixels + start + i;
                std::int32_t *to = map + start + i;
                Pixels some{core::load(best + i), core::load(to)};
                for (std::ptrdiff_t k = 0; k < rows; ++k, from += pixels)
                    update(some, core::load(from), c + k);
                core::store(best + i, some.best);
                core::store(to, some.id);
            }
        }
    }
    return whole;
}
#endif

void planar(const float *scores, std::ptrdiff_t classes, std::ptrdiff_t pixels, float limit,
            std::int32_t *map, [[maybe_unused]] bool simd) {
    std::ptrdiff_t done = 0;
#if defined(HEADRACE_VECTOR)
    if (simd && core::has_vectors()) done = planar_vectors(scores, classes, pixels, limit, map);
#endif
    scan(scores + done, classes, pixels - done, pixels, 1, limit, map + done);
}

void interleaved(const float *scores, std::ptrdiff_t classes, std::ptrdiff_t pixels, float limit,
                 std::int32_t *map, [[maybe_unused]] bool simd) {
    std::ptrdiff_t done = 0;
#if defined(HEADRACE_VECTOR)
    if (simd && core::has_vectors())
        done = interleaved_vectors(scores, classes, pixels, limit, map);
#endif
    scan(scores + done * classes, classes, pixels - done, 1, classes, limit, map + done);
}

using Volume = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Map = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void class_map(const Volume &scores, float limit, bool nhwc, const Map &map, bool simd) {
    const auto pixels = static_cast<std::ptrdiff_t>(map.shape(0));
    const auto classes = static_cast<std::ptrdiff_t>(scores.shape(nhwc ? 1 : 0));
    core::Unlocked release;
    (nhwc ? interleaved : planar)(scores.data(), classes, pixels, limit, map.data(), simd);
}

}  // namespace

void bind_segment(nb::module_ &m) {
    m.def("class_map", &class_map, "scores"_a, "limit"_a, "nhwc"_a, "map"_a, "simd"_a = true,
          "Class of each pixel: scores is (C, pixels), or (pixels, C) when nhwc; map is (pixels,). "
          "The first of the largest values above limit wins, -1 for none. Releases the GIL.");
}

}  // namespace headrace::decode

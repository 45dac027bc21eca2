// The class of every pixel of a score volume, in one pass.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/unlocked.h"
#include "module.h"

#if defined(__x86_64__) && defined(__gnu_linux__)
#include <immintrin.h>
#define HEADRACE_AVX2 __attribute__((target("avx2")))
#endif

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

#if defined(HEADRACE_AVX2)
// Eight pixels: the best value so far and, as the bits of integers, its class.
struct Eight {
    __m256 best, id;
};

HEADRACE_AVX2 inline void update(Eight &eight, __m256 values, std::ptrdiff_t number) {
    const __m256 better = _mm256_cmp_ps(values, eight.best, _CMP_GT_OQ);
    const __m256i id = _mm256_set1_epi32(static_cast<int>(number));
    eight.best = _mm256_blendv_ps(eight.best, values, better);
    eight.id = _mm256_blendv_ps(eight.id, _mm256_castsi256_ps(id), better);
}

// Rows r0..r7 of eight classes each become columns: eight pixels of one class.
HEADRACE_AVX2 inline void transpose(__m256 (&r)[8]) {
    __m256 t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; ++k) {
            u[i + 2 * k] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], _MM_SHUFFLE(1, 0, 1, 0));
            u[i + 2 * k + 1] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], _MM_SHUFFLE(3, 2, 3, 2));
        }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

// As `scan` of interleaved classes; takes whole eights of pixels and returns how many those are.
HEADRACE_AVX2 std::ptrdiff_t interleaved_avx2(const float *scores, std::ptrdiff_t classes,
                                              std::ptrdiff_t pixels, float limit,
                                              std::int32_t *map) {
    const std::ptrdiff_t whole = pixels & ~std::ptrdiff_t{7};
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (std::ptrdiff_t start = 0; start < whole; start += 8) {
        Eight eight{_mm256_set1_ps(limit), _mm256_castsi256_ps(_mm256_set1_epi32(-1))};
        for (std::ptrdiff_t c = 0; c < classes; c += 8) {
            const int n = static_cast<int>(std::min<std::ptrdiff_t>(8, classes - c));
            const float *from = scores + start * classes + c;
            __m256 rows[8];
            if (n == 8) {
                for (int i = 0; i < 8; ++i) rows[i] = _mm256_loadu_ps(from + i * classes);
            } else {
                const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
                for (int i = 0; i < 8; ++i) rows[i] = _mm256_maskload_ps(from + i * classes, there);
            }
            transpose(rows);
            for (int k = 0; k < n; ++k) update(eight, rows[k], c + k);
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(map + start),
                            _mm256_castps_si256(eight.id));
    }
    return whole;
}

// As `scan` of classes in planes; takes whole eights of pixels and returns how many those are.
HEADRACE_AVX2 std::ptrdiff_t planar_avx2(const float *scores, std::ptrdiff_t classes,
                                         std::ptrdiff_t pixels, float limit, std::int32_t *map) {
    alignas(32) float best[kBlock];
    const std::ptrdiff_t whole = pixels & ~std::ptrdiff_t{7};
    for (std::ptrdiff_t start = 0; start < whole; start += kBlock) {
        const std::ptrdiff_t n = std::min(kBlock, whole - start);
        std::fill_n(best, n, limit);
        std::fill_n(map + start, n, -1);
        for (std::ptrdiff_t c = 0; c < classes; c += kRows) {
            const std::ptrdiff_t rows = std::min(kRows, classes - c);
            for (std::ptrdiff_t i = 0; i < n; i += 8) {
                const float *from = scores + c * pixels + start + i;
                auto *to = reinterpret_cast<__m256i *>(map + start + i);
                Eight eight{_mm256_load_ps(best + i), _mm256_castsi256_ps(_mm256_loadu_si256(to))};
                for (std::ptrdiff_t k = 0; k < rows; ++k, from += pixels)
                    update(eight, _mm256_loadu_ps(from), c + k);
                _mm256_store_ps(best + i, eight.best);
                _mm256_storeu_si256(to, _mm256_castps_si256(eight.id));
            }
        }
    }
    return whole;
}
#endif

void planar(const float *scores, std::ptrdiff_t classes, std::ptrdiff_t pixels, float limit,
            std::int32_t *map, [[maybe_unused]] bool simd) {
    std::ptrdiff_t done = 0;
#if defined(HEADRACE_AVX2)
    if (simd && __builtin_cpu_supports("avx2"))
        done = planar_avx2(scores, classes, pixels, limit, map);
#endif
    scan(scores + done, classes, pixels - done, pixels, 1, limit, map + done);
}

void interleaved(const float *scores, std::ptrdiff_t classes, std::ptrdiff_t pixels, float limit,
                 std::int32_t *map, [[maybe_unused]] bool simd) {
    std::ptrdiff_t done = 0;
#if defined(HEADRACE_AVX2)
    if (simd && __builtin_cpu_supports("avx2"))
        done = interleaved_avx2(scores, classes, pixels, limit, map);
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

// Vectors of floats under one set of names: eight with AVX2, if the processor has it, and four with
// NEON, which each AArch64 has. A comparison with NaN is false; both give the bits of plain loops.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#define HEADRACE_VECTOR __attribute__((target("avx2")))
#elif defined(__aarch64__)
#include <arm_neon.h>

#include <cstring>
#define HEADRACE_VECTOR
#endif

namespace headrace::core {

#if defined(__x86_64__)

using Floats = __m256;
using Ints = __m256i;
using Mask = __m256;
constexpr std::ptrdiff_t kLanes = 8;

inline bool has_vectors() { return __builtin_cpu_supports("avx2"); }

HEADRACE_VECTOR inline Floats load(const float *from) { return _mm256_loadu_ps(from); }
HEADRACE_VECTOR inline Ints load(const std::int32_t *from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
}
// The first `n`, which are fewer than kLanes; zeros behind them.
HEADRACE_VECTOR inline Floats load_some(const float *from, std::ptrdiff_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
}
HEADRACE_VECTOR inline void store(float *to, Floats v) { _mm256_storeu_ps(to, v); }
HEADRACE_VECTOR inline void store(std::int32_t *to, Ints v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), v);
}
HEADRACE_VECTOR inline Floats repeated(float v) { return _mm256_set1_ps(v); }
HEADRACE_VECTOR inline Ints repeated(std::int32_t v) { return _mm256_set1_epi32(v); }

HEADRACE_VECTOR inline Mask above(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
HEADRACE_VECTOR inline Mask reaches(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
HEADRACE_VECTOR inline Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
HEADRACE_VECTOR inline bool any(Mask mask) { return _mm256_movemask_ps(mask) != 0; }
// A bit of each lane, the first one lowest.
HEADRACE_VECTOR inline unsigned bits(Mask mask) { return unsigned(_mm256_movemask_ps(mask)); }

HEADRACE_VECTOR inline Ints chosen(Mask mask, Ints a, Ints b) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), mask));
}
// a > b ? a : b: the second one for NaN and for equal zeros, as max_ps has it.
HEADRACE_VECTOR inline Floats higher(Floats a, Floats b) { return _mm256_max_ps(a, b); }
// Of lanes without NaN.
HEADRACE_VECTOR inline float highest(Floats v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

// Rows become columns.
HEADRACE_VECTOR inline void transpose(Floats (&r)[kLanes]) {
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

#elif defined(__aarch64__)

using Floats = float32x4_t;
using Ints = int32x4_t;
using Mask = uint32x4_t;
constexpr std::ptrdiff_t kLanes = 4;

inline bool has_vectors() { return true; }

inline Floats load(const float *from) { return vld1q_f32(from); }
inline Ints load(const std::int32_t *from) { return vld1q_s32(from); }
// The first `n`, which are fewer than kLanes; zeros behind them.
inline Floats load_some(const float *from, std::ptrdiff_t n) {
    float some[kLanes] = {};
    std::memcpy(some, from, static_cast<std::size_t>(n) * sizeof *from);
    return vld1q_f32(some);
}
inline void store(float *to, Floats v) { vst1q_f32(to, v); }
inline void store(std::int32_t *to, Ints v) { vst1q_s32(to, v); }
inline Floats repeated(float v) { return vdupq_n_f32(v); }
inline Ints repeated(std::int32_t v) { return vdupq_n_s32(v); }

inline Mask above(Floats a, Floats b) { return vcgtq_f32(a, b); }
inline Mask reaches(Floats a, Floats b) { return vcgeq_f32(a, b); }
inline Mask either(Mask a, Mask b) { return vorrq_u32(a, b); }
inline bool any(Mask mask) { return vmaxvq_u32(mask) != 0; }
// A bit of each lane, the first one lowest.
inline unsigned bits(Mask mask) {
    constexpr std::uint32_t kBits[kLanes] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, vld1q_u32(kBits)));
}

inline Ints chosen(Mask mask, Ints a, Ints b) { return vbslq_s32(mask, a, b); }
// a > b ? a : b: the second one for NaN and for equal zeros, which vmaxq_f32 has otherwise.
inline Floats higher(Floats a, Floats b) { return vbslq_f32(above(a, b), a, b); }
// Of lanes without NaN.
inline float highest(Floats v) { return vmaxvq_f32(v); }

// Rows become columns.
inline void transpose(Floats (&r)[kLanes]) {
    const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
    const float64x2_t odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
    const float64x2_t odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
    r[0] = vreinterpretq_f32_f64(vzip1q_f64(even01, even23));
    r[1] = vreinterpretq_f32_f64(vzip1q_f64(odd01, odd23));
    r[2] = vreinterpretq_f32_f64(vzip2q_f64(even01, even23));
    r[3] = vreinterpretq_f32_f64(vzip2q_f64(odd01, odd23));
}

#else

inline bool has_vectors() { return false; }

#endif

}  // namespace headrace::core

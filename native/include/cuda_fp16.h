// Half-precision numbers on the host. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_CUDA_FP16_H
#define HEADRACE_CUDA_FP16_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vector_types.h"

struct __half {
    uint16_t bits;

    __half() = default;
    __half(float value) : bits(fromFloat(value)) {}
    operator float() const { return toFloat(bits); }

    // Rounds to nearest, ties to even.
    static uint16_t fromFloat(float value) {
        uint32_t x;
        std::memcpy(&x, &value, sizeof(x));
        const uint32_t sign = (x >> 16) & 0x8000U;
        x &= 0x7FFFFFFFU;
        if (x > 0x7F800000U) return static_cast<uint16_t>(sign | 0x7E00U);   // not a number
        if (x >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7C00U);  // too large
        if (x < 0x38800000U) {                                               // denormal or zero
            if (x < 0x33000000U) return static_cast<uint16_t>(sign);
            const uint32_t shift = 126U - (x >> 23);
            const uint32_t mantissa = (x & 0x7FFFFFU) | 0x800000U;
            uint32_t half = mantissa >> shift;
            const uint32_t rest = mantissa & ((1U << shift) - 1U), middle = 1U << (shift - 1U);
            if (rest > middle || (rest == middle && (half & 1U))) ++half;
            return static_cast<uint16_t>(sign | half);
        }
        uint32_t half = ((x >> 23) - 112U) << 10 | ((x >> 13) & 0x3FFU);
        const uint32_t rest = x & 0x1FFFU;
        if (rest > 0x1000U || (rest == 0x1000U && (half & 1U))) ++half;  // may carry into infinity
        return static_cast<uint16_t>(sign | half);
    }
    static float toFloat(uint16_t half) {
        const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
        uint32_t exponent = (half >> 10) & 0x1FU, mantissa = half & 0x3FFU, x;
        if (exponent == 0x1FU) {
            x = sign | 0x7F800000U | mantissa << 13;
        } else if (exponent) {
            x = sign | (exponent + 112U) << 23 | mantissa << 13;
        } else if (mantissa) {
            exponent = 113U;
            while (!(mantissa & 0x400U)) mantissa <<= 1, --exponent;
            x = sign | exponent << 23 | (mantissa & 0x3FFU) << 13;
        } else {
            x = sign;
        }
        float value;
        std::memcpy(&value, &x, sizeof(value));
        return value;
    }
};
typedef __half half;

// Of two halves a half is made, of a half and another number what a float makes of it.
template <typename T>
using HeadraceWithHalf =
    typename std::common_type<float,
                              typename std::enable_if<std::is_arithmetic<T>::value, T>::type>::type;
#define HEADRACE_HALF(op)                                                        \
    static inline __half operator op(const __half &a, const __half &b) {         \
        return __half(static_cast<float>(a) op static_cast<float>(b));           \
    }                                                                            \
    template <typename T>                                                        \
    static inline HeadraceWithHalf<T> operator op(const __half &a, const T &b) { \
        return static_cast<float>(a) op b;                                       \
    }                                                                            \
    template <typename T>                                                        \
    static inline HeadraceWithHalf<T> operator op(const T &a, const __half &b) { \
        return a op static_cast<float>(b);                                       \
    }                                                                            \
    static inline __half &operator op## = (__half & a, const __half &b) { return a = a op b; }
HEADRACE_HALF(+)
HEADRACE_HALF(-)
HEADRACE_HALF(*)
HEADRACE_HALF(/)
#undef HEADRACE_HALF

struct __half2 {
    __half x, y;
};
typedef __half2 half2;

// Of one half, or of each of two.
#define HEADRACE_HALF(name, value)                                \
    static inline __half name(__half a) { return __half(value); } \
    static inline __half2 name##2(__half2 v) {                    \
        __half2 out = {name(v.x), name(v.y)};                     \
        return out;                                               \
    }
#define HEADRACE_OF(function) function(static_cast<float>(a))
HEADRACE_HALF(__hneg, -static_cast<float>(a))
HEADRACE_HALF(__habs, HEADRACE_OF(std::fabs))
#undef HEADRACE_HALF
#define HEADRACE_HALF(name, value)                                   \
    static inline __half h##name(__half a) { return __half(value); } \
    static inline __half2 h2##name(__half2 v) {                      \
        __half2 out = {h##name(v.x), h##name(v.y)};                  \
        return out;                                                  \
    }
HEADRACE_HALF(exp, HEADRACE_OF(std::exp))
HEADRACE_HALF(exp2, HEADRACE_OF(std::exp2))
HEADRACE_HALF(log, HEADRACE_OF(std::log))
HEADRACE_HALF(log2, HEADRACE_OF(std::log2))
HEADRACE_HALF(log10, HEADRACE_OF(std::log10))
HEADRACE_HALF(sqrt, HEADRACE_OF(std::sqrt))
HEADRACE_HALF(rsqrt, 1.0f / HEADRACE_OF(std::sqrt))
HEADRACE_HALF(rcp, 1.0f / static_cast<float>(a))
HEADRACE_HALF(sin, HEADRACE_OF(std::sin))
HEADRACE_HALF(cos, HEADRACE_OF(std::cos))
HEADRACE_HALF(ceil, HEADRACE_OF(std::ceil))
HEADRACE_HALF(floor, HEADRACE_OF(std::floor))
HEADRACE_HALF(trunc, HEADRACE_OF(std::trunc))
HEADRACE_HALF(rint, HEADRACE_OF(std::nearbyint))
#undef HEADRACE_OF
#undef HEADRACE_HALF

// Of two halves, or of each two of a pair.
#define HEADRACE_HALF(name, value)                                          \
    static inline __half name(__half a, __half b) { return __half(value); } \
    static inline __half2 name##2(__half2 v, __half2 w) {                   \
        __half2 out = {name(v.x, w.x), name(v.y, w.y)};                     \
        return out;                                                         \
    }
HEADRACE_HALF(__hadd, a + b)
HEADRACE_HALF(__hsub, a - b)
HEADRACE_HALF(__hmul, a *b)
HEADRACE_HALF(__hmax, std::fmax(static_cast<float>(a), static_cast<float>(b)))
HEADRACE_HALF(__hmin, std::fmin(static_cast<float>(a), static_cast<float>(b)))
#undef HEADRACE_HALF
static inline __half __hdiv(__half a, __half b) { return a / b; }
static inline __half2 __h2div(__half2 v, __half2 w) {
    __half2 out = {v.x / w.x, v.y / w.y};
    return out;
}
// Rounded once: a product of two halves is exact in a double.
static inline __half __hfma(__half a, __half b, __half c) {
    return __half(static_cast<float>(std::fma(static_cast<double>(static_cast<float>(a)),
                                              static_cast<double>(static_cast<float>(b)),
                                              static_cast<double>(static_cast<float>(c)))));
}
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    __half2 out = {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
    return out;
}

#define HEADRACE_HALF(name, op)                                \
    static inline bool name(__half a, __half b) {              \
        return static_cast<float>(a) op static_cast<float>(b); \
    }
HEADRACE_HALF(__heq, ==)
HEADRACE_HALF(__hne, !=)
HEADRACE_HALF(__hlt, <)
HEADRACE_HALF(__hle, <=)
HEADRACE_HALF(__hgt, >)
HEADRACE_HALF(__hge, >=)
#undef HEADRACE_HALF
static inline bool __hisnan(__half a) { return (a.bits & 0x7FFFU) > 0x7C00U; }
static inline int __hisinf(__half a) {
    return (a.bits & 0x7FFFU) != 0x7C00U ? 0 : a.bits & 0x8000U ? -1 : 1;
}

static inline __half __float2half(float value) { return __half(value); }
static inline __half __float2half_rn(float value) { return __half(value); }
static inline __half __double2half(double value) { return __half(static_cast<float>(value)); }
static inline float __half2float(__half value) { return static_cast<float>(value); }

// A half beside `value`, if the nearest one is on the other side: towards zero, down, up.
static inline __half headrace_half_beside(float value, bool up, bool down) {
    __half near(value);
    const float found = static_cast<float>(near);
    if ((found > value && down) || (found < value && up)) {
        const bool away = up == (value > 0.0f);
        if (!(near.bits & 0x7FFFU))
            near.bits = static_cast<uint16_t>(up ? 1U : 0x8001U);
        else
            near.bits = static_cast<uint16_t>(near.bits + (away ? 1 : -1));
    }
    return near;
}
static inline __half __float2half_rd(float v) { return headrace_half_beside(v, false, true); }
static inline __half __float2half_ru(float v) { return headrace_half_beside(v, true, false); }
static inline __half __float2half_rz(float v) { return headrace_half_beside(v, v < 0, v > 0); }

#define HEADRACE_HALF(type, name)                                                             \
    static inline __half __##name##2half_rn(type v) { return __half(static_cast<float>(v)); } \
    static inline __half __##name##2half_rd(type v) {                                         \
        return __float2half_rd(static_cast<float>(v));                                        \
    }                                                                                         \
    static inline __half __##name##2half_ru(type v) {                                         \
        return __float2half_ru(static_cast<float>(v));                                        \
    }                                                                                         \
    static inline __half __##name##2half_rz(type v) {                                         \
        return __float2half_rz(static_cast<float>(v));                                        \
    }                                                                                         \
    static inline type __half2##name##_rn(__half v) {                                         \
        return static_cast<type>(std::nearbyint(static_cast<float>(v)));                      \
    }                                                                                         \
    static inline type __half2##name##_rd(__half v) {                                         \
        return static_cast<type>(std::floor(static_cast<float>(v)));                          \
    }                                                                                         \
    static inline type __half2##name##_ru(__half v) {                                         \
        return static_cast<type>(std::ceil(static_cast<float>(v)));                           \
    }                                                                                         \
    static inline type __half2##name##_rz(__half v) {                                         \
        return static_cast<type>(static_cast<float>(v));                                      \
    }
HEADRACE_HALF(int, int)
HEADRACE_HALF(unsigned int, uint)
HEADRACE_HALF(short, short)
HEADRACE_HALF(unsigned short, ushort)
#undef HEADRACE_HALF

static inline unsigned short __half_as_ushort(__half v) { return v.bits; }
static inline short __half_as_short(__half v) { return static_cast<short>(v.bits); }
static inline __half __ushort_as_half(unsigned short bits) {
    __half v;
    v.bits = bits;
    return v;
}
static inline __half __short_as_half(short bits) {
    return __ushort_as_half(static_cast<unsigned short>(bits));
}
static inline __half2 __halves2half2(__half x, __half y) {
    __half2 v = {x, y};
    return v;
}
static inline __half2 __half2half2(__half v) { return __halves2half2(v, v); }
static inline __half2 __float2half2_rn(float v) { return __half2half2(__half(v)); }
static inline __half2 __floats2half2_rn(float x, float y) {
    return __halves2half2(__half(x), __half(y));
}
static inline __half __low2half(__half2 v) { return v.x; }
static inline __half __high2half(__half2 v) { return v.y; }
static inline float __low2float(__half2 v) { return static_cast<float>(v.x); }
static inline float __high2float(__half2 v) { return static_cast<float>(v.y); }
static inline float2 __half22float2(__half2 v) {
    float2 out = {static_cast<float>(v.x), static_cast<float>(v.y)};
    return out;
}
static inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }

#endif  // HEADRACE_CUDA_FP16_H

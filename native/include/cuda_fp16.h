// Half-precision numbers on the host. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_CUDA_FP16_H
#define HEADRACE_CUDA_FP16_H

#include <cstdint>
#include <cstring>

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

static inline __half __float2half(float value) { return __half(value); }
static inline __half __float2half_rn(float value) { return __half(value); }
static inline float __half2float(__half value) { return static_cast<float>(value); }

#endif  // HEADRACE_CUDA_FP16_H

#pragma once
// The arithmetic of one pixel: what the row kernels of every instruction set and the GPU's kernel
// compute alike, bit for bit. Compiled by C++ and by NVRTC, so it includes no standard header;
// whoever includes it has the integers of <cstdint>, and says by HEADRACE_TARGET how its functions
// are compiled. No multiply-add may be fused.

#include "preprocess/matrix.h"

namespace headrace::preprocess {
namespace {

// Bilinear between rows: 128 * (a + (b - a) * weight / 2^15).
HEADRACE_TARGET inline int blended(int a, int b, int weight) {
    return a * 128 + (((b - a) * 128 * weight + 16384) >> 15);
}

constexpr float kLinearUnit = 1.0f / (128 * 16384);

// Bilinear between columns: two results of `blended`, with weights in 1 / 2^14.
HEADRACE_TARGET inline float linear_level(int first, int second, int first_weight,
                                          int second_weight) {
    return float(first * first_weight + second * second_weight) * kLinearUnit;
}

// The high half of a product of 16 bits, as FFmpeg's vector code has it.
HEADRACE_TARGET inline int16_t high_product(int16_t a, int16_t b) {
    return int16_t((int(a) * int(b)) >> 16);
}

HEADRACE_TARGET inline int16_t saturated(int16_t level) {
    const int16_t positive = level < 0 ? int16_t(0) : level;
    return positive > 255 ? int16_t(255) : positive;
}

// `opencv`: what chroma adds to luma; U and V as 8 * (byte - 128).
HEADRACE_TARGET inline int16_t centred(uint8_t chroma) { return int16_t(8 * chroma - 1024); }

HEADRACE_TARGET inline int16_t green_part(int16_t cb, int16_t cr, const IntMatrix &m) {
    return int16_t(high_product(cb, m.green_u) + high_product(cr, m.green_v));
}

// One byte of R, G or B from luma and what chroma adds to it.
HEADRACE_TARGET inline int16_t level_of(uint8_t luma, int16_t more, const IntMatrix &m) {
    const auto zeroed = int16_t(8 * luma - m.luma_zero);
    return saturated(int16_t(high_product(zeroed, m.luma_gain) + more));
}

// Two neighbours of a row, weights in 1 / 2^11: 2048 / 16 of a level.
HEADRACE_TARGET inline int16_t mixed(int first, int second, int first_weight, int second_weight) {
    return int16_t((first * first_weight + second * second_weight) >> 4);
}

// A byte from two such rows.
HEADRACE_TARGET inline uint8_t blended_byte(int16_t above, int16_t below, int16_t low,
                                            int16_t high) {
    return uint8_t(int16_t(high_product(above, low) + high_product(below, high) + 2) >> 2);
}

// Nearest byte, halves up. Levels are small, and clamping integers keeps loops vectorisable where
// comparing floats might trap.
HEADRACE_TARGET inline float to_byte(float level) {
    const int byte = int(level + 0.5f);
    const int positive = byte < 0 ? 0 : byte;
    return float(positive > 255 ? 255 : positive);
}

HEADRACE_TARGET inline float luma_of(float y, const ColorMatrix &m) {
    return (y - m.luma_zero) * m.luma_gain;
}

HEADRACE_TARGET inline float red_of(float luma, float cr, const ColorMatrix &m) {
    return to_byte(luma + cr * m.red_v);
}

HEADRACE_TARGET inline float green_of(float luma, float cb, float cr, const ColorMatrix &m) {
    return to_byte(luma + (cb * m.green_u + cr * m.green_v));
}

HEADRACE_TARGET inline float blue_of(float luma, float cb, const ColorMatrix &m) {
    return to_byte(luma + cb * m.blue_u);
}

// Thousandths are exact for bytes, so a grey pixel keeps its level and halves go up.
HEADRACE_TARGET inline float grey_of(float r, float g, float b) {
    return to_byte((299.0f * r + 587.0f * g + 114.0f * b) * 0.001f);
}

}  // namespace

}  // namespace headrace::preprocess

#pragma once
// The colour of one sample of a visual tracker, alike on the CPU and on a GPU. Includes no standard
// header, for NVRTC; whoever includes it has the integers of <cstdint> and says by HEADRACE_TARGET
// how its functions are compiled. No multiply-add may be fused.
#include "preprocess/matrix.h"

namespace headrace::track {

HEADRACE_TARGET inline uint8_t nearest_byte(float v) {
    v += 0.5f;
    return uint8_t(v < 0 ? 0.0f : v > 255 ? 255.0f : v);
}

// Red, green and blue of Y, U and V.
HEADRACE_TARGET inline void rgb_of(int y, int u, int v, const preprocess::ColorMatrix &m,
                                   uint8_t *red, uint8_t *green, uint8_t *blue) {
    const float luma = (float(y) - m.luma_zero) * m.luma_gain;
    const float cu = float(u) - 128, cv = float(v) - 128;
    *red = nearest_byte(luma + m.red_v * cv);
    *green = nearest_byte(luma + m.green_u * cu + m.green_v * cv);
    *blue = nearest_byte(luma + m.blue_u * cu);
}

}  // namespace headrace::track

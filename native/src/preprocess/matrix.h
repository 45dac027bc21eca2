#pragma once
// Needs the integers of <cstdint>; includes nothing, for NVRTC.

namespace headrace::preprocess {

// YUV to RGB: Y = (y - luma_zero) * luma_gain, R = Y + red_v * (v - 128), and so on.
struct ColorMatrix {
    float luma_zero, luma_gain, red_v, green_u, green_v, blue_u;
};

// The same in FFmpeg's integers: gains in 1 / 2^13 of a level, each product rounded down by itself.
struct IntMatrix {
    int16_t luma_zero, luma_gain, red_v, green_u, green_v, blue_u;
};

}  // namespace headrace::preprocess

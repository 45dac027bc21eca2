#pragma once
#include <cstddef>
#include <cstdint>

// The inner loops of pre-processing: one row at a time, in scratch memory that stays in cache.
// There is one table of them per instruction set; all compute bit-identical results.

// YUV to RGB: Y = (y - luma_zero) * luma_gain, R = Y + red_v * (v - 128), and so on.
struct ColorMatrix {
    float luma_zero, luma_gain, red_v, green_u, green_v, blue_u;
};

// Where one channel of a row goes: out[x] = scale * (byte - mean).
struct ChannelOut {
    float *out;
    const float *mean_row;  // mean of every pixel, or null:
    float mean;             // the same for all
};

struct RowKernels {
    // Scratch rows have room for `scratch_slack` elements more than asked for, written or read
    // by whole vectors.
    static constexpr int scratch_slack = 32;

    // Picks the pixels `index[0 ... count)` of a row with N interleaved components into N byte rows.
    void (*nearest[4])(const uint8_t *row, int pixels, const int32_t *index, int count,
                       uint8_t *const *to);

    // 128 * (a + (b - a) * weight / 2^15) of n bytes, in 16 bits.
    void (*blend)(const uint8_t *a, const uint8_t *b, int weight, int n, int16_t *to);

    // Interpolates such a row, N components interleaved, into N rows of levels (0 ... 255).
    void (*linear[4])(const int16_t *row, const int32_t *index, const int32_t *weight, int count,
                      float *const *to);

    // sum += weight * row, n bytes.
    void (*accumulate)(const uint8_t *row, float weight, int n, float *sum);

    // Weighted sums of neighbours, N components interleaved, into N rows of levels.
    void (*taps[4])(const float *row, const int32_t *first, const int32_t *taps,
                    const float *weights, int stride, int count, float *const *to);

    // From bytes (`_u8`) or levels (`_f32`) to normalised output; every value is rounded to a byte
    // once, after the colour conversion.
    void (*yuv_u8)(const uint8_t *const *from, int n, const ColorMatrix &m, float scale,
                   const ChannelOut *rgb);
    void (*yuv_f32)(const float *const *from, int n, const ColorMatrix &m, float scale,
                    const ChannelOut *rgb);
    void (*luma_u8)(const uint8_t *from, int n, const ColorMatrix &m, float scale,
                    const ChannelOut &to);
    void (*luma_f32)(const float *from, int n, const ColorMatrix &m, float scale,
                     const ChannelOut &to);
    void (*plain_u8)(const uint8_t *from, int n, float scale, const ChannelOut &to);
    void (*plain_f32)(const float *from, int n, float scale, const ChannelOut &to);
    void (*grey_u8)(const uint8_t *const *rgb, int n, float scale, const ChannelOut &to);
    void (*grey_f32)(const float *const *rgb, int n, float scale, const ChannelOut &to);

    // to[3 * x + c] = from[c][x].
    void (*interleave)(const float *const *from, int n, float *to);
};

const RowKernels &generic_row_kernels();
const RowKernels *avx2_row_kernels();  // null if the processor has no AVX2

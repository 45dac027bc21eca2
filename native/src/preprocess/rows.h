#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "preprocess/matrix.h"

namespace headrace::preprocess {

// The inner loops of pre-processing: one row at a time, in scratch memory that stays in cache.
// There is one table of them per instruction set; all compute bit-identical results.

// Where one channel of a row goes: out[x] = scale * (byte - mean).
struct ChannelOut {
    float *out;
    const float *mean_row;  // mean of every pixel, or null:
    float mean;             // the same for all
};

// Copies bytes of a row to 16-byte blocks, any byte to any place of its block: `parts` loads of 16
// bytes from `base` on, each shuffled by its own mask. Made once, used for every row.
struct Shuffle {
    static constexpr int kBlock = 16, kMostParts = 8;
    int parts = 0;               // 0: not usable, the source bytes of some block lie too far apart
    std::vector<int32_t> base;   // of each block
    std::vector<uint8_t> masks;  // parts * 16 of each block
};
// from[i] is the byte that goes to place i; rows are `row_bytes` long and never read beyond.
Shuffle make_shuffle(const std::vector<int32_t> &from, int row_bytes);

// How the columns of one plane are picked or interpolated.
struct Columns {
    int count;                   // outputs
    std::vector<int32_t> index;  // pixel of each output; with `pair` the first of two, ascending
    std::vector<int32_t> pair;   // weights in 1 / 2^14: first, second << 16; empty for nearest;
                                 // for pairs how many pixels further the second is: 0 or 1
    int safe;                    // outputs before it may be read with a word beyond their pixels
    Shuffle shuffle;
};
Columns make_columns(std::vector<int32_t> index, const std::vector<int32_t> &weight, int components,
                     int pixels, bool shuffle);

// For `RowKernels::pairs`; `second` is `first` or the pixel after it.
Columns make_pairs(std::vector<int32_t> first, const std::vector<int32_t> &second, int components,
                   int pixels, bool shuffle);

struct RowKernels {
    // Output rows have room for `slack` elements more than asked for, written by whole vectors.
    static constexpr int kSlack = 32;

    bool shuffles;  // whether `Columns::shuffle` is of use

    // Picks pixels of a row with N interleaved components into N byte rows.
    void (*nearest[4])(const uint8_t *row, const Columns &columns, uint8_t *const *to);

    // Interpolates between two rows, N components interleaved, into N rows of levels (0 ... 255).
    // 128 * (a + (b - a) * weight / 2^15) in 16 bits, then the pairs of neighbours in 32 bits.
    void (*linear[4])(const uint8_t *a, const uint8_t *b, int weight, const Columns &columns,
                      float *const *to);

    // sum += weight * row, n bytes.
    void (*accumulate)(const uint8_t *row, float weight, int n, float *sum);

    // Weighted sums of neighbours, N components interleaved, into N rows of levels.
    void (*taps[4])(const float *row, const int32_t *first, const int32_t *taps,
                    const float *weights, int stride, int count, float *const *to);

    // `Filter::opencv`, of n outputs each; weights are those of its table, two for each output.
    // Its neighbours of each of N interleaved components, side by side, into N rows of bytes.
    void (*pairs[4])(const uint8_t *row, const Columns &columns, uint8_t *const *to);
    // What chroma adds to luma in R, G and B, as FFmpeg computes it.
    void (*chroma)(const uint8_t *u, const uint8_t *v, int n, const IntMatrix &m,
                   int16_t *const *to);
    // Converts neighbours to R, G, B bytes and weighs them: 2048 / 16 of a level.
    void (*mix_yuv)(const uint8_t *y, const int16_t *const *chroma, const int16_t *weights, int n,
                    const IntMatrix &m, int16_t *const *to);
    // The same of one component that needs no conversion.
    void (*mix)(const uint8_t *from, const int16_t *weights, int n, int16_t *to);
    // Bytes from two such rows; `weight` is that of the one below.
    void (*blend)(const int16_t *above, const int16_t *below, int weight, int n, uint8_t *to);

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
// With AVX2 or NEON; null if the processor has neither.
const RowKernels *vector_row_kernels();

}  // namespace headrace::preprocess

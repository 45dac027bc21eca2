// Bodies of the row kernels. Included once per instruction set, with HEADRACE_TARGET naming it: the
// same arithmetic in the same order, so vectorised loops give the same bits (no fused
// multiply-add).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "preprocess/pixel.h"
#include "preprocess/rows.h"

namespace headrace::preprocess {

// The rows of one call never overlap; said so that compilers vectorise loops over many of them.
#if defined(__clang__)
#define HEADRACE_ROWS_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HEADRACE_ROWS_APART _Pragma("GCC ivdep")
#else
#define HEADRACE_ROWS_APART
#endif

namespace {

// Both from output `begin` on, for what is left after whole vectors.
template <int N>
HEADRACE_TARGET inline void nearest_from(int begin, const uint8_t *row, const Columns &columns,
                                         uint8_t *const *to) {
    const int32_t *index = columns.index.data();
    for (int c = 0; c < N; ++c) {
        uint8_t *out = to[c];
        for (int x = begin; x < columns.count; ++x) out[x] = row[N * index[x] + c];
    }
}

template <int N>
HEADRACE_TARGET void nearest_plain(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    nearest_from<N>(0, row, columns, to);
}

template <int N>
HEADRACE_TARGET inline void linear_from(int begin, const uint8_t *a, const uint8_t *b, int weight,
                                        const Columns &columns, float *const *to) {
    for (int x = begin; x < columns.count; ++x) {
        const int pair = columns.pair[size_t(x)], at = N * columns.index[size_t(x)];
        const int second = pair >> 16, first = pair & 0xffff;
        const int next = second ? at + N : at;
        for (int c = 0; c < N; ++c)
            to[c][x] = linear_level(blended(a[at + c], b[at + c], weight),
                                    blended(a[next + c], b[next + c], weight), first, second);
    }
}

template <int N>
HEADRACE_TARGET void linear_plain(const uint8_t *a, const uint8_t *b, int weight,
                                  const Columns &columns, float *const *to) {
    linear_from<N>(0, a, b, weight, columns, to);
}

HEADRACE_TARGET void accumulate_plain(const uint8_t *row, float weight, int n, float *sum) {
    for (int i = 0; i < n; ++i) sum[i] += weight * float(row[i]);
}

template <int N>
HEADRACE_TARGET void taps_plain(const float *row, const int32_t *first, const int32_t *taps,
                                const float *weights, int stride, int count, float *const *to) {
    for (int x = 0; x < count; ++x) {
        const float *at = row + N * first[x];
        const float *w = weights + ptrdiff_t(x) * stride;
        float sum[N] = {};
        for (int i = 0; i < taps[x]; ++i)
            for (int c = 0; c < N; ++c) sum[c] += w[i] * at[N * i + c];
        for (int c = 0; c < N; ++c) to[c][x] = sum[c];
    }
}

template <int N>
HEADRACE_TARGET inline void pairs_from(int begin, const uint8_t *row, const Columns &columns,
                                       uint8_t *const *to) {
    for (int x = begin; x < columns.count; ++x) {
        const int at = N * columns.index[size_t(x)], next = at + N * columns.pair[size_t(x)];
        for (int c = 0; c < N; ++c) {
            to[c][2 * x] = row[at + c];
            to[c][2 * x + 1] = row[next + c];
        }
    }
}

template <int N>
HEADRACE_TARGET void pairs_plain(const uint8_t *row, const Columns &columns, uint8_t *const *to) {
    pairs_from<N>(0, row, columns, to);
}

HEADRACE_TARGET inline void chroma_row(const uint8_t *__restrict u, const uint8_t *__restrict v,
                                       int n, const IntMatrix m, int16_t *__restrict r,
                                       int16_t *__restrict g, int16_t *__restrict b) {
    HEADRACE_ROWS_APART
    for (int i = 0; i < 2 * n; ++i) {
        const int16_t cb = centred(u[i]), cr = centred(v[i]);
        r[i] = high_product(cr, m.red_v);
        g[i] = green_part(cb, cr, m);
        b[i] = high_product(cb, m.blue_u);
    }
}

HEADRACE_TARGET void chroma_plain(const uint8_t *u, const uint8_t *v, int n, const IntMatrix &m,
                                  int16_t *const *to) {
    chroma_row(u, v, n, m, to[0], to[1], to[2]);
}

HEADRACE_TARGET void mix_yuv_plain(const uint8_t *y, const int16_t *const *chroma,
                                   const int16_t *weights, int n, const IntMatrix &m,
                                   int16_t *const *to) {
    const IntMatrix gains = m;
    for (int c = 0; c < 3; ++c) {
        const uint8_t *__restrict luma = y;
        const int16_t *__restrict more = chroma[c], *__restrict w = weights;
        int16_t *__restrict out = to[c];
        HEADRACE_ROWS_APART
        for (int x = 0; x < n; ++x) {
            const int first = level_of(luma[2 * x], more[2 * x], gains);
            const int second = level_of(luma[2 * x + 1], more[2 * x + 1], gains);
            out[x] = mixed(first, second, w[2 * x], w[2 * x + 1]);
        }
    }
}

HEADRACE_TARGET void mix_plain(const uint8_t *from, const int16_t *weights, int n, int16_t *to) {
    const uint8_t *__restrict a = from;
    const int16_t *__restrict w = weights;
    int16_t *__restrict out = to;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) out[x] = mixed(a[2 * x], a[2 * x + 1], w[2 * x], w[2 * x + 1]);
}

HEADRACE_TARGET void blend_plain(const int16_t *above, const int16_t *below, int weight, int n,
                                 uint8_t *to) {
    const int16_t *__restrict a = above, *__restrict b = below;
    uint8_t *__restrict out = to;
    const auto low = int16_t(2048 - weight), high = int16_t(weight);
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) out[x] = blended_byte(a[x], b[x], low, high);
}

template <class T>
HEADRACE_TARGET inline float as_byte(T level) {
    if constexpr (sizeof(T) == 1)
        return float(level);
    else
        return to_byte(level);
}

template <bool PerPixel>
HEADRACE_TARGET inline float normalised(float byte, const ChannelOut &to, int x, float scale) {
    return scale * (byte - (PerPixel ? to.mean_row[x] : to.mean));
}

template <class T, bool PerPixel>
HEADRACE_TARGET inline void yuv_row(const T *__restrict y, const T *__restrict u,
                                    const T *__restrict v, int n, const ColorMatrix m, float scale,
                                    const ChannelOut r, const ChannelOut g, const ChannelOut b) {
    float *__restrict red = r.out, *__restrict green = g.out, *__restrict blue = b.out;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) {
        const float luma = luma_of(float(y[x]), m);
        const float cb = float(u[x]) - 128.0f, cr = float(v[x]) - 128.0f;
        red[x] = normalised<PerPixel>(red_of(luma, cr, m), r, x, scale);
        green[x] = normalised<PerPixel>(green_of(luma, cb, cr, m), g, x, scale);
        blue[x] = normalised<PerPixel>(blue_of(luma, cb, m), b, x, scale);
    }
}

template <class T>
HEADRACE_TARGET void yuv_plain(const T *const *from, int n, const ColorMatrix &m, float scale,
                               const ChannelOut *rgb) {
    if (rgb[0].mean_row)
        yuv_row<T, true>(from[0], from[1], from[2], n, m, scale, rgb[0], rgb[1], rgb[2]);
    else
        yuv_row<T, false>(from[0], from[1], from[2], n, m, scale, rgb[0], rgb[1], rgb[2]);
}

template <class T, bool PerPixel>
HEADRACE_TARGET inline void luma_row(const T *__restrict y, int n, const ColorMatrix m, float scale,
                                     const ChannelOut to) {
    float *__restrict out = to.out;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x)
        out[x] = normalised<PerPixel>(to_byte(luma_of(float(y[x]), m)), to, x, scale);
}

template <class T>
HEADRACE_TARGET void luma_plain(const T *from, int n, const ColorMatrix &m, float scale,
                                const ChannelOut &to) {
    to.mean_row ? luma_row<T, true>(from, n, m, scale, to)
                : luma_row<T, false>(from, n, m, scale, to);
}

template <class T, bool PerPixel>
HEADRACE_TARGET inline void plain_row(const T *__restrict from, int n, float scale,
                                      const ChannelOut to) {
    float *__restrict out = to.out;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) out[x] = normalised<PerPixel>(as_byte(from[x]), to, x, scale);
}

template <class T>
HEADRACE_TARGET void plain_plain(const T *from, int n, float scale, const ChannelOut &to) {
    to.mean_row ? plain_row<T, true>(from, n, scale, to) : plain_row<T, false>(from, n, scale, to);
}

template <class T, bool PerPixel>
HEADRACE_TARGET inline void grey_row(const T *__restrict r, const T *__restrict g,
                                     const T *__restrict b, int n, float scale,
                                     const ChannelOut to) {
    float *__restrict out = to.out;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) {
        const float grey = grey_of(float(r[x]), float(g[x]), float(b[x]));
        out[x] = normalised<PerPixel>(grey, to, x, scale);
    }
}

template <class T>
HEADRACE_TARGET void grey_plain(const T *const *rgb, int n, float scale, const ChannelOut &to) {
    to.mean_row ? grey_row<T, true>(rgb[0], rgb[1], rgb[2], n, scale, to)
                : grey_row<T, false>(rgb[0], rgb[1], rgb[2], n, scale, to);
}

HEADRACE_TARGET void interleave_plain(const float *const *from, int n, float *to) {
    const float *__restrict a = from[0], *__restrict b = from[1], *__restrict c = from[2];
    float *__restrict out = to;
    HEADRACE_ROWS_APART
    for (int x = 0; x < n; ++x) {
        out[3 * x] = a[x];
        out[3 * x + 1] = b[x];
        out[3 * x + 2] = c[x];
    }
}

inline RowKernels plain_kernels() {
    RowKernels k{};
    k.nearest[1] = nearest_plain<1>;
    k.nearest[2] = nearest_plain<2>;
    k.nearest[3] = nearest_plain<3>;
    k.linear[1] = linear_plain<1>;
    k.linear[2] = linear_plain<2>;
    k.linear[3] = linear_plain<3>;
    k.accumulate = accumulate_plain;
    k.taps[1] = taps_plain<1>;
    k.taps[2] = taps_plain<2>;
    k.taps[3] = taps_plain<3>;
    k.pairs[1] = pairs_plain<1>;
    k.pairs[2] = pairs_plain<2>;
    k.pairs[3] = pairs_plain<3>;
    k.chroma = chroma_plain;
    k.mix_yuv = mix_yuv_plain;
    k.mix = mix_plain;
    k.blend = blend_plain;
    k.yuv_u8 = yuv_plain<uint8_t>;
    k.yuv_f32 = yuv_plain<float>;
    k.luma_u8 = luma_plain<uint8_t>;
    k.luma_f32 = luma_plain<float>;
    k.plain_u8 = plain_plain<uint8_t>;
    k.plain_f32 = plain_plain<float>;
    k.grey_u8 = grey_plain<uint8_t>;
    k.grey_f32 = grey_plain<float>;
    k.interleave = interleave_plain;
    return k;
}

}  // namespace

}  // namespace headrace::preprocess

#include "track/correlation_loops.h"

#include <cstddef>
#include <cstring>

#include "core/vectorise.h"
// behind it
#include "track/fourier.h"

namespace headrace::track {
namespace {

constexpr float kRegular = 0.05f;  // of the VPI manual

using Whole = std::int32_t __attribute__((vector_size(kWide * sizeof(std::int32_t))));

// Calls f with 0 to V - 1, and the first channel of that eight: the last eight of a coefficient may
// have some of those before among them.
template <int V, class F>
HEADRACE_INLINE void eights(int channels, const F &f) {
    each(std::make_integer_sequence<int, V>(),
         [&](auto v) HEADRACE_LAMBDA { f(v, v < V - 1 ? v * kWide : channels - kWide); });
}

// 1 for each of the last eight channels that is in no eight before, for each other one 0.
HEADRACE_INLINE void mark_new(int channels, Vector &v) {
    float fresh[kWide];
    for (int j = 0; j < kWide; ++j) fresh[j] = j >= kWide - 1 - (channels - 1) % kWide;
    load(v, fresh);
}

// Half of the sum of eight numbers, as four.
HEADRACE_INLINE void fold(const Vector &v, float *to) {
    float all[kWide];
    store(all, v);
    for (int j = 0; j < 4; ++j) to[j] = all[j] + all[j + 4];
}

HEADRACE_INLINE float sum_of(const float *four) {
    return (four[0] + four[1]) + (four[2] + four[3]);
}

constexpr int kMostSize = 36 * 19;

template <int V>
HEADRACE_WIDE void respond_by(const Features &f, const float *filter_re, const float *filter_im,
                              const float *weights, int columns, int pitch, float *re, float *im) {
    Vector weight[V], fresh;
    eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA { load(weight[v], weights + at); });
    mark_new(f.channels, fresh);
    weight[V - 1] *= fresh;
    float real[4 * kMostSize], imaginary[4 * kMostSize];
    for (int i = 0; i < f.size; ++i) {
        const std::ptrdiff_t first = std::ptrdiff_t(i) * f.channels;
        Vector x{}, y{};
        eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA {
            Vector a, b, c, d;
            load(a, f.re + first + at);
            load(b, f.im + first + at);
            load(c, filter_re + first + at);
            load(d, filter_im + first + at);
            x += weight[v] * (a * c - b * d);
            y += weight[v] * (a * d + b * c);
        });
        fold(x, real + 4 * i);
        fold(y, imaginary + 4 * i);
    }
    for (int y = 0, i = 0; i < f.size; ++y)
        for (int x = 0; x < columns; ++x, ++i) {
            re[y * pitch + x] = sum_of(real + 4 * i);
            im[y * pitch + x] = sum_of(imaginary + 4 * i);
        }
}

template <int V>
HEADRACE_WIDE void teach_by(const Features &f, const Lesson &lesson, float *filter_re,
                            float *filter_im, float *shares) {
    float power[4 * kMostSize], scale[kMostSize];
    Vector fresh;
    mark_new(f.channels, fresh);
    for (int i = 0; i < f.size; ++i) {
        const std::ptrdiff_t first = std::ptrdiff_t(i) * f.channels;
        Vector sum{};
        eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA {
            Vector a, b;
            load(a, f.re + first + at);
            load(b, f.im + first + at);
            const Vector square = a * a + b * b;
            sum += v < V - 1 ? square : square * fresh;
        });
        fold(sum, power + 4 * i);
    }
    for (int i = 0; i < f.size; ++i) scale[i] = 1 / (kRegular + sum_of(power + 4 * i));
    const float keep = 1 - lesson.rate;
    Vector share[V] = {};
    for (int i = 0; i < f.size; ++i) {
        const std::ptrdiff_t first = std::ptrdiff_t(i) * f.channels;
        const float part = lesson.energy[i] * scale[i], rate = lesson.rate * scale[i];
        const float g = lesson.re[i] * rate, h = lesson.im[i] * rate;
        Vector c[V], d[V];
        eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA {
            Vector a, b;
            load(a, f.re + first + at);
            load(b, f.im + first + at);
            load(c[v], filter_re + first + at);
            load(d[v], filter_im + first + at);
            share[v] += part * (a * a + b * b);
            c[v] = keep * c[v] + (a * g + b * h);
            d[v] = keep * d[v] + (a * h - b * g);
        });
        eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA {
            store(filter_re + first + at, c[v]);
            store(filter_im + first + at, d[v]);
        });
    }
    eights<V>(f.channels, [&](auto v, int at) HEADRACE_LAMBDA { store(shares + at, share[v]); });
}

template <int V>
HEADRACE_WIDE void center_by(const float *window_re, const float *window_im, int side, int columns,
                             int channels, float *re, float *im) {
    Vector mean[V], a[V], b[V];
    eights<V>(channels, [&](auto v, int at) HEADRACE_LAMBDA {
        load(mean[v], re + at);
        mean[v] /= window_re[0];
    });
    for (int i = 0; i < 2 * side; ++i) {
        const std::ptrdiff_t first = std::ptrdiff_t(i / 2 * columns + i % 2) * channels;
        eights<V>(channels, [&](auto v, int at) HEADRACE_LAMBDA {
            load(a[v], re + first + at);
            load(b[v], im + first + at);
            a[v] -= mean[v] * window_re[i];
            b[v] -= mean[v] * window_im[i];
        });
        eights<V>(channels, [&](auto v, int at) HEADRACE_LAMBDA {
            store(re + first + at, a[v]);
            store(im + first + at, b[v]);
        });
    }
}

}  // namespace

void respond(const Features &f, const float *filter_re, const float *filter_im,
             const float *weights, int columns, int pitch, float *re, float *im) {
    const auto by = f.channels <= 16   ? respond_by<2>
                    : f.channels <= 24 ? respond_by<3>
                                       : respond_by<4>;
    by(f, filter_re, filter_im, weights, columns, pitch, re, im);
}

void teach(const Features &f, const Lesson &lesson, float *filter_re, float *filter_im,
           float *shares) {
    const auto by = f.channels <= 16 ? teach_by<2> : f.channels <= 24 ? teach_by<3> : teach_by<4>;
    by(f, lesson, filter_re, filter_im, shares);
}

void center(const float *window_re, const float *window_im, int side, int columns, int channels,
            float *re, float *im) {
    const auto by = channels <= 16 ? center_by<2> : channels <= 24 ? center_by<3> : center_by<4>;
    by(window_re, window_im, side, columns, channels, re, im);
}

HEADRACE_WIDE void name_row(const std::uint8_t *rgb, std::ptrdiff_t area, const std::uint8_t *names,
                            const float *window, int count, int channels, float *to) {
    std::uint16_t colors[2 * kMostWidth];
    for (int i = 0; i < 4 * count; ++i)
        colors[i] =
            std::uint16_t(rgb[i] >> 3 << 10 | rgb[area + i] >> 3 << 5 | rgb[2 * area + i] >> 3);
    for (int x = 0; x < count; ++x, to += channels) {
        const auto at = [&](int i)
                            HEADRACE_LAMBDA { return names + std::ptrdiff_t(colors[i]) * kNames; };
        const std::uint8_t *a = at(2 * x), *b = at(2 * x + 1);
        const std::uint8_t *c = at(2 * (count + x)), *d = at(2 * (count + x) + 1);
        std::uint16_t sum[kNames];  // apart from `to`, which bytes may lie in
        for (int k = 0; k < kNames; ++k) sum[k] = std::uint16_t(a[k] + b[k] + c[k] + d[k]);
        const float scale = window[x] * (1.0f / (4 * 255));
        for (int k = 0; k < kNames; ++k) to[k] = float(sum[k]) * scale;
    }
}

HEADRACE_WIDE void brightness(const std::uint8_t *rgb, std::ptrdiff_t area, std::ptrdiff_t count,
                              float *luma) {
    for (std::ptrdiff_t i = 0; i < count; ++i)
        luma[i] = 0.299f * float(rgb[i]) + 0.587f * float(rgb[area + i]) +
                  0.114f * float(rgb[2 * area + i]);
}

HEADRACE_WIDE void directions_of(const float *row, const float *above, const float *below,
                                 int width, Directions &d) {
    const int wide = (width + kWide - 1) / kWide * kWide;
    float across[kMostWidth], down[kMostWidth], length[kMostWidth];
    for (int x = width; x < wide; ++x) across[x] = down[x] = 0;
    across[0] = row[1] - row[0];  // the first and the last have one neighbour
    for (int x = 1; x < width - 1; ++x) across[x] = row[x + 1] - row[x - 1];
    across[width - 1] = row[width - 1] - row[width - 2];
    for (int x = 0; x < width; ++x) down[x] = below[x] - above[x];
    for (int x = 0; x < wide; ++x) {
        const float energy = across[x] * across[x] + down[x] * down[x];
        d.energy[x] = energy;
        length[x] = __builtin_sqrtf(energy);
    }
    const Vector none{};
    for (int x = 0; x < width; x += kWide) {
        Vector dx, dy, l;
        load(dx, across + x);
        load(dy, down + x);
        load(l, length + x);
        const Vector ax = dx < none ? -dx : dx, ay = dy < none ? -dy : dy;
        const Vector least = ax < ay ? ax : ay, most = ax < ay ? ay : ax;
        const Vector t = least / (most + 1e-9f);
        // the arc tangent within a thousandth of a turn
        Vector turn = t * (0.1590f + t * t * (-0.0524f + t * t * 0.0185f));
        turn = ay > ax ? 0.25f - turn : turn;
        turn = dx < none ? 0.5f - turn : turn;
        turn = dy < none ? 1.0f - turn : turn;
        turn = turn < 0.9999f ? turn : none;
        const Vector place = turn * float(kDirections);
        const Whole low = __builtin_convertvector(place, Whole), next = low + 1;
        const Whole high = next < kDirections ? next : Whole{};
        const Vector part = (place - __builtin_convertvector(low, Vector)) * l, rest = l - part;
        std::memcpy(d.low + x, &low, sizeof low);
        std::memcpy(d.high + x, &high, sizeof high);
        store(d.of_low + x, rest);
        store(d.of_high + x, part);
    }
}

HEADRACE_WIDE void normalize_row(const float *energy, const float *window, int count, int channels,
                                 float *bins) {
    constexpr float kFlat = 400;  // edges weaker than noise of a camera stay weak
    float scale[kMostWidth];
    for (int x = 0; x < count; ++x) scale[x] = 1 / __builtin_sqrtf(energy[x] + kFlat);
    const auto bring = [](Vector &v, float by, float under) HEADRACE_LAMBDA {
        v *= by;
        v = (v < 0.4f ? v : Vector{} + 0.4f) * under;
    };
    static_assert(kDirections == 18);
    for (int x = 0; x < count; ++x, bins += channels) {
        Vector a, b, c;
        load(a, bins);
        load(b, bins + 8);
        load(c, bins + 10);
        bring(a, scale[x], window[x]);
        bring(b, scale[x], window[x]);
        bring(c, scale[x], window[x]);
        store(bins, a);
        store(bins + 8, b);
        store(bins + 10, c);
    }
}

}  // namespace headrace::track

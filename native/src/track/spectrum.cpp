// Two real rows are one of complex numbers; eight channels, columns or rows are the lanes.
#include "track/spectrum.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "core/vectorise.h"
// behind it
#include "track/fourier.h"

namespace headrace::track {
namespace {

// The next eight of `count` lanes; the last eight may have some of those before among them.
int next_lanes(int at, int count) {
    return at == count - kWide ? count : std::min(at + kWide, count - kWide);
}

// Transforms `lanes` columns of N complex numbers, to another place.
template <int N>
HEADRACE_WIDE void transform(const float *re, const float *im, int lanes, float *to_re,
                             float *to_im) {
    for (int at = 0; at < lanes; at = next_lanes(at, lanes)) {
        Vector a[N], b[N];
        each(std::make_integer_sequence<int, N>(), [&](auto i) HEADRACE_LAMBDA {
            load(a[i], re + i * lanes + at);
            load(b[i], im + i * lanes + at);
        });
        Dft<N>::run(a, b);
        each(std::make_integer_sequence<int, N>(), [&](auto i) HEADRACE_LAMBDA {
            store(to_re + i * lanes + at, a[i]);
            store(to_im + i * lanes + at, b[i]);
        });
    }
}

using Transform = void (*)(const float *, const float *, int, float *, float *);

Transform transform_of(int side) {
    switch (side) {
    case 12: return transform<12>;
    case 18: return transform<18>;
    case 24: return transform<24>;
    case 30: return transform<30>;
    case 36: return transform<36>;
    default: throw std::invalid_argument("no square of features has this side");
    }
}

// The transform of a row and i times another -> twice the transforms of both, one behind the other.
HEADRACE_WIDE void part(const float *re, const float *im, int side, int lanes, float *to_re,
                        float *to_im) {
    const int columns = side / 2 + 1;
    for (int k = 0; k < columns; ++k) {
        const int mirror = k ? side - k : 0;
        for (int at = 0; at < lanes; at = next_lanes(at, lanes)) {
            Vector a, b, c, d;
            load(a, re + k * lanes + at);
            load(b, im + k * lanes + at);
            load(c, re + mirror * lanes + at);
            load(d, im + mirror * lanes + at);
            const int first = k * lanes + at, second = (columns + k) * lanes + at;
            store(to_re + first, a + c);
            store(to_im + first, b - d);
            store(to_re + second, b + d);
            store(to_im + second, c - a);
        }
    }
}

// The inverse of `part`, of whole spectra: lanes of the first row and of the second stand side by
// side in each column.
HEADRACE_WIDE void join(const float *re, const float *im, int side, int lanes, float *to_re,
                        float *to_im) {
    for (int k = 0; k <= side / 2; ++k) {
        const int mirror = k ? side - k : 0;
        for (int at = 0; at < lanes; at += kWide) {
            Vector a, b, c, d;
            load(a, re + 2 * k * lanes + at);
            load(b, im + 2 * k * lanes + at);
            load(c, re + (2 * k + 1) * lanes + at);
            load(d, im + (2 * k + 1) * lanes + at);
            store(to_re + mirror * lanes + at, a + d);
            store(to_im + mirror * lanes + at, c - b);
            store(to_re + k * lanes + at, a - d);
            store(to_im + k * lanes + at, b + c);
        }
    }
}

constexpr int kMost = 19 * 2 * 24;  // numbers of one channel: of 19 columns, 36 rows with gaps

}  // namespace

Spectra::Spectra(int side) : side_(side), transform_(transform_of(side)) {}

void Spectra::forward(const float *in, int rows, int channels, float *re, float *im) const {
    static thread_local std::vector<float> buffer;
    const std::ptrdiff_t row = std::ptrdiff_t(side_) * channels;
    const int lanes = columns() * channels;
    const std::ptrdiff_t all = std::ptrdiff_t(side_) * lanes, full = std::ptrdiff_t(rows) * lanes;
    buffer.resize(std::size_t(2 * row + 2 * all));
    float *const two_re = buffer.data(), *const two_im = two_re + row;
    float *const mid_re = two_im + row, *const mid_im = mid_re + all;
    for (int y = 0; y < rows; y += 2) {
        transform_(in + y * row, in + (y + 1) * row, channels, two_re, two_im);
        const std::ptrdiff_t to = std::ptrdiff_t(y) * lanes;
        part(two_re, two_im, side_, channels, mid_re + to, mid_im + to);
    }
    std::fill(mid_re + full, mid_re + all, 0.0f);
    std::fill(mid_im + full, mid_im + all, 0.0f);
    transform_(mid_re, mid_im, lanes, re, im);
}

// With real and imaginary parts exchanged, a transform is its inverse.
void Spectra::inverse(const float *re, const float *im, float *out) const {
    const int half = side_ / 2, count = half + 1, wide = pitch(), lanes = (half + 7) / 8 * 8;
    float a[kMost], b[kMost], c[kMost] = {}, d[kMost] = {};
    transform_(im, re, wide, b, a);
    // lanes are rows from here: the upper half, then the lower one
    for (int y = 0; y < side_; ++y) {
        const int lane = y < half ? y : y - half + lanes;
        for (int k = 0; k < count; ++k) {
            c[2 * k * lanes + lane] = a[y * wide + k];
            d[2 * k * lanes + lane] = b[y * wide + k];
        }
    }
    join(c, d, side_, lanes, a, b);
    transform_(b, a, lanes, d, c);
    const float scale = 1.0f / float(side_ * side_);
    for (int y = 0; y < half; ++y)
        for (int x = 0; x < side_; ++x) {
            out[y * side_ + x] = c[x * lanes + y] * scale;
            out[(y + half) * side_ + x] = d[x * lanes + y] * scale;
        }
}

}  // namespace headrace::track

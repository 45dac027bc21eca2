// Sides of 12 to 36 are too short for a fast transform to pay: sums over places, folded by their
// symmetry, with eight channels at a time.
#include "track/spectrum.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "core/vectorise.h"

namespace headrace::track {
namespace {

constexpr int kWide = 8;
using Vector = float __attribute__((vector_size(kWide * sizeof(float))));

struct Tables {
    int side;
    const float *cos, *sin;
};

// Of n numbers with a distance of `step` between them, for 8 channels at once: sums and differences
// of those at i and n - i. even[0] and even[half] are the unpaired ones.
#define HEADRACE_FOLD(in, step, even, odd)                     \
    do {                                                       \
        load(even[0], in);                                     \
        load(even[half], in + half * (step));                  \
        for (int i = 1; i < half; ++i) {                       \
            Vector a, b;                                       \
            load(a, in + std::ptrdiff_t(i) * (step));          \
            load(b, in + std::ptrdiff_t(t.side - i) * (step)); \
            even[i] = a + b;                                   \
            odd[i] = a - b;                                    \
        }                                                      \
    } while (false)

constexpr int kMost = 19;  // half of the longest side, and one

inline __attribute__((always_inline)) void load(Vector &v, const float *from) {
    std::memcpy(&v, from, sizeof v);
}
inline __attribute__((always_inline)) void store(float *to, const Vector &v) {
    std::memcpy(to, &v, sizeof v);
}

HEADRACE_WIDE void rows(const Tables &t, const float *in, int channels, float *re, float *im) {
    const int half = t.side / 2;
    Vector even[kMost], odd[kMost];
    for (int y = 0; y < t.side; ++y)
        for (int c = 0; c < channels; c += kWide) {
            const float *from = in + std::ptrdiff_t(y) * t.side * channels + c;
            HEADRACE_FOLD(from, channels, even, odd);
            for (int k = 0; k <= half; ++k) {
                const float *cosine = t.cos + std::ptrdiff_t(k) * t.side;
                const float *sine = t.sin + std::ptrdiff_t(k) * t.side;
                Vector a = even[0] + even[half] * cosine[half], b{};
                for (int i = 1; i < half; ++i) {
                    a += even[i] * cosine[i];
                    b -= odd[i] * sine[i];
                }
                const std::ptrdiff_t to = (std::ptrdiff_t(y) * (half + 1) + k) * channels + c;
                store(re + to, a);
                store(im + to, b);
            }
        }
}

// In place.
HEADRACE_WIDE void columns(const Tables &t, int channels, float *re, float *im) {
    const int half = t.side / 2;
    const std::ptrdiff_t step = std::ptrdiff_t(half + 1) * channels;
    Vector re_even[kMost], re_odd[kMost], im_even[kMost], im_odd[kMost];
    re_odd[0] = im_odd[0] = Vector{};
    for (std::ptrdiff_t at = 0; at < step; at += kWide) {
        HEADRACE_FOLD((re + at), step, re_even, re_odd);
        HEADRACE_FOLD((im + at), step, im_even, im_odd);
        for (int l = 0; l <= half; ++l) {
            const float *cosine = t.cos + std::ptrdiff_t(l) * t.side;
            const float *sine = t.sin + std::ptrdiff_t(l) * t.side;
            Vector p = re_even[0] + re_even[half] * cosine[half], q{};
            Vector r = im_even[0] + im_even[half] * cosine[half], s{};
            for (int i = 1; i < half; ++i) {
                p += re_even[i] * cosine[i];
                q += im_odd[i] * sine[i];
                r += im_even[i] * cosine[i];
                s += re_odd[i] * sine[i];
            }
            store(re + l * step + at, p + q);
            store(im + l * step + at, r - s);
            if (l == 0 || l == half) continue;
            store(re + (t.side - l) * step + at, p - q);
            store(im + (t.side - l) * step + at, r + s);
        }
    }
}

#undef HEADRACE_FOLD

// Sums over rows, all columns at a time.
HEADRACE_WIDE void inverse_columns(const Tables &t, const float *re, const float *im, float *to_re,
                                   float *to_im) {
    const int count = t.side / 2 + 1;
    for (int y = 0; y < t.side; ++y) {
        float a[kMost] = {}, b[kMost] = {};  // apart from the others: no check whether they overlap
        for (int l = 0; l < t.side; ++l) {
            const int folded = l < count ? l : t.side - l;
            const float cosine = t.cos[folded * t.side + y];
            const float sine = l < count ? t.sin[folded * t.side + y] : -t.sin[folded * t.side + y];
            const float *p = re + std::ptrdiff_t(l) * count, *q = im + std::ptrdiff_t(l) * count;
            for (int x = 0; x < count; ++x) {
                a[x] += p[x] * cosine - q[x] * sine;
                b[x] += p[x] * sine + q[x] * cosine;
            }
        }
        std::memcpy(to_re + std::ptrdiff_t(y) * count, a, std::size_t(count) * sizeof(float));
        std::memcpy(to_im + std::ptrdiff_t(y) * count, b, std::size_t(count) * sizeof(float));
    }
}

HEADRACE_WIDE void inverse_rows(const Tables &t, const float *re, const float *im, float *out) {
    const int half = t.side / 2;
    const float scale = 1.0f / float(t.side * t.side);
    for (int y = 0; y < t.side; ++y) {
        const float *p = re + std::ptrdiff_t(y) * (half + 1);
        const float *q = im + std::ptrdiff_t(y) * (half + 1);
        float row[2 * kMost] = {};
        for (int k = 0; k <= half; ++k) {
            const float times = scale * (k == 0 || k == half ? 1.0f : 2.0f);
            const float a = p[k] * times, b = q[k] * times;
            const float *cosine = t.cos + std::ptrdiff_t(k) * t.side;
            const float *sine = t.sin + std::ptrdiff_t(k) * t.side;
            for (int x = 0; x < t.side; ++x) row[x] += a * cosine[x] - b * sine[x];
        }
        std::memcpy(out + std::ptrdiff_t(y) * t.side, row, std::size_t(t.side) * sizeof(float));
    }
}

}  // namespace

Spectra::Spectra(int side) : side_(side) {
    for (int k = 0; k <= side / 2; ++k)
        for (int i = 0; i < side; ++i) {
            const double angle = 2 * M_PI * double(k * i % side) / side;
            cos_.push_back(float(std::cos(angle)));
            sin_.push_back(float(std::sin(angle)));
        }
}

void Spectra::forward(const float *in, int channels, float *re, float *im) const {
    const Tables tables{side_, cos_.data(), sin_.data()};
    rows(tables, in, channels, re, im);
    track::columns(tables, channels, re, im);
}

void Spectra::inverse(const float *re, const float *im, float *out) const {
    const Tables tables{side_, cos_.data(), sin_.data()};
    static thread_local std::vector<float> a, b;
    a.resize(std::size_t(size()));
    b.resize(std::size_t(size()));
    inverse_columns(tables, re, im, a.data(), b.data());
    inverse_rows(tables, a.data(), b.data(), out);
}

}  // namespace headrace::track

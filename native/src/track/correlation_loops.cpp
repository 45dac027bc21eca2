#include "track/correlation_loops.h"

#include <cstddef>

#include "core/vectorise.h"

namespace headrace::track {
namespace {

constexpr int kMostChannels = 32;
constexpr float kRegular = 0.05f;  // of the VPI manual

}  // namespace

HEADRACE_WIDE void respond(const Product &p, int size, int channels, float *re, float *im) {
    for (int i = 0; i < size; ++i) {
        const std::ptrdiff_t at = std::ptrdiff_t(i) * channels;
        const float *a = p.re + at, *b = p.im + at, *c = p.filter_re + at, *d = p.filter_im + at;
        float real[8] = {}, imaginary[8] = {};
        for (int k = 0; k < channels; k += 8)
            for (int j = 0; j < 8; ++j) {
                const float w = p.weights[k + j];
                real[j] += w * (a[k + j] * c[k + j] - b[k + j] * d[k + j]);
                imaginary[j] += w * (a[k + j] * d[k + j] + b[k + j] * c[k + j]);
            }
        float x = 0, y = 0;
        for (int j = 0; j < 8; ++j) {
            x += real[j];
            y += imaginary[j];
        }
        re[i] = x;
        im[i] = y;
    }
}

HEADRACE_WIDE void teach(const Lesson &l, const Desired &wanted, int channels, int used,
                         float rate) {
    float squares[kMostChannels], shares[kMostChannels] = {};
    for (int i = 0; i < wanted.size; ++i) {
        const std::ptrdiff_t at = std::ptrdiff_t(i) * channels;
        const float *a = l.re + at, *b = l.im + at;
        float *c = l.filter_re + at, *d = l.filter_im + at;
        const float g = wanted.re[i], h = wanted.im[i];
        for (int k = 0; k < channels; ++k) squares[k] = a[k] * a[k] + b[k] * b[k];
        float power = kRegular;
        for (int k = 0; k < used; ++k) power += squares[k];
        const float scale = 1 / power, share = wanted.energy[i] * scale;
        for (int k = 0; k < channels; ++k) {
            shares[k] += share * squares[k];
            c[k] += rate * ((a[k] * g + b[k] * h) * scale - c[k]);
            d[k] += rate * ((a[k] * h - b[k] * g) * scale - d[k]);
        }
    }
    for (int k = 0; k < channels; ++k) l.shares[k] = shares[k];
}

HEADRACE_WIDE void weigh(const float *window, float sum, int area, int channels, float *features,
                         float *mean) {
    for (int c = 0; c < channels; c += 8) {
        float total[8] = {};
        for (int i = 0; i < area; ++i) {
            const float *f = features + std::ptrdiff_t(i) * channels + c;
            for (int k = 0; k < 8; ++k) total[k] += window[i] * f[k];
        }
        for (int k = 0; k < 8; ++k) mean[c + k] = total[k] / sum;
    }
    for (int i = 0; i < area; ++i) {
        float *f = features + std::ptrdiff_t(i) * channels;
        for (int k = 0; k < channels; ++k) f[k] = (f[k] - mean[k]) * window[i];
    }
}

HEADRACE_WIDE void average(const std::uint8_t *const *names, int count, int channels, float *to) {
    for (int x = 0; x < count; ++x, names += 4, to += channels) {
        std::uint16_t sum[kNames];  // apart from `to`, which bytes may lie in
        for (int k = 0; k < kNames; ++k)
            sum[k] = std::uint16_t(names[0][k] + names[1][k] + names[2][k] + names[3][k]);
        for (int k = 0; k < kNames; ++k) to[k] = float(sum[k]) * (1.0f / (4 * 255));
    }
}

namespace {

// Of the pixels 1 to width - 2 of a row, and the first and the last, which have one neighbour.
HEADRACE_WIDE void gradient_row(const float *row, const float *above, const float *below, int width,
                                float full, float *place, float *length) {
    for (int x = 0; x < width; ++x) {
        const int before = x > 0 ? x - 1 : 0, after = x < width - 1 ? x + 1 : x;
        place[x] = row[after] - row[before];
        length[x] = below[x] - above[x];
    }
    for (int x = 0; x < width; ++x) {
        const float dx = place[x], dy = length[x];
        const float ax = __builtin_fabsf(dx), ay = __builtin_fabsf(dy);
        const float least = ax < ay ? ax : ay, most = ax < ay ? ay : ax;
        const float t = least / (most + 1e-9f);
        // the arc tangent within a thousandth of a turn
        float turn = t * (0.1590f + t * t * (-0.0524f + t * t * 0.0185f));
        turn = ay > ax ? 0.25f - turn : turn;
        turn = dx < 0 ? 0.5f - turn : turn;
        turn = dy < 0 ? 1 - turn : turn;
        turn = turn < 0.9999f ? turn : 0;
        place[x] = turn * full;
        length[x] = __builtin_sqrtf(dx * dx + dy * dy);
    }
}

HEADRACE_WIDE void brightness(const std::uint8_t *rgb, std::ptrdiff_t area, float *luma) {
    for (std::ptrdiff_t i = 0; i < area; ++i)
        luma[i] = 0.299f * float(rgb[i]) + 0.587f * float(rgb[area + i]) +
                  0.114f * float(rgb[2 * area + i]);
}

}  // namespace

void gradients(const std::uint8_t *rgb, int width, int directions, float *luma, float *place,
               float *length) {
    brightness(rgb, std::ptrdiff_t(width) * width, luma);
    for (std::ptrdiff_t y = 0; y < width; ++y) {
        const float *row = luma + y * width;
        gradient_row(row, y > 0 ? row - width : row, y < width - 1 ? row + width : row, width,
                     float(directions), place + y * width, length + y * width);
    }
}

}  // namespace headrace::track

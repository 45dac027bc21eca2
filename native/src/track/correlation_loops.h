// The loops of correlation filters over channels, eight of them at a time.
#pragma once
#include <cstdint>

namespace headrace::track {

constexpr int kColors = 10, kDirections = 18, kMostChannels = 32;
constexpr int kMostWidth = 72;  // samples of a row

// Spectra of features, of `size` coefficients of `channels` numbers: 10, 18 or 28.
struct Features {
    const float *re, *im;
    int size, channels;
};

// The sum over weighted channels of filtered features. A row of the result has `pitch` numbers for
// `columns` coefficients; those behind stay.
void respond(const Features &f, const float *filter_re, const float *filter_im,
             const float *weights, int columns, int pitch, float *re, float *im);

struct Lesson {
    const float *re, *im;  // spectrum of the desired response
    const float *energy;   // what a coefficient adds to the response at the target's place
    float rate;
};

// Moves the filter towards the one that turns these features into the desired response. `shares`
// are of each channel: its response at the target's place.
void teach(const Features &f, const Lesson &lesson, float *filter_re, float *filter_im,
           float *shares);

// Takes from each channel its mean under the window: its first coefficient tells it. The window has
// coefficients (side, 2) in the columns 0 and 1 alone.
void center(const float *window_re, const float *window_im, int side, int columns, int channels,
            float *re, float *im);

constexpr int kNames = 16;  // bytes of a colour's names, padded

// The names of a row of squares of 2 x 2 pixels, `count` of them: the means of `names` by the
// window over them. `rgb` is the first pixel of three planes of `area` pixels, 2 * count in a row.
// Writes 16 channels, also where there are less.
void name_row(const std::uint8_t *rgb, std::ptrdiff_t area, const std::uint8_t *names,
              const float *window, int count, int channels, float *to);

void brightness(const std::uint8_t *rgb, std::ptrdiff_t area, std::ptrdiff_t count, float *luma);

// Of the gradients of a row of pixels, directions in two parts: how much of which two.
struct Directions {
    std::int32_t low[kMostWidth], high[kMostWidth];
    float of_low[kMostWidth], of_high[kMostWidth], energy[kMostWidth];
};

void directions_of(const float *row, const float *above, const float *below, int width,
                   Directions &d);

// Brings the directions of each of `count` cells of a row to the energy around the cell, and under
// the window.
void normalize_row(const float *energy, const float *window, int count, int channels, float *bins);

}  // namespace headrace::track

// The loops of correlation filters over channels, eight of them at a time.
#pragma once
#include <cstdint>

namespace headrace::track {

struct Product {
    const float *re, *im, *filter_re, *filter_im, *weights;
};

// The sum over weighted channels of filtered features.
void respond(const Product &p, int size, int channels, float *re, float *im);

struct Lesson {
    const float *re, *im;  // features
    float *filter_re, *filter_im;
    float *shares;  // of each channel: its response at the target's place
};

struct Desired {
    const float *re, *im;  // spectrum of the response
    const float *energy;   // what a coefficient adds to the response at the target's place
    int size;
};

// Moves the filter towards the one that turns these features, `used` of the channels, into the
// desired response.
void teach(const Lesson &l, const Desired &wanted, int channels, int used, float rate);

constexpr int kNames = 16;  // bytes of a colour's names, padded

// The means of the names of `count` times four colours, as parts of one.
void average(const std::uint8_t *const *names, int count, int channels, float *to);

// Takes the mean under the window from each channel, and applies the window.
void weigh(const float *window, float sum, int area, int channels, float *features, float *mean);

// Of a square of width * width pixels, three planes: brightness, then of each pixel the direction
// and the length of its gradient. A direction is 0 to `directions`, a full turn.
void gradients(const std::uint8_t *rgb, int width, int directions, float *luma, float *place,
               float *length);

}  // namespace headrace::track

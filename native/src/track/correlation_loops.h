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

// Moves the filter, at one coefficient, towards the one that turns these features into the desired
// response (g, h). `energy` is what that coefficient adds to the response at the target's place.
void teach(const Lesson &l, int first, int channels, float g, float h, float energy, float rate);

// Takes the mean under the window from each channel, and applies the window.
void weigh(const float *window, float sum, int area, int channels, float *features, float *mean);

// Of a square of width * width pixels, three planes: brightness, then of each pixel the direction
// and the length of its gradient. A direction is 0 to `directions`, a full turn.
void gradients(const std::uint8_t *rgb, int width, int directions, float *luma, float *place,
               float *length);

}  // namespace headrace::track

// Fourier transforms of small squares of features.
#pragma once
#include <vector>

namespace headrace::track {

// Transforms of `side` x `side` squares, an even side. A spectrum has the columns 0 to side / 2.
class Spectra {
public:
    explicit Spectra(int side);

    int side() const { return side_; }
    int columns() const { return side_ / 2 + 1; }
    int size() const { return side_ * columns(); }

    // (side, side, channels) -> (side, columns, channels) real and imaginary parts. `channels` is
    // a multiple of 8.
    void forward(const float *in, int channels, float *re, float *im) const;

    // (side, columns) real and imaginary parts -> (side, side).
    void inverse(const float *re, const float *im, float *out) const;

    // How often a coefficient counts in a sum over the whole spectrum: its mirror image is left
    // out.
    float times(int column) const { return column == 0 || column == side_ / 2 ? 1.0f : 2.0f; }

private:
    int side_;
    std::vector<float> cos_, sin_;  // (side / 2 + 1, side): of one frequency at each place
};

}  // namespace headrace::track

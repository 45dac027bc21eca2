// Fourier transforms of small squares of features.
#pragma once
#include <vector>

namespace headrace::track {

// Transforms of `side` x `side` squares, of 12, 18, 24, 30 or 36. A spectrum has the columns 0 to
// side / 2.
class Spectra {
public:
    explicit Spectra(int side);

    int columns() const { return side_ / 2 + 1; }
    int size() const { return side_ * columns(); }
    int pitch() const { return (columns() + 7) / 8 * 8; }

    // Halves of (rows, side, channels), with zeros behind them -> (side, columns, channels) real
    // and imaginary parts of the whole. `rows` is even, `channels` at least 8.
    void forward(const float *in, int rows, int channels, float *re, float *im) const;

    // (side, pitch) real and imaginary parts -> (side, side). What stands behind the columns does
    // not matter, but is no NaN.
    void inverse(const float *re, const float *im, float *out) const;

    // How often a coefficient counts in a sum over the whole spectrum: its mirror image is left
    // out.
    float times(int column) const { return column == 0 || column == side_ / 2 ? 1.0f : 2.0f; }

private:
    int side_;
    void (*transform_)(const float *, const float *, int, float *, float *);
};

}  // namespace headrace::track

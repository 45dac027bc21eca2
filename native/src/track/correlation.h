// Correlation filters: the look of a target, found again near the place where it is expected.
#pragma once
#include <vector>

#include "track/features.h"
#include "track/motion.h"
#include "track/spectrum.h"

namespace headrace::track {

struct VisualSettings {
    bool colors, edges;
    int side;      // of the square of features
    double focus;  // shift of the window's centre down, in sides
    double filter_rate, weight_rate, sigma, padding;
};

// What is kept of one target.
struct Filter {
    std::vector<float> re, im, weights;
    float usual = 0;  // moving average of the response at the target
    bool empty() const { return re.empty(); }
};

// The response of a filter around an expected place.
struct Response {
    std::vector<float> map;  // (side, side)
    Placement region;
    float peak = 0;
    Placement found;  // the target at the peak, in its expected size

    // The greatest response within a feature of a place; 0 outside of the region.
    float near(double x, double y, int side) const;
};

class Correlator {
public:
    explicit Correlator(const VisualSettings &settings);

    // The region of an image that belongs to a box, as a patch of so many samples a side. Only the
    // first rows of them count.
    Placement region(const Placement &box) const;
    int samples() const { return kCell * set_.side; }
    int rows() const { return rows_of_samples(set_.side, rows_, set_.edges); }

    // Looks for a target in the patch around `expected`.
    void find(const Filter &filter, const std::uint8_t *patch, const Placement &expected,
              Response &response) const;

    // Learns the look of a target from the patch of its place: at first all of it, then by the
    // rates.
    void learn(Filter &filter, const std::uint8_t *patch) const;

    int side() const { return set_.side; }

private:
    void transform_one(const std::vector<float> &square, std::vector<float> &re,
                       std::vector<float> &im) const;
    void transform(const std::uint8_t *patch, std::vector<float> &re, std::vector<float> &im) const;

    VisualSettings set_;
    Spectra spectra_;
    int channels_, rows_;                       // rows of features: below, the window is closed
    std::vector<float> window_;                 // (side, side), its half
    std::vector<float> window_re_, window_im_;  // (side, 2) of its spectrum: the others are 0
    std::vector<float> wanted_re_, wanted_im_;  // spectrum of the desired response
    std::vector<float> energy_;                 // its parts at the target's place
};

}  // namespace headrace::track

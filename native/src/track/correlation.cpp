// One filter of many channels with a common denominator (Danelljan 2014), and weights of the
// channels by how much of the response each brings about, as in CSR-DCF (Lukezic 2017) without its
// spatial mask and its search of scales: so the VPI manual describes the original's tracker.
// Filters of each channel by themselves, which its formula may be, lost more targets in trials.
#include "track/correlation.h"

#include <algorithm>
#include <cmath>

#include "track/correlation_loops.h"

namespace headrace::track {
namespace {

// Where a parabola through three numbers has its top, from the middle one.
double top(double before, double at, double after) {
    const double bend = before - 2 * at + after;
    return bend < 0 ? std::clamp((before - after) / (2 * bend), -0.5, 0.5) : 0;
}

}  // namespace

float Response::near(double x, double y, int side) const {
    const double left = region.x - region.width / 2, up = region.y - region.height / 2;
    const int column = int(std::floor((x - left) / region.width * side));
    const int row = int(std::floor((y - up) / region.height * side));
    float best = 0;
    for (int v = row - 1; v <= row + 1; ++v)
        for (int u = column - 1; u <= column + 1; ++u)
            if (u >= 0 && v >= 0 && u < side && v < side)
                best = std::max(best, map[std::size_t(v) * std::size_t(side) + std::size_t(u)]);
    return best;
}

Correlator::Correlator(const VisualSettings &settings)
    : set_(settings),
      spectra_(settings.side),
      channels_((settings.colors ? kColors : 0) + (settings.edges ? kDirections : 0)),
      rows_(0) {
    const int side = set_.side;
    const auto area = std::size_t(side) * std::size_t(side);
    std::vector<float> wanted(area);
    window_.resize(area);
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x) {
            const auto hann = [&](double i) {
                const double part = std::clamp(i / side, 0.0, 1.0);
                return 0.5 - 0.5 * std::cos(2 * M_PI * part);
            };
            const int middle = side / 2;
            const double u = x - middle, v = y - middle;
            const auto i = std::size_t(y) * std::size_t(side) + std::size_t(x);
            const double down = y - set_.focus * side;
            window_[i] = float(hann(x) * hann(down) / 2);
            if (down < side) rows_ = y + 1;
            // of float: exp of double is a newer symbol of glibc than wheels may need
            wanted[i] = std::exp(float(-(u * u + v * v) / (2 * set_.sigma * set_.sigma)));
        }
    rows_ = (rows_ + 1) / 2 * 2;
    for (float &v : wanted) v /= 2;
    std::vector<float> re, im;
    transform_one(wanted, wanted_re_, wanted_im_);
    transform_one(window_, re, im);
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < 2; ++x) {
            const int i = y * spectra_.columns() + x;
            window_re_.push_back(re[std::size_t(i)]);
            window_im_.push_back(im[std::size_t(i)]);
        }
    for (int i = 0; i < spectra_.size(); ++i) {
        const float g = wanted_re_[std::size_t(i)], h = wanted_im_[std::size_t(i)];
        // at the target's place all parts of the desired response add up
        energy_.push_back(std::sqrt(g * g + h * h) * spectra_.times(i % spectra_.columns()) /
                          float(side * side));
    }
}

// The spectrum of twice a square of one channel, as the first of eight.
void Correlator::transform_one(const std::vector<float> &square, std::vector<float> &re,
                               std::vector<float> &im) const {
    std::vector<float> wide(square.size() * 8, 0), a(std::size_t(spectra_.size()) * 8), b(a.size());
    for (std::size_t i = 0; i < square.size(); ++i) wide[i * 8] = square[i];
    spectra_.forward(wide.data(), set_.side, 8, a.data(), b.data());
    for (std::size_t i = 0; i < a.size(); i += 8) {
        re.push_back(a[i]);
        im.push_back(b[i]);
    }
}

Placement Correlator::region(const Placement &box) const {
    const double more = set_.padding * std::hypot(box.width, box.height);
    const double width = std::max(box.width + more, 1.0), height = std::max(box.height + more, 1.0);
    // the middle of the box is that of feature side / 2
    return {box.x - width / (2 * set_.side), box.y - height / (2 * set_.side), width, height};
}

void Correlator::transform(const std::uint8_t *patch, std::vector<float> &re,
                           std::vector<float> &im) const {
    static thread_local std::vector<float> seen;
    features(patch, set_.side, rows_, set_.colors, set_.edges, window_.data(), seen);
    const auto size = std::size_t(spectra_.size()) * std::size_t(channels_);
    re.resize(size);
    im.resize(size);
    spectra_.forward(seen.data(), rows_, channels_, re.data(), im.data());
    center(window_re_.data(), window_im_.data(), set_.side, spectra_.columns(), channels_,
           re.data(), im.data());
}

void Correlator::find(const Filter &filter, const std::uint8_t *patch, const Placement &expected,
                      Response &response) const {
    static thread_local std::vector<float> re, im, sum_re, sum_im;
    response.region = region(expected);
    transform(patch, re, im);
    const int side = set_.side;
    sum_re.resize(std::size_t(side) * std::size_t(spectra_.pitch()));
    sum_im.resize(sum_re.size());
    respond({re.data(), im.data(), spectra_.size(), channels_}, filter.re.data(), filter.im.data(),
            filter.weights.data(), spectra_.columns(), spectra_.pitch(), sum_re.data(),
            sum_im.data());
    response.map.resize(std::size_t(side) * std::size_t(side));
    spectra_.inverse(sum_re.data(), sum_im.data(), response.map.data());
    const auto best = std::max_element(response.map.begin(), response.map.end());
    const int place = int(best - response.map.begin()), x = place % side, y = place / side;
    const auto at = [&](int u, int v) {
        const auto row = std::size_t((v + side) % side), column = std::size_t((u + side) % side);
        return double(response.map[row * std::size_t(side) + column]);
    };
    response.peak = std::clamp(*best, 0.0f, 1.0f);
    const double column = x + top(at(x - 1, y), *best, at(x + 1, y));
    const double row = y + top(at(x, y - 1), *best, at(x, y + 1));
    response.found = expected;
    response.found.x += (column / side - 0.5) * response.region.width;
    response.found.y += (row / side - 0.5) * response.region.height;
}

void Correlator::learn(Filter &filter, const std::uint8_t *patch) const {
    static thread_local std::vector<float> re, im;
    transform(patch, re, im);
    const bool first = filter.empty();
    if (first) {
        filter.re.assign(re.size(), 0);
        filter.im.assign(im.size(), 0);
        filter.weights.assign(std::size_t(channels_), 0);
    }
    float shares[kMostChannels] = {};
    const float rate = first ? 1.0f : float(set_.filter_rate);
    teach({re.data(), im.data(), spectra_.size(), channels_},
          {wanted_re_.data(), wanted_im_.data(), energy_.data(), rate}, filter.re.data(),
          filter.im.data(), shares);
    // how much of the desired response each channel brings about
    float total = 0, squares = 0, response = 0;
    for (const float share : shares) {
        total += share;
        squares += share * share;
    }
    const float weight_rate = first ? 1.0f : float(set_.weight_rate);
    for (int k = 0; k < channels_; ++k) {
        float &w = filter.weights[std::size_t(k)];
        // with these weights the response at the target is what it is without
        const float newest = squares > 0 ? shares[k] * total / squares : 0;
        w += weight_rate * (newest - w);
        response += w * shares[k];
    }
    if (first) filter.usual = response;
}

}  // namespace headrace::track

#include "preprocess/axis.h"

#include <algorithm>
#include <cmath>

namespace headrace::preprocess {
namespace {

// Where sample d's centre lies among sample centres: floor and remainder of `numerator` / `span`.
struct Centre {
    int64_t floor, remainder, span;
};

Centre centre(const Axis &axis, int d) {
    const int64_t span = 2 * int64_t(axis.count);
    const int64_t numerator = (2 * int64_t(d) + 1) * axis.extent - axis.count;
    int64_t floor = numerator / span, remainder = numerator % span;
    if (remainder < 0) {
        remainder += span;
        floor -= 1;
    }
    return {floor + axis.start, remainder, span};
}

double sinc(double x) {
    if (x == 0) return 1;
    const double angle = 3.14159265358979323846 * x;
    return std::sin(angle) / angle;
}

double cubic(double x) {  // Keys' kernel with a = -1/2
    x = std::fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
    return 0;
}

double lanczos3(double x) { return std::fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

// Appends destination sample `d` with `weights` for the samples from `first` on: folds what lies
// outside onto the border samples and makes the sum 1.
void append(TapTable &table, const Axis &axis, int d, int64_t first,
            const std::vector<double> &weights) {
    double sum = 0;
    for (double w : weights) sum += w;
    const int64_t last = first + int64_t(weights.size()) - 1;
    const int64_t low = std::clamp<int64_t>(first, axis.low, axis.high - 1);
    const int64_t high = std::clamp<int64_t>(last, axis.low, axis.high - 1);
    std::vector<double> folded(size_t(high - low + 1), 0.0);
    for (size_t i = 0; i < weights.size(); ++i) {
        const int64_t at = std::clamp<int64_t>(first + int64_t(i), low, high);
        folded[size_t(at - low)] += weights[i] / sum;
    }
    table.first[size_t(d)] = int32_t(low);
    table.taps[size_t(d)] = int32_t(folded.size());
    std::copy(folded.begin(), folded.end(), table.weights.begin() + int64_t(d) * table.stride);
}

}  // namespace

std::vector<int32_t> nearest_table(const Axis &axis) {
    std::vector<int32_t> table(size_t(axis.count));
    const int64_t span = 2 * int64_t(axis.count);
    for (int d = 0; d < axis.count; ++d) {
        const int64_t at = axis.start + (2 * int64_t(d) + 1) * axis.extent / span;
        table[size_t(d)] = int32_t(std::clamp<int64_t>(at, axis.low, axis.high - 1));
    }
    return table;
}

LinearTable linear_table(const Axis &axis) {
    LinearTable table;
    table.first.resize(size_t(axis.count));
    table.weight.resize(size_t(axis.count));
    for (int d = 0; d < axis.count; ++d) {
        const Centre at = centre(axis, d);
        int64_t first = at.floor;
        int64_t weight = (at.remainder * 32768 + at.span / 2) / at.span;
        if (first < axis.low || first >= axis.high - 1) {
            first = std::clamp<int64_t>(first, axis.low, axis.high - 1);
            weight = 0;
        }
        table.first[size_t(d)] = int32_t(first);
        table.weight[size_t(d)] = int32_t(std::min<int64_t>(weight, 32767));
    }
    return table;
}

OpencvTable opencv_table(const Axis &axis, bool rows) {
    OpencvTable table;
    const double scale = 1 / (double(axis.count) / axis.extent);
    const int last = axis.extent - 1;
    for (int d = 0; d < axis.count; ++d) {
        const auto at = static_cast<float>((d + 0.5) * scale - 0.5);
        int first = int(std::floor(at));
        float weight = at - float(first);
        if (!rows && (first < 0 || first >= last)) {
            first = std::clamp(first, 0, last);
            weight = 0;
        }
        table.first.push_back(axis.start + std::clamp(first, 0, last));
        table.second.push_back(axis.start + std::clamp(first + 1, 0, last));
        const auto part = int16_t(std::lrint(weight * 2048));
        table.weights.push_back(int16_t(2048 - part));
        table.weights.push_back(part);
    }
    table.weights.resize(table.weights.size() + 32);
    return table;
}

TapTable tap_table(const Axis &axis, Filter filter) {
    TapTable table;
    const int reach = filter == Filter::kLanczos ? 3 : 2;
    table.stride = filter == Filter::kArea
                       ? std::min(axis.extent / axis.count + 2, axis.high - axis.low)
                       : 2 * reach;
    table.first.resize(size_t(axis.count));
    table.taps.resize(size_t(axis.count));
    table.weights.resize(size_t(axis.count) * size_t(table.stride));
    std::vector<double> weights;
    for (int d = 0; d < axis.count; ++d) {
        weights.clear();
        int64_t first;
        if (filter == Filter::kArea) {
            // Overlap with [left, right), both in units of 1 / count of a source sample.
            // The last sample there is stands for all beyond it, however many.
            const int64_t left = int64_t(d) * axis.extent, right = left + axis.extent;
            const int64_t last = axis.high - 1 - axis.start;
            first = std::min(left / axis.count, last);
            for (int64_t i = first; i <= last && i * axis.count < right; ++i)
                weights.push_back(
                    double((i < last ? std::min(right, (i + 1) * axis.count) : right) -
                           std::max(left, i * axis.count)));
            first += axis.start;
        } else {
            const Centre at = centre(axis, d);
            const double fraction = double(at.remainder) / double(at.span);
            for (int i = 1 - reach; i <= reach; ++i)
                weights.push_back(filter == Filter::kLanczos ? lanczos3(i - fraction)
                                                             : cubic(i - fraction));
            first = at.floor + 1 - reach;
        }
        append(table, axis, d, first, weights);
    }
    return table;
}

}  // namespace headrace::preprocess

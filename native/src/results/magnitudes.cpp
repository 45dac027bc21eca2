// What calibration counts: absolute values of a tensor in equal bins, and what rounding loses.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "core/vectorise.h"  // last, see there
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::results {
namespace {

constexpr std::int32_t kInfinity = 0x7F800000;
constexpr std::int32_t kMagnitude = 0x7FFFFFFF;

std::int32_t magnitude_of(float value) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits & kMagnitude;
}

constexpr std::size_t kBlock = 4096;  // sums of 32 bits are added without widening

struct Seen {
    std::int32_t largest = 0, zeros = 0, odd = 0;
};

// The bits of floats above 0 sort as the floats do. Two loops: one of both is not vectorised.
HEADRACE_WIDE void measure_block(const float *first, std::size_t size, Seen &seen) {
    std::int32_t largest = seen.largest, zeros = 0, odd = 0;
    for (std::size_t k = 0; k < size; ++k) {
        const std::int32_t bits = magnitude_of(first[k]);
        const std::int32_t finite = bits < kInfinity ? bits : 0;
        largest = largest < finite ? finite : largest;
    }
    for (std::size_t k = 0; k < size; ++k) {
        const std::int32_t bits = magnitude_of(first[k]);
        zeros += bits == 0 ? 1 : 0;
        odd += bits < kInfinity ? 0 : 1;
    }
    seen = {largest, zeros, odd};
}

nb::tuple measure(core::In<float, nb::ndim<1>> values) {
    Seen seen;
    std::uint64_t zeros = 0, odd = 0;
    {
        const core::Unlocked unlocked(values.size() > core::kFew);
        for (std::size_t i = 0; i < values.size(); i += kBlock) {
            measure_block(values.data() + i, std::min(kBlock, values.size() - i), seen);
            zeros += static_cast<std::uint64_t>(seen.zeros);
            odd += static_cast<std::uint64_t>(seen.odd);
        }
    }
    float top = 0;
    std::memcpy(&top, &seen.largest, sizeof top);
    return nb::make_tuple(top, zeros, odd);
}

// The bin of each value; `bins` for those that are in none.
HEADRACE_WIDE void find_bins(const float *first, std::size_t size, float scale, std::int32_t bins,
                             std::int32_t *found) {
    const float last = static_cast<float>(bins - 1);
    for (std::size_t k = 0; k < size; ++k) {
        const std::int32_t bits = magnitude_of(first[k]);
        const bool in_one = bits != 0 && bits < kInfinity;
        const std::int32_t finite = in_one ? bits : 0;
        float value = 0;
        std::memcpy(&value, &finite, sizeof value);
        const float place = value * scale;
        const auto bin = static_cast<std::int32_t>(place < last ? place : last);
        found[k] = in_one ? bin : bins;
    }
}

// Neighbours often fall into one bin: counted in turns, they do not wait for each other.
constexpr std::size_t kLanes = 4;

void count(core::In<float, nb::ndim<1>> values, float scale,
           core::Fill<std::int64_t, nb::ndim<1>> counts) {
    const core::Unlocked unlocked;
    const std::size_t bins = counts.size();
    std::vector<std::uint32_t> lanes((bins + 1) * kLanes);
    std::int32_t found[kBlock];
    constexpr std::size_t kMost = std::size_t{1} << 31;  // what a lane can count
    for (std::size_t start = 0; start < values.size(); start += kMost) {
        const std::size_t end = std::min(values.size(), start + kMost);
        for (std::size_t i = start; i < end; i += kBlock) {
            const std::size_t size = std::min(kBlock, end - i);
            find_bins(values.data() + i, size, scale, static_cast<std::int32_t>(bins), found);
            for (std::size_t k = 0; k < size; ++k)
                ++lanes[static_cast<std::size_t>(found[k]) * kLanes + k % kLanes];
        }
        for (std::size_t b = 0; b < bins; ++b)
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                counts.data()[b] += lanes[b * kLanes + lane];
        std::fill(lanes.begin(), lanes.end(), 0);
    }
}

// Squared errors of values that become whole numbers of [low, high], ties to even.
HEADRACE_WIDE double rounding_error(const float *values, std::size_t size, float factor, float low,
                                    float high) {
    constexpr float kWhole = 12582912.0F;             // 1.5 * 2^23: a sum with it has no fraction
    constexpr std::size_t kWidth = 16, kShort = 512;  // float sums of few values, side by side
    double sum = 0;
    for (std::size_t i = 0; i < size; i += kShort) {
        float sums[kWidth] = {};
        const std::size_t end = i + kShort < size ? i + kShort : size;
        for (std::size_t k = i; k < end; k += kWidth) {
            const std::size_t lanes = end - k < kWidth ? end - k : kWidth;
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                const float scaled = values[k + lane] * factor;
                const float above = scaled < low ? low : scaled;
                const float inside = above > high ? high : above;
                const float error = inside + kWhole - kWhole - scaled;
                sums[lane] += error * error;
            }
        }
        for (std::size_t lane = 0; lane < kWidth; ++lane) sum += sums[lane];
    }
    return sum;
}

void rounding_errors(core::In<float, nb::ndim<2>> rows, core::In<float, nb::ndim<1>> factors,
                     float low, float high, core::Fill<double, nb::ndim<1>> errors) {
    const core::Unlocked unlocked;
    const std::size_t size = rows.shape(1);
    for (std::size_t row = 0; row < rows.shape(0); ++row)
        errors.data()[row] =
            rounding_error(rows.data() + row * size, size, factors.data()[row], low, high);
}

}  // namespace

void bind_magnitudes(nb::module_ &m) {
    m.def("measure_magnitudes", &measure, "values"_a,
          "The largest finite absolute value, how many values are 0, and how many are infinite or "
          "not a number.");
    m.def("count_magnitudes", &count, "values"_a, "scale"_a, "counts"_a,
          "Add to `counts` the finite values that are not 0: each to the bin that its absolute "
          "value times `scale` begins with.");
    m.def("rounding_errors", &rounding_errors, "rows"_a, "factors"_a, "low"_a, "high"_a, "errors"_a,
          "Of each row, the sum of the squared errors that its values times a factor have as whole "
          "numbers of [low, high].");
}

}  // namespace headrace::results

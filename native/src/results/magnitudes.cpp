// Absolute values of a tensor in equal bins, as calibration counts them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/arrays.h"
#include "core/unlocked.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::results {
namespace {

constexpr std::uint32_t kInfinity = 0x7F800000U;
constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;

std::uint32_t magnitude_of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits & kMagnitude;
}

// The bits of floats above 0 sort as the floats do.
nb::tuple measure(core::In<float, nb::ndim<1>> values) {
    std::uint32_t largest = 0;
    std::uint64_t zeros = 0, odd = 0;
    {
        const core::Unlocked unlocked(values.size() > core::kFew);
        const float *first = values.data();
        constexpr std::size_t kBlock = 4096;  // sums of 32 bits are added without widening
        for (std::size_t i = 0; i < values.size(); i += kBlock) {
            const std::size_t end = std::min(values.size(), i + kBlock);
            std::uint32_t still = 0, none = 0;
            for (std::size_t k = i; k < end; ++k) {
                const std::uint32_t bits = magnitude_of(first[k]);
                const bool finite = bits < kInfinity;
                largest = std::max(largest, finite ? bits : 0);
                still += bits == 0;
                none += !finite;
            }
            zeros += still;
            odd += none;
        }
    }
    float top = 0;
    std::memcpy(&top, &largest, sizeof top);
    return nb::make_tuple(top, zeros, odd);
}

// Neighbours often fall into one bin: counted in turns, they do not wait for each other.
constexpr std::size_t kLanes = 4;

void count(core::In<float, nb::ndim<1>> values, float scale,
           core::Fill<std::int64_t, nb::ndim<1>> counts) {
    const core::Unlocked unlocked;
    const std::size_t bins = counts.size();
    const float *first = values.data();
    std::vector<std::uint32_t> lanes(bins * kLanes);
    constexpr std::size_t kMost = std::size_t{1} << 31;  // what a lane can count
    for (std::size_t start = 0; start < values.size(); start += kMost) {
        const std::size_t end = std::min(values.size(), start + kMost);
        for (std::size_t i = start; i < end; ++i) {
            const std::uint32_t bits = magnitude_of(first[i]);
            if (bits == 0 || bits >= kInfinity) continue;
            float value = 0;
            std::memcpy(&value, &bits, sizeof value);
            const auto bin = static_cast<std::size_t>(value * scale);
            ++lanes[std::min(bin, bins - 1) * kLanes + i % kLanes];
        }
        for (std::size_t b = 0; b < bins; ++b)
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                counts.data()[b] += lanes[b * kLanes + lane];
                lanes[b * kLanes + lane] = 0;
            }
    }
}

}  // namespace

void bind_magnitudes(nb::module_ &m) {
    m.def("measure_magnitudes", &measure, "values"_a,
          "The largest finite absolute value, how many values are 0, and how many are infinite or "
          "not a number.");
    m.def("count_magnitudes", &count, "values"_a, "scale"_a, "counts"_a,
          "Add to `counts` the finite values that are not 0: each to the bin that its absolute "
          "value times `scale` begins with.");
}

}  // namespace headrace::results

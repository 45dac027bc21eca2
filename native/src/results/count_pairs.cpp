// How many objects of a frame are of each model and class.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/arrays.h"
#include "module.h"

namespace nb = nanobind;

namespace headrace::results {
namespace {

using Ids = core::In<std::int32_t, nb::ndim<1>>;

constexpr std::uint32_t kSign = 1u
                                << 31;  // with it flipped unsigned numbers sort as signed ones do

nb::list count_pairs(Ids first, Ids second) {
    if (first.shape(0) != second.shape(0)) throw nb::value_error("columns differ in length");
    std::vector<std::uint64_t> keys(first.shape(0));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto high = static_cast<std::uint32_t>(first.data()[i]) ^ kSign;
        keys[i] =
            std::uint64_t{high} << 32 | (static_cast<std::uint32_t>(second.data()[i]) ^ kSign);
    }
    std::sort(keys.begin(), keys.end());
    nb::list counts;
    for (auto start = keys.begin(); start != keys.end();) {
        const auto end = std::upper_bound(start, keys.end(), *start);
        counts.append(nb::make_tuple(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(*start >> 32) ^ kSign),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(*start) ^ kSign), end - start));
        start = end;
    }
    return counts;
}

}  // namespace

void bind_count_pairs(nb::module_ &m) {
    m.def("count_pairs", &count_pairs, nb::arg("first"), nb::arg("second"),
          "(first, second, how many) of each pair of values, in their order.");
}

}  // namespace headrace::results

// How much of each pixel a text covers.
#pragma once
#include <nanobind/ndarray.h>

#include <cstdint>

namespace headrace::draw {

using Cover =
    nanobind::ndarray<const uint8_t, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

}  // namespace headrace::draw

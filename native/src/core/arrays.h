// NumPy arrays as the bindings take and give them.
#pragma once
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace headrace::core {

// C-contiguous arrays in main memory, to read and to fill.
template <typename T, typename... Shape>
using In = nanobind::ndarray<const T, nanobind::c_contig, nanobind::device::cpu, Shape...>;
template <typename T, typename... Shape>
using Fill = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu, Shape...>;

// A NumPy array that owns the moved-in values.
template <typename T>
nanobind::ndarray<nanobind::numpy, T> array_of(std::vector<T> values,
                                               std::initializer_list<std::size_t> shape) {
    auto *kept = new std::vector<T>(std::move(values));
    nanobind::capsule owner(kept,
                            [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape, owner);
}

template <typename T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> array_of(std::vector<T> values) {
    const std::size_t size = values.size();
    return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(
        array_of(std::move(values), {size}));
}

}  // namespace headrace::core

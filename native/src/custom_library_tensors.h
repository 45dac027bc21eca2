// NumPy arrays as the layers of a custom library's function.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "custom_library_function.h"

using Tensor = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

// Keeps the arrays of one call alive while the function's layers point into them.
class BoundTensors {
public:
    // Throws std::invalid_argument if set_layers was called for another number of tensors.
    BoundTensors(CustomFunction &function, const nanobind::list &tensors,
                 const std::vector<int> &data_types);

private:
    std::vector<Tensor> held_;
};

// Binders of the parts, called by bind_custom_library.
void bind_custom_library_detector(nanobind::module_ &m);
void bind_custom_library_items(nanobind::module_ &m);
